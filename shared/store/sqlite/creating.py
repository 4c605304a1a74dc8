"""Making a new database, and refusing where write-ahead logging is not safe."""

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterable

from ...clock import Clock, SystemClock
from ...errors import InboxOrchError, usage
from ...ids import new_id, printable
from ..folders import file_failure, refuse_links, sync_folder
from ..gate import Gate
from ..layout import FOLDER_NAME, Layout, layout_of
from .connecting import DEFAULT_BUSY_SECONDS, uri_path
from .log import size_of
from .refusals import require_file, translated
from .reserve import keep_reserve

# Network and host-shared file systems have no shared memory between machines, or wrong locks
# (sqlite.org/wal.html, section 2.2; reports of damage within a minute on virtiofs and drvfs).
UNSAFE_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "drvfs", "v9fs", "afs", "ceph"}
)


def create(path: str, *, clock: Clock | None = None, forced: bool = False) -> bool:
    """Make the database at `path` unless it is there; returns whether it was made.

    The file appears whole or not at all: it is made under another name, behind the gate, and
    then renamed. Errors: `unsafe_filesystem`, `read_only`, `disk_full`, `busy`, `corrupt`,
    `unsafe_link`, `wrong_database` (something else than a file is there).
    """
    clock = clock or SystemClock()
    layout = layout_of(path)
    if not forced:
        refuse_unsafe_filesystem(os.path.dirname(layout.database))
    refuse_links(*layout.own)
    try:
        require_file(layout)
        with contextlib.ExitStack() as failing:
            made = _make_behind_the_gate(layout, clock, failing)
            failing.pop_all()
        if made:  # what was there before may not be ours
            keep_reserve(layout)
        return made
    except OSError as error:
        raise file_failure(error.filename or layout.database, error) from error


def _make_behind_the_gate(layout: Layout, clock: Clock, failing: contextlib.ExitStack) -> bool:
    """See `create`. `failing` gets what takes away again the folders that were made, unless
    another process has put something there."""
    fresh = not os.path.lexists(layout.gate)
    gate = _acquired(layout, failing)
    try:
        with contextlib.ExitStack() as unfinished:
            made = not (os.path.exists(layout.database) and os.path.getsize(layout.database) > 0)
            if fresh and made:
                unfinished.callback(_unlink, layout.gate)
            _write_ignore_file(os.path.dirname(layout.database), unfinished)
            if made:
                _set_orphan_log_aside(layout, clock)
                with translated(layout):
                    _make_whole(layout, clock, unfinished)
            unfinished.pop_all()
        return made
    finally:
        gate.release()


def _acquired(layout: Layout, failing: contextlib.ExitStack) -> Gate:
    """The gate; once more when a call that failed has taken it away meanwhile."""
    while True:
        _make_folders(layout, failing)
        gate = Gate(layout.gate)
        try:
            gate.acquire(DEFAULT_BUSY_SECONDS)
        except InboxOrchError as error:
            if error.code != "no_database":  # the folder is gone again
                raise
            continue
        if gate.in_place:
            return gate
        gate.release()


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what counts
        os.unlink(path)


def _remove_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def filesystem_type(path: str) -> str | None:
    """The type of the file system under `path`, by the longest mount point; None if unknown."""
    path = _existing_ancestor(path)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return _type_among(file, path)
    except OSError:
        return None


def _type_among(mounts: Iterable[str], path: str) -> str | None:
    """The type in the lines of proc_pid_mountinfo(5) whose mount point lies nearest above."""
    best, best_type = "", None
    for fields in map(str.split, mounts):
        # Spaces, tabs, newlines and backslashes stand there in octal, nothing else does.
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, best_type = point, fields[fields.index("-") + 1]
    return best_type


def refuse_unsafe_filesystem(folder: str) -> None:
    """Error `unsafe_filesystem` where WAL would lose or damage data."""
    kind = filesystem_type(folder)
    if kind is not None and (kind in UNSAFE_FILESYSTEMS or kind.startswith("fuse")):
        raise InboxOrchError(
            "unsafe_filesystem",
            f"{folder} is on {kind}, where SQLite's write-ahead log is not safe",
            hint="choose a folder on a local disk, or pass --force to take the risk",
            details={"path": folder, "filesystem": kind},
        )


