"""Opening the database file with SQLite, also where there is no room for its shared index.

Readers and writers find their way in the log by an index that they share, `-shm`. On a full disk
it cannot be made. A process that has the file for itself, in SQLite's exclusive locking mode,
keeps the index in its own memory (sqlite.org/wal.html, section 8). That works only while no other
process has the database open, and none can open it meanwhile: so it is for short calls only.
"""

import sqlite3
from collections.abc import Callable

from inbox_orch.migrations import APPLICATION_ID

from ...clock import Clock
from ...errors import InboxOrchError
from ..engine import Session
from ..layout import Layout
from .refusals import named, patiently, primary_code, without_tables

SLICE_MS = 50
LOG_BYTES = 4 * 1024 * 1024
DEFAULT_BUSY_SECONDS = 10.0

Notice = Callable[[str], None]


def _unheard(text: str) -> None:
    """The notice of those who want none."""


class Opening:
    """How a database is opened.

    `clock`: the machine's own when there is none. `busy_seconds`: how long a write waits for other
    writers. `notice` is told what people should know. `looks`: the schema of an older release
    stays as it is until something is written. `perhaps_alone`: where there is no room for sharing
    it, nobody else can have it open meanwhile; for what looks and for what makes room.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        busy_seconds: float = DEFAULT_BUSY_SECONDS,
        notice: Notice = _unheard,
        looks: bool = False,
        perhaps_alone: bool = False,
    ) -> None:
        self.clock = clock
        self.busy_seconds = busy_seconds
        self.notice = notice
        self.looks = looks
        self.perhaps_alone = perhaps_alone


def connect(
    layout: Layout, busy_seconds: float, *, perhaps_alone: bool
) -> tuple[sqlite3.Connection, InboxOrchError | None]:
    """A connection; with it, what kept it from being shared, if it had to be opened alone.

    `perhaps_alone`: only for calls that do not wait. Raises sqlite3.Error; error `busy`.
    """
    try:
        return patiently(layout, busy_seconds, lambda: _connected(layout)), None
    except sqlite3.Error as error:
        if not perhaps_alone or primary_code(error) != sqlite3.SQLITE_IOERR:
            raise
        refusal = named(layout, error)
    return patiently(layout, busy_seconds, lambda: _connected(layout, alone=True)), refusal


def _connected(layout: Layout, *, alone: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(
        "file:" + uri_path(layout.database) + "?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=SLICE_MS / 1000,
    )
    try:
        connection.row_factory = sqlite3.Row
        if alone:
            # Before anything is read: the first look at the log decides where its index is. What
            # SQLite would put into files of its own has no room, either.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def uri_path(path: str) -> str:
    """The path with what has a meaning in a URI escaped (sqlite.org/uri.html).

    The authority is empty: two slashes at the start of a path are not taken for one.
    """
    return "//" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def schema_version(layout: Layout, connection: sqlite3.Connection) -> int:
    """The version of the schema; error `wrong_database` when the file is not one of ours."""
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if application != APPLICATION_ID:
        raise InboxOrchError(
            "wrong_database",
            f"{layout.database} is a SQLite file, but not a database of inbox",
            hint="check --db and INBOX_DB; `inbox init` makes a database",
            details={"path": layout.database},
        )
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def database_id(layout: Layout, session: Session) -> str:
    """The id of the database; error `corrupt` when there is nothing in it that has one."""
    try:
        row = session.one("SELECT value FROM meta WHERE key = 'database_id'")
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", None) != "SQLITE_ERROR":
            raise
        row = None  # there is no such table
    if row is None:
        raise without_tables(layout)
    return str(row[0])
