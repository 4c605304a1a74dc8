"""Rows of `thread`, and of `lease` where they are read together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.store.engine import Row, Session

from ..domain.leases import is_expired
from ..domain.model import Lease, Thread

_THREAD = (
    "t.id, t.number, t.subject, t.sender, t.mailbox, t.state, t.priority, t.sealed,"
    " t.available_at, t.deliveries, t.max_deliveries, t.epoch, t.holder, t.question,"
    " t.question_deadline, t.progress, t.reason, t.fatal, t.late, t.created_at, t.updated_at,"
    " t.finished_at, t.pruned, t.uncounted, t.cancel_seen, t.result_schema IS NOT NULL"
)
_LEASE = (
    "l.epoch, l.holder, l.lease_ms, l.acquired_at, l.renewed_at, l.expires_at, l.boot_id,"
    " l.deadline_monotonic"
)
_FROM = (
    f"SELECT {_THREAD}, {_LEASE} FROM thread AS t"
    " LEFT JOIN lease AS l ON l.thread_id = t.id AND l.epoch = t.epoch AND l.ended_at IS NULL"
)
_COUNT = len(Thread._fields) - 1
_FLAGS = tuple(
    Thread._fields.index(name)
    for name in ("sealed", "fatal", "late", "pruned", "uncounted", "cancel_seen", "has_schema")
)


def get(tx: Session, thread_id: str, now: Moment) -> Thread | None:
    """One thread with its live lease."""
    row = tx.one(f"{_FROM} WHERE t.id = ?", (thread_id,))
    return None if row is None else _thread(row, now)


def get_many(tx: Session, thread_ids: Sequence[str], now: Moment) -> dict[str, Thread]:
    """The threads with these ids."""
    found: dict[str, Thread] = {}
    for start in range(0, len(thread_ids), 500):
        part = thread_ids[start : start + 500]
        marks = ", ".join("?" * len(part))
        for row in tx.all(f"{_FROM} WHERE t.id IN ({marks})", tuple(part)):
            thread = _thread(row, now)
            found[thread.id] = thread
    return found


def every(tx: Session, now: Moment) -> Iterator[Thread]:
    """All threads by age, without holding them in memory."""
    return (_thread(row, now) for row in tx.stream(f"{_FROM} ORDER BY t.number"))


def result_schema(tx: Session, thread: Thread) -> str | None:
    """The schema of a thread's result, if it has one; asks for one only then."""
    if not thread.has_schema:
        return None
    return str(tx.only("SELECT result_schema FROM thread WHERE id = ?", (thread.id,))[0])


def insert(tx: Session, values: Mapping[str, Any]) -> None:
    """A new thread; the keys are column names."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    tx.run(f"INSERT INTO thread ({columns}) VALUES ({marks})", dict(values))


def update(
    tx: Session,
    thread_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
    expected_epoch: int,
) -> bool:
    """Change columns if the thread is still in the state and epoch that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE thread SET {assignments}"
            " WHERE id = :_id AND state = :_state AND epoch = :_epoch",
            {**changes, "_id": thread_id, "_state": expected_state, "_epoch": expected_epoch},
        )
        == 1
    )


_CANDIDATE = (
    "SELECT * FROM (SELECT id, priority, number FROM thread"
    " WHERE mailbox = ? AND state = 'pending' AND delayed = 0"
    " ORDER BY priority DESC, number LIMIT 1)"
)


def has_any(tx: Session, mailbox: str) -> bool:
    """Whether the mailbox has, or had, any thread."""
    row = tx.one("SELECT 1 FROM thread WHERE mailbox = ? LIMIT 1", (mailbox,))
    return row is not None


def next_claimable(tx: Session, mailboxes: Sequence[str]) -> str | None:
    """The id of the thread to be claimed next: by priority, then by age.

    One probe of the partial index for each mailbox, whatever the number of stored threads.
    """
    union = " UNION ALL ".join([_CANDIDATE] * len(mailboxes))
    row = tx.one(
        f"SELECT id FROM ({union}) ORDER BY priority DESC, number LIMIT 1", tuple(mailboxes)
    )
    return None if row is None else str(row[0])


def comes_before(tx: Session, one: str, other: str) -> bool:
    """Whether `one` of two threads would be claimed before the other: by priority, then age."""
    row = tx.only(
        "SELECT id FROM thread WHERE id IN (?, ?) ORDER BY priority DESC, number LIMIT 1",
        (one, other),
    )
    return str(row[0]) == one


def mark_claimed(tx: Session, thread_id: str, *, holder: str, now_ms: int) -> Row | None:
    """Hand a pending thread to `holder`: epoch + 1, delivery + 1 unless it is not counted.

    One statement, guarded by the state, exhausted before the commit as it must be.
    """
    rows = tx.all(
        "UPDATE thread SET state = 'claimed', holder = ?, epoch = epoch + 1, delayed = 0,"
        " deliveries = deliveries + (1 - uncounted), uncounted = 0, reason = NULL, updated_at = ?"
        " WHERE id = ? AND state = 'pending'"
        " RETURNING epoch, deliveries, mailbox",
        (holder, now_ms, thread_id),
    )
    return rows[0] if rows else None


