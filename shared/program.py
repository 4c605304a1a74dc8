"""Running one command as a process: signals, errors, exit codes.

Loaded before anything heavy, so that an interrupt is answered properly from the first moment.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import click


_signalled = False


class Signalled(BaseException):
    """SIGINT or SIGTERM arrived. Not an `Exception`: nothing on the way may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(name: str, load: Callable[[], "click.Group"]) -> NoReturn:
    """Run the command line of the program `name` and end the process with its exit code.

    The process ends without the interpreter's own tidying up, which costs more than most
    commands do; everything that matters has been closed and flushed by then.
    """
    try:
        _listen()
        _fill_standard_descriptors()
        # Modules make many objects and no garbage; looking for it while they load takes 2 ms.
        # `execute` turns the collector on again before a command runs.
        gc.disable()
        from .commandline import execute

        # Inside the `try`, so that there is no moment at which a signal is not caught.
        os._exit(execute(name, load, sys.argv[1:]))
    except BaseException as error:
        signalled = signal_behind(error)
        if signalled is None:
            raise
        os._exit(128 + signalled.number)


def signal_behind(error: BaseException) -> Signalled | None:
    """The signal that an error comes from, if it does: the interpreter itself wraps what is
    raised while a class is made, and clean-up can fail on the way out."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        if isinstance(following, Signalled):
            return following
        seen.add(id(following))
        following = following.__cause__ or following.__context__
    return None


def _listen() -> None:
    sys.unraisablehook = _unraisable
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell that starts a job in the background has SIGINT ignored; leave that as it is.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise_signalled)


def _raise_signalled(number: int, frame: FrameType | None) -> None:
    """Unwind at the first signal; a second one does not wait for that."""
    global _signalled
    if _signalled:
        os._exit(128 + number)
    _signalled = True
    raise Signalled(number)


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """A signal that arrived inside a finalizer, where nothing can be raised: end at once.

    The open transaction is rolled back by whoever opens the database next.
    """
    if isinstance(unraisable.exc_value, Signalled):
        os._exit(128 + unraisable.exc_value.number)
    # On the way out, what a signal interrupted half-way may be closed in any order.
    if not _signalled:
        sys.__unraisablehook__(unraisable)


def _fill_standard_descriptors() -> None:
    """Put /dev/null where a standard stream is closed, so that no file of ours gets its number.

    `sys.stdout` stays None then, which is how the output knows.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
