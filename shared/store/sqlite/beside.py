"""What `doctor` says of the files of a database: their modes, the log, the gate, bells.

No file that only SQLite may open is ever opened here: they are looked at by name only.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator

from ..checks import MOST_ITEMS, OK, PROBLEM, WARNING, Check, listed, repaired
from ..engine import Engine
from ..findings import Tally
from ..layout import FOLDER_NAME, Layout
from . import bells, care, log, refusals
from .creating import UNSAFE_FILESYSTEMS, filesystem_type

_MINUTE_MS = 60 * 1000


def surroundings(database: Engine, *, fix: bool) -> Iterator[Check]:
    """What belongs to an open database, check by check. `fix` repairs what needs no guessing."""
    layout, now = database.layout, database.now()
    yield _journal(database, fix)
    yield _modes(layout, fix)
    yield _filesystem(layout)
    yield _log(layout)
    yield _gate(layout)
    silent = list(bells.dead(layout.bells, now.wall_ms - _MINUTE_MS))
    yield repaired(
        "bells", silent, bells.clear_away, fix, "no bell of a dead process", "nobody hears them"
    )


def remains(layout: Layout) -> Iterator[Check]:
    """What is left of databases that were removed from its place."""
    yield _orphans(layout)


def _journal(database: Engine, fix: bool) -> Check:
    """A database that was put together by other means may lack the write-ahead log."""
    with database.snapshot(as_it_is=True) as snapshot:
        mode = care.journal_mode(snapshot)
    if mode == "wal":
        return Check("journal", OK, "write-ahead log")
    if fix:
        with database.unshared() as session:
            care.use_write_ahead_log(session)
        return Check("journal", OK, f"was {mode}, is the write-ahead log now", fixed=1)
    text = f"is {mode}, not the write-ahead log: readers and writers hold each other up"
    return Check("journal", PROBLEM, text, total=1, fixable=True)


def _modes(layout: Layout, fix: bool) -> Check:
    loose = list(_loose_files(layout))
    return repaired("modes", loose, _tighten, fix, "ours alone", "others may use them")


def _loose_files(layout: Layout) -> Iterator[str]:
    """Our files and folders that others may read or write, or that are somebody else's."""
    folder = os.path.dirname(layout.database)
    paths = [layout.database, layout.wal, layout.shm, layout.gate, layout.artifacts, layout.bells]
    if os.path.basename(folder) == FOLDER_NAME:
        paths.insert(0, folder)
    owner = os.stat(layout.database).st_uid
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if status.st_mode & 0o077 or status.st_uid != owner:
                yield path


def _tighten(path: str) -> None:
    """By its name: a descriptor of a database file, once closed, would drop SQLite's locks."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not a file of one's own")
    os.chmod(path, stat.S_IMODE(status.st_mode) & 0o700)


def _filesystem(layout: Layout) -> Check:
    kind = filesystem_type(layout.database)
    if kind is not None and (kind in UNSAFE_FILESYSTEMS or kind.startswith("fuse")):
        return Check("filesystem", WARNING, f"{kind}: a write-ahead log is not safe on it")
    return Check("filesystem", OK, kind or "its type cannot be told here")


def _log(layout: Layout) -> Check:
    try:
        size = os.stat(layout.wal).st_size
    except FileNotFoundError:
        size = 0
    reader = refusals.oldest_reader(layout)
    text = f"the write-ahead log has {size} bytes; oldest reader: {reader or 'none'}"
    return Check("log", WARNING if size > log.TRUNCATE_BYTES else OK, text, total=size)


def _gate(layout: Layout) -> Check:
    """Asked for a shared lock without waiting: refused means that somebody is writing now."""
    try:
        descriptor = os.open(layout.gate, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Check("gate", OK, "not made yet; the next writer makes it")
    except OSError as error:
        return Check("gate", PROBLEM, f"{layout.gate} cannot be opened: {error.strerror}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            return Check("gate", PROBLEM, f"{layout.gate} cannot be locked: {error.strerror}")
        return Check("gate", OK, "a writer holds it now")
    finally:
        os.close(descriptor)
    return Check("gate", OK, "free")


def _orphans(layout: Layout) -> Check:
    folder, name = os.path.split(layout.database)
    found = sorted(
        os.path.join(folder, other)
        for other in os.listdir(folder)
        if other.startswith((f"{name}-wal.orphan-", f"{name}-shm.orphan-"))
    )
    good = "no log of a removed database lies here"
    text = "logs of a database that was removed; remove them when nobody misses its last changes"
    check = listed("orphans", WARNING, Tally(tuple(found[:MOST_ITEMS]), len(found)), good)
    return check if not found else check._replace(text=f"{len(found)} {text}")