def make_due_available(tx: Session, mailboxes: Sequence[str], now_ms: int, limit: int) -> bool:
    """Put delayed threads whose time has come among the claimable ones, at most `limit` of each
    mailbox. Returns whether there may be more."""
    made = [
        tx.run(
            "UPDATE thread SET delayed = 0 WHERE number IN (SELECT number FROM thread"
            " WHERE mailbox = ? AND delayed = 1 AND available_at <= ?"
            " ORDER BY available_at LIMIT ?)",
            (mailbox, now_ms, limit),
        )
        for mailbox in mailboxes
    ]
    return limit in made


def is_delayed(tx: Session, thread_id: str, now_ms: int) -> bool:
    """Whether the thread still waits for its time. Once it has come, a wall clock that is set
    back takes nothing away."""
    row = tx.one(
        "SELECT 1 FROM thread WHERE id = ? AND delayed = 1 AND available_at > ?",
        (thread_id, now_ms),
    )
    return row is not None


def due_delayed(tx: Session, mailboxes: Sequence[str]) -> int | None:
    """When the next delayed thread becomes available, in wall-clock milliseconds."""
    times = [
        tx.only(
            "SELECT min(available_at) FROM thread WHERE mailbox = ? AND delayed = 1", (mailbox,)
        )[0]
        for mailbox in mailboxes
    ]
    return min((t for t in times if t is not None), default=None)


def overdue_questions(tx: Session, now_ms: int, limit: int) -> list[str]:
    """Threads whose question has passed its deadline."""
    rows = tx.all(
        "SELECT id FROM thread WHERE question_deadline IS NOT NULL AND question_deadline <= ?"
        " ORDER BY question_deadline LIMIT ?",
        (now_ms, limit),
    )
    return [row[0] for row in rows]


def next_question_deadline(tx: Session) -> int | None:
    """The nearest deadline of an open question, in wall-clock milliseconds."""
    row = tx.only("SELECT min(question_deadline) FROM thread WHERE question_deadline IS NOT NULL")
    return None if row[0] is None else int(row[0])


def numbered(tx: Session, numbers: Sequence[int], now: Moment) -> list[Thread]:
    """The threads with these numbers, in their order."""
    found: list[Thread] = []
    for start in range(0, len(numbers), 500):
        part = numbers[start : start + 500]
        rows = tx.all(
            f"{_FROM} WHERE t.number IN ({', '.join('?' * len(part))}) ORDER BY t.number",
            tuple(part),
        )
        found.extend(_thread(row, now) for row in rows)
    return found


def held_by(tx: Session, agent: str, now: Moment) -> list[Thread]:
    """The threads that `agent` holds."""
    rows = tx.all(f"{_FROM} WHERE t.holder = ? ORDER BY t.number", (agent,))
    return [_thread(row, now) for row in rows]


def open_questions_to(tx: Session, sender: str, now: Moment) -> list[Thread]:
    """Blocked threads that `sender` opened: it is the one asked."""
    rows = tx.all(
        f"{_FROM} WHERE t.sender = ? AND t.state = 'blocked' ORDER BY t.number", (sender,)
    )
    return [_thread(row, now) for row in rows]


def is_visible(tx: Session, thread: Thread, agent: str | None, reads: Sequence[str]) -> bool:
    """Whether a thread is shown to `agent`; looks at the leases only of a sealed one."""
    from ..domain.routing import visible

    return not thread.sealed or visible(
        sealed=True,
        sender=thread.sender,
        mailbox=thread.mailbox,
        holders=holders_ever(tx, thread.id),
        agent=agent,
        mailboxes=reads,
    )


def visibility(agent: str | None, reads: Sequence[str]) -> tuple[str, list[Any]]:
    """SQL over `thread AS t` for `routing.visible`, and its parameters."""
    if agent is None:
        return "t.sealed = 0", []
    marks = ", ".join("?" * len(reads))
    return (
        (
            f"(t.sealed = 0 OR t.sender = ? OR t.mailbox IN ({marks}) OR EXISTS"
            " (SELECT 1 FROM lease AS past WHERE past.thread_id = t.id AND past.holder = ?))"
        ),
        [agent, *reads, agent],
    )


def holders_ever(tx: Session, thread_id: str) -> frozenset[str]:
    """Everyone who holds or has held a lease on the thread."""
    rows = tx.all("SELECT DISTINCT holder FROM lease WHERE thread_id = ?", (thread_id,))
    return frozenset(row[0] for row in rows)


def _thread(row: Row, now: Moment) -> Thread:
    # By position: every command builds threads, and looking columns up by name takes longer.
    columns: list[Any] = list(row[:_COUNT])
    for flag in _FLAGS:
        columns[flag] = bool(columns[flag])
    epoch, *times, boot_id, deadline = row[_COUNT:]
    lease = None
    if epoch is not None:
        expired = is_expired(boot_id, deadline, now)
        lease = Lease._make((row[0], epoch, *times, expired, None))
    return Thread._make((*columns, lease))
