"""Opening the database file with SQLite, also where there is no room for its shared index.

Readers and writers find their way in the log by an index that they share, `-shm`. On a full disk
it cannot be made. Whoever has the file for itself, in SQLite's exclusive locking mode, keeps the
index in its own memory (sqlite.org/wal.html, section 8): as long as nobody else has the database
open, and then the index is there. Meanwhile nobody else gets in, so it is for short calls only.
"""

import sqlite3

from .errors import InboxOrchError
from .layout import Layout
from .refusals import named, patiently, primary_code

SLICE_MS = 50
LOG_BYTES = 4 * 1024 * 1024


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
