"""SIGINT and SIGTERM as an exception that nothing on the way may swallow."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import CodeType, FrameType

_AGAIN_SECONDS = 0.001

_signalled = False
_postponing = False
_postponed: int | None = None


class Signalled(BaseException):
    """SIGINT or SIGTERM arrived. Not an `Exception`: nothing on the way may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


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


def listen() -> None:
    """From now on the first of them raises `Signalled`, and a second ends the process."""
    sys.unraisablehook = _unraisable
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell that starts a job in the background has SIGINT ignored; leave that as it is.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise_signalled)


def _raise_signalled(number: int, frame: FrameType | None) -> None:
    """Unwind at the first signal; a second one does not wait for that."""
    global _signalled, _postponed
    if _signalled:
        os._exit(128 + number)
    _signalled = True
    if not _postponing:
        raise Signalled(number)
    _postponed = number


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """The first signal that comes in the block is raised at its end; a second one still ends the
    process. For what is short, and must not be left half done.

    Changes nothing where `listen` was not called, in another thread than the main one, which no
    signal interrupts, and inside such a block.
    """
    global _postponing, _postponed
    import threading

    if _postponing or threading.current_thread() is not threading.main_thread():
        yield
        return
    _postponing = True
    try:
        yield
    finally:
        _postponing = False
        if _postponed is not None:
            number, _postponed = _postponed, None
            raise Signalled(number)


def _unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """What came up in a finalizer or a weak reference's callback (every import runs some), where
    Python raises nothing. A signal among it is raised a moment later, outside."""
    if isinstance(unraisable.exc_value, Signalled):
        _raise_soon(unraisable.exc_value.number)
    # On the way out, what a signal interrupted half-way may be closed in any order.
    elif not _signalled:
        sys.__unraisablehook__(unraisable)


def _raise_soon(number: int) -> None:
    """By an alarm: a signal sent here and now would be handled here, too. It is the same signal
    again, for what listens to it by then."""

    def send_again(alarm: int, frame: FrameType | None) -> None:
        global _signalled
        # The hook itself may have been held up for so long; what is raised in it is lost.
        if _within(frame, _unraisable.__code__):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            _signalled = False
            signal.raise_signal(number)

    signal.signal(signal.SIGALRM, send_again)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


def _within(frame: FrameType | None, code: CodeType) -> bool:
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None
