"""Copies of the whole database, made by SQLite's own backup, and reading such a copy out.

The live file is opened by nobody but SQLite, and its connection is the caller's. A copy is
another file, on which only this process works.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from inbox_orch.shared.clock import Moment, rfc3339
from inbox_orch.shared.events import every as every_event

from ..domain.model import Artifact, Lease
from . import messages, threads

# So many pages at once that the loop costs nothing, and so few that a signal is heard in time.
_PAGES_AT_ONCE = 2048


def copy_to_file(source: sqlite3.Connection, path: str) -> None:
    """Copy what `source` sees into the empty file at `path`.

    `source` is in a read transaction: what others commit meanwhile neither shows in the copy
    nor makes it start again. Nothing is on disk for sure until the caller has synced the file.
    """
    target = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(target):
        # Whoever dies here leaves a file that nobody has been told of.
        target.execute("PRAGMA journal_mode=OFF").fetchall()
        target.execute("PRAGMA synchronous=OFF")
        _copy(source, target)


@contextlib.contextmanager
def private_copy(source: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A copy of what `source` sees, in a nameless file that is gone with the connection.

    It lies in SQLite's folder for temporary files (SQLITE_TMPDIR, TMPDIR, /var/tmp, /tmp;
    sqlite.org/tempfiles.html), readable by nobody else.
    """
    target = sqlite3.connect("", isolation_level=None)
    with contextlib.closing(target):
        target.execute("PRAGMA journal_mode=OFF").fetchall()
        _copy(source, target)
        target.row_factory = sqlite3.Row
        yield target


def _copy(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    assert source.in_transaction, "the copy is of one snapshot"
    source.backup(target, pages=_PAGES_AT_ONCE, progress=_hear_signals)


def _hear_signals(status: int, remaining: int, total: int) -> None:
    """Python runs its signal handlers between two calls of this function."""


def check_copy(path: str) -> list[str]:
    """What SQLite's integrity check has against a copy that nobody else uses yet."""
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.closing(connection):
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        found = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    return [text for text in found if text != "ok"] + ([] if mode == "wal" else [f"mode {mode}"])


# -- reading it out ------------------------------------------------------------------------

Line = dict[str, Any]


def lines(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    """Everything as flat objects with a `type`, table by table, one row in memory at a time."""
    sections: tuple[Callable[[sqlite3.Connection, Moment], Iterator[Line]], ...] = (
        _meta,
        _threads,
        _messages,
        _artifacts,
        _leases,
        _cursors,
        _events,
    )
    for section in sections:
        yield from section(connection, now)


def _meta(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    values = {row[0]: row[1] for row in connection.execute("SELECT key, value FROM meta")}
    newest = connection.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0]
    yield {
        "type": "meta",
        "database": values.get("database_id"),
        "created_at": rfc3339(int(values["created_at"])) if "created_at" in values else None,
        "exported_at": rfc3339(now.wall_ms),
        "schema_version": connection.execute("PRAGMA user_version").fetchone()[0],
        "newest_event": str(newest),
    }


def _threads(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    for thread in threads.every(connection, now):
        yield {"type": "thread", **thread.as_json()}


def _messages(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    for message in messages.every(connection):
        yield {"type": "message", **message.as_json(full=True)}


def _artifacts(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    for row in connection.execute(
        "SELECT name, sha256, bytes, message_id, created_at, pruned, thread_id"
        " FROM artifact ORDER BY id"
    ):
        *columns, thread_id = tuple(row)
        artifact = Artifact._make(columns)
        shape = artifact._replace(pruned=bool(artifact.pruned)).as_json()
        yield {"type": "artifact", "thread": thread_id, **shape}


def _leases(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    """Without the token: whoever reads the export must not be able to act as the holder."""
    for row in connection.execute(
        "SELECT thread_id, epoch, holder, lease_ms, acquired_at, renewed_at, expires_at,"
        " ended_at IS NULL AND (boot_id <> ? OR deadline_monotonic <= ?),"
        " renewals, counted, ended_at, ended_by FROM lease ORDER BY acquired_at, thread_id, epoch",
        (now.boot_id, now.monotonic_ms),
    ):
        *columns, renewals, counted, ended_at, ended_by = tuple(row)
        lease = Lease._make((*columns, None))
        yield {
            "type": "lease",
            **lease._replace(expired=bool(lease.expired)).as_json(),
            "renewals": renewals,
            "counted": bool(counted),
            "ended_at": rfc3339(ended_at),
            "ended_by": ended_by,
        }


def _cursors(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    for row in connection.execute(
        "SELECT agent, mailbox, position, updated_at FROM read_cursor ORDER BY agent, mailbox"
    ):
        agent, mailbox, position, updated_at = tuple(row)
        yield {
            "type": "cursor",
            "agent": agent,
            "mailbox": mailbox,
            "position": str(position),
            "updated_at": rfc3339(updated_at),
        }


def _events(connection: sqlite3.Connection, now: Moment) -> Iterator[Line]:
    for event in every_event(connection):
        yield {"type": "event", **event.as_json()}