def _existing_ancestor(path: str) -> str:
    while not os.path.exists(path):
        path = os.path.dirname(path)
    return os.path.realpath(path)


def _make_folders(layout: Layout, failing: contextlib.ExitStack) -> None:
    folder = os.path.dirname(layout.database)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise usage(
            f"{printable(folder)} is there, and is no folder",
            hint="move it away, or name another place",
        )
    for above in reversed(_missing_above(folder)):
        _make_folder(above, 0o777, failing)
    for own in (folder, layout.artifacts, layout.bells):
        _make_folder(own, 0o700, failing)


def _missing_above(folder: str) -> list[str]:
    """The folders above it that are not there, the nearest first."""
    above = os.path.dirname(folder)
    missing: list[str] = []
    while not os.path.isdir(above) and above != os.path.dirname(above):
        missing.append(above)
        above = os.path.dirname(above)
    return missing


def _make_folder(path: str, mode: int, failing: contextlib.ExitStack) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, mode)
        failing.callback(_remove_empty, path)


def _write_ignore_file(folder: str, failing: contextlib.ExitStack) -> None:
    """Make the folder ignore itself in git, unless it says something about that already.

    The gate is held, so one name for all unfinished ones does. An empty file says nothing: a
    power cut may leave one.
    """
    path = os.path.join(folder, ".gitignore")
    if os.path.basename(folder) != FOLDER_NAME or size_of(path) > 0:
        return
    unfinished = path + ".new"
    failing.callback(_unlink, unfinished)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(unfinished, flags, 0o600), "w") as file:
        file.write("*\n")
        file.flush()
        os.fsync(file.fileno())
    if not os.path.lexists(path):
        failing.callback(_unlink, path)
    os.rename(unfinished, path)
    sync_folder(folder)


def _set_orphan_log_aside(layout: Layout, clock: Clock) -> None:
    """A log without its database holds a user's commits: keep it, but never replay it."""
    stamp = clock.now().wall_ms
    for path in (layout.wal, layout.shm):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, f"{path}.orphan-{stamp}")


def _make_whole(layout: Layout, clock: Clock, unfinished_parts: contextlib.ExitStack) -> None:
    """Make the database under another name, and give it its own once it is whole.

    SQLite would make the file before the schema: a process killed in between would leave a
    database that is none. The gate is held, so one name for all does, and what lies there is
    left over from such a death.
    """
    unfinished = layout._replace(database=layout.database + ".new")
    for path in (unfinished.database, unfinished.wal, unfinished.shm):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        unfinished_parts.callback(_unlink, path)
    _write_schema(unfinished, clock)
    os.rename(unfinished.database, layout.database)
    unfinished_parts.pop_all()  # it is there, and others may have it open
    folder = os.path.dirname(layout.database)
    sync_folder(folder)
    # The folder is new as well, unless a process was killed before this. A folder above it that
    # may only be passed through cannot be synced; nothing was made in it just now.
    with contextlib.suppress(PermissionError):
        sync_folder(os.path.dirname(folder))


def _write_schema(layout: Layout, clock: Clock) -> None:
    from inbox_orch.migrations.apply import migrate

    # The file mode comes from the umask: SQLite has no other way to say it, and changing the
    # mode afterwards would leave a moment in which others can read.
    previous = os.umask(0o077)
    try:
        connection = _connect_to_make(layout)
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("BEGIN IMMEDIATE")
            migrate(connection)
            _stamp(connection, clock)
            connection.execute("COMMIT")
            # `close` would do the same, and say nothing when the disk is full: the file would get
            # its name without what is still in its log.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            connection.close()
        assert size_of(layout.wal) == 0, "the log of a new database is not empty"
    finally:
        os.umask(previous)


def _connect_to_make(layout: Layout) -> sqlite3.Connection:
    """The one connection that may make the file."""
    return sqlite3.connect(
        "file:" + uri_path(layout.database) + "?mode=rwc",
        uri=True,
        isolation_level=None,
        timeout=DEFAULT_BUSY_SECONDS,
    )


def _stamp(connection: sqlite3.Connection, clock: Clock) -> None:
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?)",
        [("database_id", new_id()), ("created_at", str(clock.now().wall_ms))],
    )
