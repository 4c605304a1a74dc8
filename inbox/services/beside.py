"""What `doctor` says of the files beside the database: their modes, the log, bells, artifacts.

No file of SQLite's is ever opened here: they are looked at by name only.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.findings import Tally
from inbox_orch.shared.store.layout import FOLDER_NAME, Layout
from inbox_orch.shared.store.sqlite import bells, log, refusals
from inbox_orch.shared.store.sqlite import care as sqlite_care
from inbox_orch.shared.store.sqlite.creating import UNSAFE_FILESYSTEMS, filesystem_type

from ..store import care
from .checks import MOST_ITEMS, OK, PROBLEM, WARNING, Check, listed, out_of_reach, repaired
from .desk import Desk

_DAY_MS = 24 * 3600 * 1000
_MINUTE_MS = 60 * 1000


def files(desk: Desk, stored: list[tuple[str, int]], *, verify: bool, fix: bool) -> Iterator[Check]:
    layout, now = desk.database.layout, desk.database.now()
    yield _journal(desk, fix)
    yield _modes(layout, fix)
    yield _filesystem(layout)
    yield _log(layout)
    yield _gate(layout)
    silent = list(bells.dead(layout.bells, now.wall_ms - _MINUTE_MS))
    yield repaired(
        "bells", silent, bells.clear_away, fix, "no bell of a dead process", "nobody hears them"
    )
    yield _contents(desk, stored, verify)
    yield _unreferenced(desk)
    unreadable: list[OSError] = []
    unfinished = list(desk.artifacts.leftovers(now.wall_ms - _DAY_MS, unreadable.append))
    yield out_of_reach("unfinished_copies", unreadable) or repaired(
        "unfinished_copies",
        unfinished,
        os.unlink,
        fix,
        "no copy was left unfinished more than a day ago",
        "their commands died while copying",
    )
    yield _orphans(layout)


def _journal(desk: Desk, fix: bool) -> Check:
    """A database that was put together by other means may lack the write-ahead log."""
    with desk.database.snapshot() as snapshot:
        mode = sqlite_care.journal_mode(snapshot)
    if mode == "wal":
        return Check("journal", OK, "write-ahead log")
    if fix:
        with desk.database.unshared() as session:
            sqlite_care.use_write_ahead_log(session)
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


# -- artifacts -----------------------------------------------------------------------------


def _contents(desk: Desk, stored: list[tuple[str, int]], verify: bool) -> Check:
    wrong = {sha256: why for sha256, size in stored if (why := _defect(desk, sha256, size, verify))}
    if wrong:
        # What was pruned since the snapshot is not missed.
        with desk.database.snapshot() as snapshot:
            wrong = {s: why for s, why in wrong.items() if care.is_referenced(snapshot, s)}
    items = tuple(f"{sha256}: {why}" for sha256, why in list(wrong.items())[:MOST_ITEMS])
    extent = "are there and match their digests" if verify else "are there in full length"
    good = f"{len(stored)} contents {extent}"
    return listed("artifact_files", PROBLEM, Tally(items, len(wrong)), good)


def _defect(desk: Desk, sha256: str, size: int, verify: bool) -> str | None:
    try:
        actual = desk.artifacts.length(sha256)
        if actual is None:
            there = os.path.lexists(desk.artifacts.path(sha256))
            return "is no file of its own" if there else "is missing"
        if actual != size:
            return f"has {actual} bytes instead of {size}"
        if verify and _digest(desk, sha256) != sha256:
            return "its content has changed"
    except InboxOrchError as error:
        return "is missing" if error.code == "not_found" else f"cannot be read: {error.message}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def _digest(desk: Desk, sha256: str) -> str:
    import hashlib

    with desk.artifacts.open(sha256) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreferenced(desk: Desk) -> Check:
    count = size = 0
    unreadable: list[OSError] = []
    with desk.database.snapshot() as snapshot:
        for sha256, path in desk.artifacts.contents(unreadable.append):
            if not care.is_referenced(snapshot, sha256):
                with contextlib.suppress(FileNotFoundError):
                    size += os.lstat(path).st_size
                    count += 1
    text = f"{count} files of {size} bytes belong to no thread"
    text += "; `inbox prune` collects those that stay so" if count else ""
    good = Check("unreferenced_files", OK, text, total=count)
    return out_of_reach("unreferenced_files", unreadable) or good
