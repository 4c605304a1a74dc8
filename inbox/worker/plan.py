"""What a worker is asked to do, and finding its command before anything is claimed."""

import os
import shutil
from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import printable, quoted

from ..domain import limits

MAX_SLOTS = 64
# What no name of a program has, and many a line for a shell.
_OF_A_LINE = frozenset(" \t\n;|&<>$")


class Plan(NamedTuple):
    """The options of `inbox work`; times in seconds.

    `grace_seconds` lie between TERM and KILL. `keeps_questions`: a question that is open when the
    worker is told to end stays open, instead of being taken back. `adapter` is the name of the
    agent that the command runs, if it is one that is known.
    """

    command: tuple[str, ...]
    mailboxes: tuple[str, ...] = ()
    lease_seconds: float = limits.DEFAULT_LEASE_SECONDS
    slots: int = 1
    once: bool = False
    idle_exit_seconds: float | None = None
    timeout_seconds: float | None = None
    retry_in_seconds: float | None = None
    grace_seconds: float = 10.0
    keeps_questions: bool = False
    adapter: str | None = None


def find_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command with an absolute program, as it is found from the present folder: the
    command itself runs in the worktree of its task. Error `usage` when there is none."""
    if not arguments:
        raise usage(
            "a command is needed",
            hint="write it after `--`: inbox work --agent w1 -- ./my-script.sh",
        )
    program, *rest = arguments
    if any("\0" in argument for argument in arguments):
        raise usage("the command has a NUL character")
    found = shutil.which(program)
    if found is None:
        reason = "cannot be run" if os.path.exists(program) and "/" in program else "is not found"
        raise usage(
            f"the command {quoted(program)} {reason}",
            hint=f"nothing was claimed; {_how_it_is_found(program, rest)}",
            command=printable(program),
        )
    return (os.path.abspath(found), *rest)


def _how_it_is_found(program: str, rest: Sequence[str]) -> str:
    """What to do about a program that is not found: one in quotes is a line for a shell."""
    if not rest and set(program) & _OF_A_LINE:
        import shlex

        return f"a line for the shell is written `-- sh -c {shlex.quote(printable(program))}`"
    return "check its name, PATH and its executable bit"
