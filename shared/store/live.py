"""Which databases this process has open, so that nothing else in it opens their files.

Closing any descriptor of a file releases the process's POSIX locks on it (fcntl(2)), SQLite's
too: another process may then take the log away, and what is committed afterwards is lost. The
closing does the harm, so a file is looked at by stat before it is opened. It has as many names as
it has links: what counts is its device and its inode.
"""

import os

from ..errors import usage
from ..ids import printable
from .layout import Layout

_layouts: dict[object, Layout] = {}


def enter(layout: Layout) -> object:
    """From now on a connection may be open; returns what `leave` wants."""
    ticket = object()
    _layouts[ticket] = layout
    return ticket


def leave(ticket: object) -> None:
    """The connection is closed. A repeat changes nothing."""
    _layouts.pop(ticket, None)


def is_live(path: str) -> bool:
    """Whether the path leads to a file of a database that this process has open."""
    # A copy, since another thread may open one meanwhile.
    own = [name for layout in tuple(_layouts.values()) for name in layout.sqlite_files]
    identity = _identity(path) if own else None
    return identity is not None and identity in map(_identity, own)


def refuse_live(path: str) -> None:
    """Error `usage` before a file is read that only SQLite may open."""
    if is_live(path):
        raise usage(
            f"{printable(path)} is a file of the database that is in use, and is not read",
            hint="`inbox backup FILE` makes a whole copy of the database, which can be attached",
            path=printable(path),
        )


def _identity(path: str) -> tuple[int, int] | None:
    """(device, inode); None for what is not there or cannot be looked at."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino
