"""Bells: how a writer wakes those who wait, with no process in between.

Each waiting process keeps a FIFO of its own in a folder per topic; after its commit a writer
puts a byte into each. A bell is only a hint: the waiter looks at the database whenever it
wakes, and looks by itself now and then (see `waits`), so a lost byte costs time, never a
message. A FIFO whose reader is gone answers ENXIO (fifo(7)) and is cleared away.
"""

import contextlib
import errno
import os
import select
import stat
from collections.abc import Iterable, Iterator

_TEMPORARY = ".new-"


def ring(folder: str, topics: Iterable[str]) -> None:
    """Wake every waiter of `topics`. Never fails: the commit has already happened."""
    for topic in topics:
        place = os.path.join(folder, topic)
        for name in _names(place):
            if not name.startswith(_TEMPORARY):
                _ring_one(os.path.join(place, name))


def _ring_one(path: str) -> None:
    # Opening alone already does something to some devices.
    if not _is_fifo(path):
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        # Anything else (no descriptor left, say) is trouble of the writer's own.
        if error.errno == errno.ENXIO:
            clear_away(path)
        return
    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.write(descriptor, b"!")
    except OSError:
        # Full: the waiter has bytes enough to wake up by.
        return
    finally:
        os.close(descriptor)


def dead(folder: str, made_before_ms: int) -> Iterator[str]:
    """Paths of bells whose process is gone. One that is not in place yet has no reader for a
    moment, so it counts only if it was made before the given wall-clock time."""
    for topic in sorted(_names(folder)):
        for name in sorted(_names(os.path.join(folder, topic))):
            path = os.path.join(folder, topic, name)
            if _is_dead(path) and (
                not name.startswith(_TEMPORARY) or _made_ms(path) < made_before_ms
            ):
                yield path


def _names(folder: str) -> list[str]:
    """The names in a folder, none where there was never a wait. A link to a folder is none."""
    try:
        return [] if os.path.islink(folder) else os.listdir(folder)
    except OSError:
        return []


def _is_fifo(path: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    return False


def _is_dead(path: str) -> bool:
    """Whether no process has the FIFO open for reading; nothing is written into it."""
    if not _is_fifo(path):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


def _made_ms(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_mtime_ns // 1_000_000
    return 0


def clear_away(path: str) -> None:
    """Remove the bell of a process that is gone, and its folder when that was the last."""
    try:
        if stat.S_ISFIFO(os.lstat(path).st_mode):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
    except OSError:
        return  # someone else was quicker, or the folder has other bells


class Bells:
    """This process's FIFOs for some topics, from arming to disarming.

    `armed` is False where FIFOs cannot be made; then the waiter must poll faster.
    """

    def __init__(self, folder: str, topics: Iterable[str]) -> None:
        self._paths: list[str] = []
        self._descriptors: list[int] = []
        self._poll = select.poll()
        self.armed = True
        try:
            for topic in topics:
                try:
                    self._arm(os.path.join(folder, topic))
                except OSError:
                    self.armed = False
        except BaseException:
            # A signal, before what is armed already could have been disarmed.
            self.disarm()
            raise

    def __enter__(self) -> "Bells":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.disarm()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """To be watched for input by a caller with an event loop of its own."""
        return tuple(self._descriptors)

    def listen_to(self, descriptor: int) -> None:
        """Input on a descriptor of the caller's ends a sleep, too."""
        self._poll.register(descriptor, select.POLLIN)

    def sleep(self, seconds: float) -> bool:
        """Sleep until a bell rings or `seconds` have passed; whether one rang."""
        if not self._poll.poll(max(0, int(seconds * 1000 + 0.999))):
            return False
        self.drain()
        return True

    def drain(self) -> None:
        """Take the bytes out, so that the next ring is heard."""
        for descriptor in self._descriptors:
            with contextlib.suppress(BlockingIOError):
                while os.read(descriptor, 4096):
                    pass

    def disarm(self) -> None:
        """Take the FIFOs away."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        for path in self._paths:
            clear_away(path)
        self._descriptors, self._paths = [], []

    def _arm(self, place: str) -> None:
        """Make the FIFO under a temporary name, open it, then rename it into place: a writer
        never finds one without a reader."""
        name = f"{os.getpid()}-{os.urandom(6).hex()}"
        temporary, path = os.path.join(place, _TEMPORARY + name), os.path.join(place, name)
        # Named before they are made: whenever it ends, `disarm` takes them away.
        self._paths += [temporary, path]
        for attempt in range(10):
            # The database's own folder is not made: if it has been removed, it stays away.
            for folder in (os.path.dirname(place), place):
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700)
                if os.path.islink(folder):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
            try:
                os.mkfifo(temporary, 0o600)
                break
            except FileNotFoundError:
                # The last bell of the folder was cleared away between the two calls.
                if attempt == 9:
                    raise
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags)
        self._descriptors.append(descriptor)
        os.rename(temporary, path)
        self._poll.register(descriptor, select.POLLIN)
