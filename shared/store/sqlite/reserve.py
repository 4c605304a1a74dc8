"""Room that is kept for the day on which the disk is full.

A command that makes room has to write down what it takes away. A file beside the database holds as
much as that needs; it is given up for it, and made again once there is room.
"""

import contextlib
import os

from ..folders import write_all
from ..layout import Layout
from .log import size_of

RESERVE_BYTES = 192 * 1024
_TIMES_AS_MUCH = 4
_SAYS = b"Room that inbox-orch keeps for a full disk.\n"


def keep_reserve(layout: Layout) -> None:
    """Have the reserve, if the disk has plenty of room left; nothing depends on it. One that was
    not written to its end, because a process was killed or the disk was full, is written anew."""
    path = layout.reserve
    with contextlib.suppress(OSError):
        if size_of(path) >= RESERVE_BYTES or _room(layout) < RESERVE_BYTES * _TIMES_AS_MUCH:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            if _SAYS.startswith(os.pread(descriptor, len(_SAYS), 0)):
                # Neither zeros nor a hole, which some file systems keep in no room at all.
                write_all(descriptor, _SAYS + os.urandom(RESERVE_BYTES - len(_SAYS)))
        finally:
            os.close(descriptor)


def give_up_reserve(layout: Layout) -> None:
    """Let others have the room of the reserve; what is there by chance, in its place, stays."""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(layout.reserve, flags)
        try:
            ours = os.read(descriptor, len(_SAYS)) == _SAYS
        finally:
            os.close(descriptor)
        if ours:
            os.unlink(layout.reserve)


def _room(layout: Layout) -> int:
    found = os.statvfs(os.path.dirname(layout.database))
    return found.f_bavail * found.f_frsize
