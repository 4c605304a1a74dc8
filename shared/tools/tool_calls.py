"""Calling a command in this process for a caller that gets its answer as a value.

The command's parsing, its errors and its order of things stay: what it does after its output was
written, like moving a cursor, happens once the answer has been delivered. Knows no protocol.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import click

from ..errors import EXIT_READER_GONE
from ..shell.commandline import invoke
from ..shell.execution import guarded
from ..shell.output import Output, ReaderGone
from ..store.folders import file_failure
from ..store.temporary import temporary_place
from ..store.waits import Interruption
from .tools import Described, words_for

DELIVERY_SECONDS = 30.0
"""How long an answer may take to be written; then it is not read."""

Answer = dict[str, Any]


class Delivery:
    """Whether the answer of one call has reached its reader; said by any thread, once."""

    def __init__(self) -> None:
        self._settled = threading.Event()
        self._delivered = False

    def settle(self, *, delivered: bool) -> None:
        """The answer has been written, or never will be."""
        if not self._settled.is_set():
            self._delivered = delivered
            self._settled.set()

    def wait(self) -> None:
        """Return once the answer has been written. Raises `ReaderGone` otherwise."""
        self._settled.wait(DELIVERY_SECONDS)
        if not self._delivered:
            raise ReaderGone


class Call:
    """One call of a tool. `answer` is there once `answered` has been called."""

    def __init__(self, answered: Callable[[], None]) -> None:
        self.answer: Answer | None = None
        self.delivery = Delivery()
        self.interruption = Interruption()
        self._answered = answered

    def give_up(self) -> None:
        """The answer is not waited for any more."""
        self.interruption.fire()
        self.delivery.settle(delivered=False)

    def hand_over(self, answer: Answer) -> None:
        """Give the answer, and return when it has been delivered; `ReaderGone` if it is not."""
        self.answer = answer
        self._answered()
        self.delivery.wait()


class Place(NamedTuple):
    """The program that the tools belong to, and the options that go before every command."""

    program: click.Group
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As it is called."""
        return str(self.program.name)


def carry_out(place: Place, about: Described, given: Mapping[str, Any], call: Call) -> None:
    """Run the tool's command in the thread that this is called in. Never raises an `Exception`:
    what goes wrong is the answer, in the envelope of the command line."""
    output = Output(f"{place.name}/1", as_json=True, hand_over=call.hand_over)
    with call.interruption.for_this_thread(), ExitStack() as stack:

        def run() -> int:
            words = words_for(about, given, lambda text: _in_a_file(stack, text))
            return invoke(place.name, place.program, [*place.options, "--json", *words], output)

        code = guarded(output, run)
    unread = code == EXIT_READER_GONE and call.answer is not None and call.answer["ok"]
    if unread and about.tool.undo is not None:
        assert call.answer is not None
        _undo(place, about.tool.undo(call.answer["data"]))


def _undo(place: Place, words: Sequence[str]) -> None:
    """Take back what was not received. If that fails, it runs out by itself."""
    output = Output(f"{place.name}/1", as_json=True, hand_over=lambda answer: None)
    guarded(output, lambda: invoke(place.name, place.program, [*place.options, *words], output))


def _in_a_file(stack: ExitStack, text: str) -> str:
    """A file of this user's alone, which is there as long as the stack is open."""
    place = temporary_place()
    try:
        descriptor, path = tempfile.mkstemp(prefix="inbox-orch-", dir=place)
        stack.callback(os.unlink, path)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise file_failure(place, error) from error
    return path
