"""What stands in the way of SQLite, as named errors: locks, full disks, damage, files that are
missing or are not what they should be.

Also who that is, where the system tells. Opens nothing of the database and decides nothing.
"""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from ...errors import InboxOrchError, usage
from ..layout import DATABASE_NAME, Layout, database_in

Result = TypeVar("Result")

# PROTOCOL: a reader lost the race for the log too often (sqlite.org/rescode.html#protocol).
_REFUSED_BY_A_LOCK = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextlib.contextmanager
def translated(layout: Layout) -> Iterator[None]:
    """Turn SQLite's errors into named ones, by its result code, never by its text."""
    try:
        yield
    except sqlite3.Error as error:
        raise named(layout, error) from error


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code (sqlite.org/rescode.html), 0 when there is none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def named(layout: Layout, error: sqlite3.Error) -> InboxOrchError:
    """The named error for one of SQLite's, by its result code."""
    if is_locked_out(error):
        return _busy(layout, None)
    code, message, hint = _told(layout, error)
    name = getattr(error, "sqlite_errorname", None)
    details = {"path": layout.database, "sqlite": name}
    return InboxOrchError(code, message, hint=hint, details=details)


def _told(layout: Layout, error: sqlite3.Error) -> tuple[str, str, str]:
    """The code, the message and the hint for what no lock is to blame for."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return (
            "disk_full",
            f"no space left for {layout.database}",
            "free some space and repeat the command; nothing was changed",
        )
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_GETTEMPPATH:
        return (
            "read_only",
            "there is no folder in which SQLite could write temporary files",
            "set SQLITE_TMPDIR or TMPDIR to a folder that can be written",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        needed = (
            "reading needs the -wal and -shm files beside it, or the right to make them; "
            "writing needs the right to write the folder"
        )
        return "read_only", f"{layout.database} cannot be opened for this: {error}", needed
    # An error of operation that is not SQLite's own: Python could not make text of a column.
    unreadable = code == 0 and isinstance(error, sqlite3.OperationalError)
    if unreadable or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return (
            "corrupt",
            f"{layout.database} is damaged or is no database: {error}",
            "nothing was written; `inbox doctor` says what can still be read out",
        )
    if code == sqlite3.SQLITE_IOERR:
        return (
            _io_error_code(layout),
            f"reading or writing {layout.database} failed: {error}",
            "check the disk and its free space, then repeat the command",
        )
    return "internal", f"SQLite: {error}", "this is a bug; INBOX_DEBUG=1 shows where it happened"


def _io_error_code(layout: Layout) -> str:
    """An I/O error on a disk without a free block is a full disk (the -shm cannot grow)."""
    try:
        status = os.statvfs(os.path.dirname(layout.database))
    except OSError:
        return "io_error"
    return "disk_full" if status.f_bavail * status.f_frsize < 128 * 1024 else "io_error"


def _busy(layout: Layout, waited_seconds: float | None) -> InboxOrchError:
    waited = "" if waited_seconds is None else f" for {waited_seconds:.3g} s"
    return InboxOrchError(
        "busy",
        f"another program holds the write lock of {layout.database}{waited}",
        hint="try again; INBOX_BUSY_TIMEOUT sets how many seconds to wait",
        details={"path": layout.database},
    )


def require_file(layout: Layout) -> None:
    """Error `wrong_database` when what is at the path is no regular file: SQLite would not say so,
    and a pipe would be replaced. Nothing is opened; what is not there is no matter of this.

    Raises OSError.
    """
    try:
        mode = os.stat(layout.database).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISREG(mode):
        return
    kind = next((name for is_it, name in _KINDS if is_it(mode)), "no regular file")
    within = (database_in(layout.database), os.path.join(layout.database, DATABASE_NAME))
    inner = next(filter(os.path.isfile, within), None)
    hint = "move it away, or name the file of a database with --db or INBOX_DB"
    raise InboxOrchError(
        "wrong_database",
        f"{layout.database} is {kind}, and no database",
        hint=hint if inner is None else f"did you mean --db {inner}?",
        details={"path": layout.database},
    )


def out_of_place(layout: Layout, *, removed: bool) -> InboxOrchError:
    """The database file was removed, or replaced by another, while it was open."""
    path = layout.database
    if removed:
        return InboxOrchError(
            "no_database",
            f"{path} was removed while it was in use",
            hint="nothing was written; `inbox where` tells which database there is now",
            details={"path": path},
        )
    return InboxOrchError(
        "wrong_database",
        f"{path} was replaced by another file while it was in use",
        hint="call again to use the new one",
        details={"path": path},
    )


def other_database(layout: Layout, found: str, expected: str) -> InboxOrchError:
    """A database was opened, and another one was meant; `found` and `expected` are ids."""
    return InboxOrchError(
        "wrong_database",
        f"{layout.database} is database {found}, not {expected}",
        hint="`inbox where` shows which database a folder leads to",
        details={"path": layout.database, "id": found, "expected": expected},
    )


def without_tables(layout: Layout) -> InboxOrchError:
    """The file says that it is one of ours, and has nothing of ours in it."""
    return InboxOrchError(
        "corrupt",
        f"{layout.database} is marked as ours, but its tables are missing",
        hint="nothing was written; a copy made with `cp` can look like this: use `inbox backup`",
        details={"path": layout.database},
    )


def of_later_release(version: int, known: int) -> InboxOrchError:
    """The schema is `version`, that of a later release; this one knows them up to `known`."""
    return InboxOrchError(
        "schema_newer",
        f"the database has schema {version}, this program knows {known}",
        hint="use the newer release of inbox-orch; nothing was changed",
        details={"schema": version, "supported": known},
    )


def not_usable(*, forked: bool, elsewhere: bool) -> InboxOrchError:
    """The error for a call on a database that another process or thread has opened, or that is
    closed."""
    if forked:
        return usage(
            "the database was opened before the fork of this process",
            hint="open it in the child process",
        )
    if elsewhere:
        return usage("the database was opened in another thread", hint="open it in each thread")
    return usage("the database has been closed", hint="open it again")


def not_to_be_upgraded(layout: Layout) -> InboxOrchError:
    """The schema is that of an older release, and this process may not write the file."""
    return InboxOrchError(
        "read_only",
        f"{layout.database} has an older schema and cannot be written",
        hint="run any command once as a user who may write it",
        details={"path": layout.database},
    )


def missing(layout: Layout) -> InboxOrchError:
    """There is no database at the path; says what may be meant, or what is left of one."""
    hint = "`inbox init` makes a database"
    folder = os.path.dirname(layout.database)
    if os.path.isdir(folder):
        near = _nearest(os.path.basename(layout.database), os.listdir(folder))
        if near:
            hint = f"did you mean {os.path.join(folder, near)}?"
    if os.path.exists(layout.wal):
        hint = (
            "a -wal file without its database is left over; "
            "`inbox init` sets it aside and makes a new database"
        )
    return InboxOrchError(
        "no_database",
        f"there is no database at {layout.database}",
        hint=hint,
        details={"path": layout.database},
    )


def _nearest(name: str, others: list[str]) -> str | None:
    import difflib

    candidates = [o for o in others if o.endswith((".db", ".sqlite", ".sqlite3"))]
    found = difflib.get_close_matches(name, candidates, n=1)
    return found[0] if found else None


def is_locked_out(error: sqlite3.Error) -> bool:
    """Whether a lock of another process is in the way, which may be gone in a moment."""
    return primary_code(error) in _REFUSED_BY_A_LOCK


def patiently(layout: Layout, seconds: float, act: Callable[[], Result]) -> Result:
    """What `act` returns, tried again while a foreign lock refuses it; error `busy`.

    In short slices: SQLite's own waiting would not let a signal be heard.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_locked_out(error):
                raise
            if time.monotonic() >= deadline:
                raise _busy(layout, seconds) from error
            import random

            time.sleep(random.uniform(0.001, 0.004))


def oldest_reader(layout: Layout) -> str | None:
    """The process that has held a read lock on the log the longest, as Linux tells it.

    Readers hold POSIX locks on bytes 123 to 127 of the `-shm` file (sqlite.org/walformat.html);
    /proc/locks names their processes. None where it cannot be told.
    """
    try:
        inode = os.stat(layout.shm).st_ino
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.replace("->", "").split() for line in file]
    except OSError:
        return None
    processes = {
        int(row[4])
        for row in rows
        if row[1] == "POSIX"
        and row[5].rsplit(":", 1)[-1] == str(inode)
        and row[6] != "EOF"
        and 123 <= int(row[6]) <= 127
    } - {os.getpid()}
    described = [text for text in map(_describe_process, processes) if text is not None]
    return min(described)[1] if described else None


def _describe_process(process: int) -> tuple[int, str] | None:
    """(start time in clock ticks since boot, text) of a process that is still there."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except OSError:
        return None
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    return int(stat[stat.rindex(")") + 2 :].split()[19]), f"process {process} ({name})"
