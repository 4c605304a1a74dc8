"""Unforeseen errors: which of them concern one thread alone, and how that is said.

A thread whose payload, command or history the program cannot stand would otherwise end every
worker that claims it, for ever, with all that their other slots do.
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.engine import library_errors

_REASON_CHARACTERS = 1000
# Exits 5, 6 and 9, and a disk that fails: other threads would meet these as well.
_EVERYBODYS = frozenset({5, 6, 9})


class Breakable(Protocol):
    """Whose steps can be kept apart from those of others."""

    def break_off(self, error: Exception) -> None:
        """End by itself, because of an unforeseen error."""


_Owner = TypeVar("_Owner", bound=Breakable)
_Given = ParamSpec("_Given")
_Step = Callable[Concatenate[_Owner, _Given], None]


def alone(step: _Step[_Owner, _Given]) -> _Step[_Owner, _Given]:
    """A step whose errors end its owner alone, unless they concern every thread."""

    @functools.wraps(step)
    def guarded(owner: _Owner, /, *given: _Given.args, **named: _Given.kwargs) -> None:
        try:
            step(owner, *given, **named)
        except Exception as error:
            if concerns_everybody(error):
                raise
            owner.break_off(error)

    return guarded


def concerns_everybody(error: Exception) -> bool:
    """Whether the database or its place is at fault, so that no thread can be served."""
    if isinstance(error, InboxOrchError):
        return error.exit_code in _EVERYBODYS or error.code == "outcome_unknown"
    return isinstance(error, library_errors())


def reason_of(error: Exception) -> str:
    """One line for the thread, and for the user of the worker."""
    said = printable(f"{type(error).__name__}: {error}", _REASON_CHARACTERS)
    return f"The worker met an unexpected {said}"
