"""Rows of `lease`: one for each time that somebody has acquired a thread."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import Moment

from ..domain.leases import is_expired


class LeaseRow(NamedTuple):
    """A lease as the services decide about it."""

    thread_id: str
    epoch: int
    token: str
    holder: str
    lease_ms: int
    boot_id: str
    deadline_monotonic: int
    expires_at: int
    counted: bool
    read_position: int
    ended_by: str | None
    end_digest: str | None
    end_message: int | None

    def expired(self, now: Moment) -> bool:
        """Whether its time is over, whether or not anybody has noticed."""
        return is_expired(self.boot_id, self.deadline_monotonic, now)


_COLUMNS = (
    "thread_id, epoch, token, holder, lease_ms, boot_id, deadline_monotonic, expires_at,"
    " counted, read_position, ended_by, end_digest, end_message"
)


def insert(
    connection: sqlite3.Connection,
    *,
    thread_id: str,
    epoch: int,
    token: str,
    holder: str,
    lease_ms: int,
    now: Moment,
    counted: bool,
    mailbox: str,
    read_position: int,
) -> None:
    """A new live lease; the database refuses a second one on the same thread."""
    connection.execute(
        "INSERT INTO lease (thread_id, epoch, token, holder, lease_ms, boot_id,"
        " deadline_monotonic, expires_at, acquired_at, counted, mailbox, read_position)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            thread_id,
            epoch,
            token,
            holder,
            lease_ms,
            now.boot_id,
            now.monotonic_after(lease_ms),
            now.wall_ms + lease_ms,
            now.wall_ms,
            counted,
            mailbox,
            read_position,
        ),
    )


def by_token(connection: sqlite3.Connection, token: str) -> LeaseRow | None:
    """The lease that was acquired with this token, live or ended."""
    return _one(connection, "token = ?", (token,))


def live(connection: sqlite3.Connection, thread_id: str) -> LeaseRow | None:
    """The lease of a thread that has not ended; it may have expired unnoticed."""
    return _one(connection, "thread_id = ? AND ended_at IS NULL", (thread_id,))


def of_epoch(connection: sqlite3.Connection, thread_id: str, epoch: int) -> LeaseRow | None:
    """The lease with which a thread's epoch began, live or ended; None for epoch 0."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM lease WHERE thread_id = ? AND epoch = ?", (thread_id, epoch)
    ).fetchone()
    return None if row is None else LeaseRow(*row)._replace(counted=bool(row["counted"]))


def renew(connection: sqlite3.Connection, token: str, lease_ms: int, now: Moment) -> int:
    """Set the deadline anew; returns the wall-clock time for people.

    Never moves it to the past of what has been promised: a shorter renewal shortens, as asked,
    but a wall clock that went back does not lower `expires_at`.
    """
    rows = connection.execute(
        "UPDATE lease SET lease_ms = ?, boot_id = ?, deadline_monotonic = ?,"
        " expires_at = max(?, CASE WHEN lease_ms <= ? THEN expires_at ELSE 0 END),"
        " renewed_at = ?, renewals = renewals + 1"
        " WHERE token = ? AND ended_at IS NULL RETURNING expires_at",
        (
            lease_ms,
            now.boot_id,
            now.monotonic_after(lease_ms),
            now.wall_ms + lease_ms,
            lease_ms,
            now.wall_ms,
            token,
        ),
    ).fetchall()
    return int(rows[0][0])


def end(
    connection: sqlite3.Connection,
    thread_id: str,
    epoch: int,
    *,
    ended_by: str,
    now_ms: int,
    digest: str | None = None,
    message_id: int | None = None,
) -> None:
    """End a live lease, and remember the request that ended it for an exact repeat."""
    connection.execute(
        "UPDATE lease SET ended_at = ?, ended_by = ?, end_digest = ?, end_message = ?"
        " WHERE thread_id = ? AND epoch = ? AND ended_at IS NULL",
        (now_ms, ended_by, digest, message_id, thread_id, epoch),
    )


def advance_read_position(connection: sqlite3.Connection, token: str, message_id: int) -> None:
    """Remember up to where the holder has read its thread."""
    connection.execute(
        "UPDATE lease SET read_position = max(read_position, ?) WHERE token = ?",
        (message_id, token),
    )


