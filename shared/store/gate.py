"""The gate: one lock file at which writers queue before they ask SQLite for its write lock.

SQLite's own busy handler lets one of eight writers starve (measured: a thousandth of the
fastest one's share); the kernel's queue on flock(2) serves them in turn.
"""

import fcntl
import os

from ..errors import InboxOrchError
from ..ids import plain_number
from .folders import file_failure


class Gate:
    """An exclusive lock between processes and threads, on a file of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._left_line: _Line | None = None

    def acquire(self, timeout_seconds: float) -> None:
        """Enter, waiting at most `timeout_seconds`.

        Errors: `busy` when the time is over; `read_only`, `disk_full`, `no_database` or
        `io_error` when the lock file cannot be opened.
        """
        assert self._descriptor is None, "the gate is not re-entrant"
        # The place that an earlier call has left, if it is there still: nothing takes it out of the
        # kernel's queue, and each call would add one more.
        line = self._left_line if timeout_seconds > 0 else None
        try:
            if line is not None and line.rejoin():
                self._descriptor, self._left_line = line.descriptor, None
            else:
                line = None
                self._descriptor = self._open()
                if not _lock_at_once(self._descriptor):
                    if timeout_seconds <= 0:  # it would wait for nothing in the line
                        raise _busy(self._path, timeout_seconds)
                    line = _Line(self._descriptor, self._path)
            if line is not None:
                line.wait(timeout_seconds)
        except BaseException:
            # A signal can arrive at any step, also after the lock was granted.
            if line is None:
                self.release()
            elif line.leave():
                self._left_line = None
                os.close(line.descriptor)
            else:
                self._left_line = line
            self._descriptor = None
            raise

    @property
    def descriptor(self) -> int:
        """The held lock's descriptor: a child process that inherits it shares the lock, and
        keeps it should this process die first."""
        assert self._descriptor is not None, "the gate is not held"
        return self._descriptor

    @property
    def in_place(self) -> bool:
        """Whether the file that is locked is the one that its path leads to: another process may
        have removed it while one waited."""
        return _is_open_as(self._path, self.descriptor)

    def release(self) -> None:
        """Leave. Closing the descriptor drops the lock (flock(2))."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._path, flags, 0o600)
        except OSError as error:
            raise file_failure(self._path, error) from error


class _Line:
    """A place in the kernel's queue, held by a thread so that a deadline and signals are kept.

    The descriptor is the waiter's again once the lock was granted; if it has left before, and has
    not come back, the thread closes it.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        import threading  # few writers have to queue, and all would load it

        self._thread = threading.Thread(target=self.run, daemon=True)
        self.descriptor = descriptor
        self._path = path
        self._settled = threading.Lock()
        self._granted = threading.Event()
        self._left = self._begun = self._closed = False

    def start(self) -> None:
        """Queue, in a thread of its own. Raises RuntimeError when there can be none."""
        self._begun = True
        try:
            self._thread.start()
        except RuntimeError:
            self._granted.set()  # as if it were: the descriptor is the caller's to close
            raise

    def join(self, timeout_seconds: float | None = None) -> None:
        """Wait until the thread has ended."""
        self._thread.join(timeout_seconds)

    def run(self) -> None:
        """Hold the place until the lock is granted."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._settled:
            if self._left:
                self._closed = True
                os.close(self.descriptor)
            else:
                self._granted.set()

    def wait(self, timeout_seconds: float) -> None:
        """Return once the lock is held. A caller that is interrupted in it has to `leave`."""
        if not self._begun:
            self.start()
        self._granted.wait(timeout_seconds)
        if not self.leave():
            raise _busy(self._path, timeout_seconds)

    def rejoin(self) -> bool:
        """Wait again; whether the place is there still, and in the line before the lock file that
        is there now."""
        with self._settled:
            if self._closed or not _is_open_as(self._path, self.descriptor):
                return False
            self._left = False
            return True

    def leave(self) -> bool:
        """Wait no longer; whether the lock was granted, and the descriptor is the caller's."""
        with self._settled:
            self._left = True
            return self._granted.is_set()


def _busy(path: str, waited_seconds: float) -> InboxOrchError:
    return InboxOrchError(
        "busy",
        f"other writers held the database for {plain_number(waited_seconds)} s",
        hint="try again; INBOX_BUSY_TIMEOUT sets how many seconds to wait",
        details={"gate": path, "waited_seconds": waited_seconds},
    )


def _is_open_as(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _lock_at_once(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
