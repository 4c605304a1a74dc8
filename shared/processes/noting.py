"""Signals of a process that looks after commands, while its loop runs.

They are noted, and wake the loop through a pipe; nothing is interrupted in the middle.
"""

import contextlib
import os
import signal
from types import FrameType
from typing import Any

from .signals import Signalled

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shared:
    """What has arrived, for several that run commands at once in the main thread: the first that
    enters begins to listen, and the last that leaves ends it, in whichever order they leave."""

    _signals: "Signals | None" = None
    _users = 0

    def __init__(self) -> None:
        self._own: Signals | None = None

    def __enter__(self) -> "Shared":
        if Shared._signals is None:
            Shared._signals = Signals()
            Shared._signals.__enter__()
        Shared._users += 1
        self._own = Shared._signals
        return self

    def __exit__(self, *exc_info: object) -> None:
        Shared._users -= 1
        if Shared._users == 0 and Shared._signals is not None:
            Shared._signals.__exit__(*exc_info)
            Shared._signals = None

    @property
    def number(self) -> int | None:
        """The signal that has told this process to end, since the first of them entered."""
        return None if self._own is None else self._own.number

    @property
    def stops(self) -> int:
        """How often it was told so."""
        return 0 if self._own is None else self._own.stops

    @property
    def descriptor(self) -> int:
        """Has input when a signal has arrived."""
        assert self._own is not None
        return self._own.descriptor

    def drain(self) -> None:
        """Take the wake-ups out of the pipe."""
        assert self._own is not None
        self._own.drain()


class Signals:
    """While entered: what has arrived. Works in the main thread alone (signal(3))."""

    def __init__(self) -> None:
        self.stops = 0
        self.number: int | None = None
        self._before: dict[int, Any] = {}
        self._reader, self._writer = -1, -1
        self._wakeup_before = -1

    def __enter__(self) -> "Signals":
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in _STOPPING:
            self._listen(number)
        # Its wake-up is all that is wanted. Where it is ignored, the exit status of a child is
        # lost (waitpid(2)).
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, self._disregard)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._reader)
        os.close(self._writer)

    @property
    def descriptor(self) -> int:
        """Has input when a signal has arrived."""
        return self._reader

    def drain(self) -> None:
        """Take the wake-ups out of the pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def _listen(self, number: int) -> None:
        """Where a signal is ignored (a shell's background job, nohup), the process goes on
        ignoring it. By a handler, which the command does not inherit: it gets the default, but
        for SIGHUP, where `nohup` is meant for it, too."""
        ignored = signal.getsignal(number) is signal.SIG_IGN
        if ignored and number == signal.SIGHUP:
            return
        handler = self._disregard if ignored else self._note_stop
        self._before[number] = signal.signal(number, handler)

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1
        self.number = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
        if self.stops > 2:
            # The sender insists, and something does not return to the loop.
            raise Signalled(self.number)

    def _disregard(self, number: int, frame: FrameType | None) -> None:
        pass
