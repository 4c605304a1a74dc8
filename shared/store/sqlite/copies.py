"""Copies of the whole database, made by SQLite's own backup.

The live file is opened by SQLite alone, and its connection is the caller's. A copy is
another file, on which only this process works.
"""

import contextlib
import sqlite3
from collections.abc import Iterator

from ..engine import Session
from .sessions import Snapshot, connection_of

# So many pages at once that the loop costs nothing, and so few that a signal is heard in time.
_PAGES_AT_ONCE = 2048


def copy_to_file(source: Session, path: str) -> None:
    """Copy what `source` sees into the empty file at `path`.

    `source` is in a read transaction: what others commit meanwhile neither shows in the copy
    nor makes it start again. Nothing is on disk for sure until the caller has synced the file.
    """
    target = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(target):
        # A process that dies here leaves a file that no other has been told of.
        target.execute("PRAGMA journal_mode=OFF").fetchall()
        target.execute("PRAGMA synchronous=OFF")
        _copy(connection_of(source), target)


@contextlib.contextmanager
def private_copy(source: Session) -> Iterator[Session]:
    """A copy of what `source` sees, in a nameless file that is gone with the connection.

    It lies in SQLite's folder for temporary files (SQLITE_TMPDIR, TMPDIR, /var/tmp, /tmp;
    sqlite.org/tempfiles.html), readable by no other user.
    """
    target = sqlite3.connect("", isolation_level=None)
    with contextlib.closing(target):
        target.execute("PRAGMA journal_mode=OFF").fetchall()
        _copy(connection_of(source), target)
        target.row_factory = sqlite3.Row
        yield Snapshot(target)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    assert source.in_transaction, "the copy is of one snapshot"
    source.backup(target, pages=_PAGES_AT_ONCE, progress=_hear_signals)


def _hear_signals(status: int, remaining: int, total: int) -> None:
    """Python runs its signal handlers between two calls of this function."""


def check_copy(path: str) -> list[str]:
    """What SQLite's integrity check has against a copy that is not used yet."""
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(connection):
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        found = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    return [text for text in found if text != "ok"] + ([] if mode == "wal" else [f"mode {mode}"])