_EXPIRED = (
    "SELECT thread_id FROM (SELECT thread_id FROM lease WHERE mailbox = :m AND boot_id = :b"
    " AND deadline_monotonic <= :d AND ended_at IS NULL LIMIT :n)"
    " UNION ALL SELECT thread_id FROM (SELECT thread_id FROM lease WHERE mailbox = :m"
    " AND boot_id < :b AND ended_at IS NULL LIMIT :n)"
    " UNION ALL SELECT thread_id FROM (SELECT thread_id FROM lease WHERE mailbox = :m"
    " AND boot_id > :b AND ended_at IS NULL LIMIT :n) LIMIT :n"
)


def expired_in(
    connection: sqlite3.Connection, mailboxes: Iterable[str], now: Moment, limit: int
) -> list[str]:
    """At most `limit` threads of these mailboxes whose lease is over; by index."""
    found: list[str] = []
    for mailbox in mailboxes:
        rows = connection.execute(
            _EXPIRED,
            {"m": mailbox, "b": now.boot_id, "d": now.monotonic_ms, "n": limit - len(found)},
        ).fetchall()
        found.extend(row[0] for row in rows)
        if len(found) >= limit:
            break
    return found


_EXPIRED_BY_RANK = (
    "SELECT thread.priority, thread.number, thread.id FROM thread WHERE thread.id IN ("
    " SELECT thread_id FROM lease WHERE mailbox = :m AND boot_id = :b"
    " AND deadline_monotonic <= :d AND ended_at IS NULL"
    " UNION ALL SELECT thread_id FROM lease WHERE mailbox = :m AND boot_id < :b"
    " AND ended_at IS NULL"
    " UNION ALL SELECT thread_id FROM lease WHERE mailbox = :m AND boot_id > :b"
    " AND ended_at IS NULL) ORDER BY thread.priority DESC, thread.number LIMIT :n"
)


def expired_by_rank(
    connection: sqlite3.Connection, mailboxes: Iterable[str], now: Moment, limit: int
) -> list[str]:
    """At most `limit` threads of these mailboxes whose lease is over, those first that would be
    claimed first. Looks at all whose lease is over."""
    found: list[tuple[int, int, str]] = []
    for mailbox in mailboxes:
        values = {"m": mailbox, "b": now.boot_id, "d": now.monotonic_ms, "n": limit}
        rows = connection.execute(_EXPIRED_BY_RANK, values).fetchall()
        found.extend((-row[0], row[1], row[2]) for row in rows)
    return [thread_id for _, _, thread_id in sorted(found)[:limit]]


def next_expiry(
    connection: sqlite3.Connection, mailboxes: Sequence[str], now: Moment
) -> int | None:
    """When the next live lease of these mailboxes runs out, in monotonic milliseconds."""
    times = [
        connection.execute(
            "SELECT min(deadline_monotonic) FROM lease"
            " WHERE mailbox = ? AND boot_id = ? AND ended_at IS NULL",
            (mailbox, now.boot_id),
        ).fetchone()[0]
        for mailbox in mailboxes
    ]
    return min((t for t in times if t is not None), default=None)


def mailboxes_with_live_leases(connection: sqlite3.Connection) -> list[str]:
    """The mailboxes in which somebody holds something."""
    rows = connection.execute(
        "SELECT DISTINCT mailbox FROM lease WHERE ended_at IS NULL"
    ).fetchall()
    return [row[0] for row in rows]


def mailboxes_of_held(connection: sqlite3.Connection, sender: str) -> list[str]:
    """The mailboxes in which somebody holds a thread that `sender` opened."""
    rows = connection.execute(
        "SELECT DISTINCT lease.mailbox FROM lease INDEXED BY lease_expiry"
        " CROSS JOIN thread ON thread.id = lease.thread_id"
        " WHERE lease.ended_at IS NULL AND thread.sender = ?",
        (sender,),
    ).fetchall()
    return [row[0] for row in rows]


def _one(connection: sqlite3.Connection, where: str, values: tuple[str, ...]) -> LeaseRow | None:
    row = connection.execute(f"SELECT {_COLUMNS} FROM lease WHERE {where}", values).fetchone()
    if row is None:
        return None
    return LeaseRow(*row)._replace(counted=bool(row["counted"]))
