"""Room that is kept for the day on which the disk is full.

Whoever is to make room has to write down what it takes away. A file beside the database holds as
much as that needs; it is given up for it, and made again once there is room.
"""

import contextlib
import os

from .layout import Layout

RESERVE_BYTES = 192 * 1024
_TIMES_AS_MUCH = 4


def keep_reserve(layout: Layout) -> None:
    """Have the reserve, if the disk has plenty of room left; nothing depends on it."""
    path = _path(layout)
    with contextlib.suppress(OSError):
        if os.path.lexists(path) or _room(layout) < RESERVE_BYTES * _TIMES_AS_MUCH:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            # Neither zeros nor a hole, which some file systems would keep in no room at all.
            os.write(descriptor, os.urandom(RESERVE_BYTES))
        finally:
            os.close(descriptor)


def give_up_reserve(layout: Layout) -> None:
    """Let others have the room of the reserve."""
    with contextlib.suppress(OSError):
        os.unlink(_path(layout))


def _path(layout: Layout) -> str:
    return layout.gate.removesuffix("gate") + "reserve"


def _room(layout: Layout) -> int:
    found = os.statvfs(os.path.dirname(layout.database))
    return found.f_bavail * found.f_frsize
