"""One command line from its words to its exit code; whatever goes wrong becomes one error.

Click is loaded only where a line is not plain: for help, errors, completion, groups.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import EXIT_READER_GONE, InboxOrchError
from ..processes.signals import Signalled, signal_behind
from .output import Output, ReaderGone
from .shell import Shell

if TYPE_CHECKING:
    import click

    from .declaring import Find


def execute(
    name: str,
    load: Callable[[], "click.Group"],
    arguments: Sequence[str],
    find: "Find | None" = None,
) -> int:
    """Run one command line; returns the exit code. Never raises an `Exception`.

    `load` gives the whole program. `find` gives the command that the first words name, and how
    many words that are, or None where only the program knows.
    """
    output = Output(f"{name}/1", as_json=_asks_for_json(arguments))

    def run() -> int:
        if f"_{name.upper()}_COMPLETE" in os.environ:
            from .completion import answer

            return answer(name, load, Shell(output), output)
        if find is not None:
            from .quick import run_plain

            code = run_plain(name, find, arguments, output)
            if code is not None:
                return code
        from .commandline import invoke

        return invoke(name, load(), arguments, output)

    return guarded(output, run)


def guarded(output: Output, run: Callable[[], int]) -> int:
    """What `run` returns; what it raises is reported, and its exit code returned."""
    try:
        try:
            return run()
        except ReaderGone:
            return EXIT_READER_GONE
        except (Exception, Signalled) as raised:  # noqa: BLE001 - the last line of defence
            error = _error_for(raised)
        return _report(output, error)
    except ReaderGone:
        return EXIT_READER_GONE


def _error_for(raised: BaseException) -> InboxOrchError:
    """What the caller is told; anything unforeseen is a bug, exit 1."""
    signalled = signal_behind(raised)
    if signalled is not None:
        code = "interrupted" if signalled.number == signal.SIGINT else "terminated"
        hint = "what was asked for has been done or not at all"
        return InboxOrchError(code, "stopped by a signal", hint=hint)
    if isinstance(raised, InboxOrchError):
        return raised
    # Without click there are no errors of click's.
    if "click" in sys.modules and (wrong := _usage_error(raised)) is not None:
        return wrong
    return _internal(raised)


def _report(output: Output, error: InboxOrchError) -> int:
    if error.code in ("interrupted", "terminated") and not output.as_json:
        error.hint = None  # who has pressed Ctrl-C need not be told in two lines that it worked
    try:
        output.error(error)
    except InboxOrchError as unwritten:
        output.complain(error.message)
        if error.code != unwritten.code:
            output.complain(unwritten.message)
        if unwritten.hint:
            output.notice(f"hint: {unwritten.hint}")
    return error.exit_code


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether --json stands among the options, so that a usage error is JSON, too."""
    for argument in arguments:
        if argument == "--":
            return False
        if argument == "--json":
            return True
    return False


def _usage_error(raised: BaseException) -> InboxOrchError | None:
    from .commandline import usage_error

    return usage_error(raised)


def _internal(error: BaseException) -> InboxOrchError:
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except OSError as gone:
            return InboxOrchError(
                "io_error",
                f"the working folder cannot be told: {gone.strerror}",
                hint="change to a folder that is there, or give whole paths",
            )
    if os.environ.get("INBOX_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return InboxOrchError(
        "internal",
        f"unexpected {type(error).__name__}: {error}",
        hint="this is a bug; INBOX_DEBUG=1 shows where it happened",
    )
