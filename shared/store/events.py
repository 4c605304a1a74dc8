"""The event log: one row for every change of a state, in the order of the commits.

An event's number (`seq`) is given under the write lock, so "greater than the cursor" never
skips one. Events are never changed or removed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.store.engine import Row, Session

from ..clock import rfc3339
from .engine import Transaction


class Event(NamedTuple):
    """One recorded change. `at` is wall-clock milliseconds."""

    seq: int
    at: int
    kind: str
    actor: str
    thread_id: str | None
    mailbox: str | None
    run_id: str | None
    task_id: str | None
    attempt_id: str | None
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The shape of an event in every output."""
        return {
            "id": str(self.seq),
            "at": rfc3339(self.at),
            "kind": self.kind,
            "actor": self.actor,
            "thread": self.thread_id,
            "mailbox": self.mailbox,
            "run": self.run_id,
            "task": self.task_id,
            "attempt": self.attempt_id,
            "data": self.data,
        }


NOT_TAKEN_IN = (
    "attempt_submitted",
    "attempt_verifying",
    "work_harvested",
    "checkpoint_made",
    "checkpoint_restored",
)
"""Kinds that a run notes on a thread whose result it has still to take in: what was written there
is needed until something else is noted."""

# `json.dumps` would make a new encoder for each event.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_COLUMNS = "seq, at, kind, actor, thread_id, mailbox, run_id, task_id, attempt_id, data"


class About:
    """What an event is about, as far as it is about that."""

    def __init__(
        self,
        thread_id: str | None = None,
        mailbox: str | None = None,
        run_id: str | None = None,
        task_id: str | None = None,
        attempt_id: str | None = None,
    ) -> None:
        self.thread_id = thread_id
        self.mailbox = mailbox
        self.run_id = run_id
        self.task_id = task_id
        self.attempt_id = attempt_id


def append(
    transaction: Transaction,
    kind: str,
    actor: str,
    data: Mapping[str, Any],
    about: About,
) -> int:
    """Record a change in the transaction that makes it; returns the event's number.

    Those who wait on everything, on the thread or on the run are woken after the commit.
    """
    number = transaction.add(
        "INSERT INTO event (at, kind, actor, thread_id, mailbox, run_id, task_id, attempt_id, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            transaction.now.wall_ms,
            kind,
            actor,
            about.thread_id,
            about.mailbox,
            about.run_id,
            about.task_id,
            about.attempt_id,
            _encode(data),
        ),
    )
    topics = [EVERYTHING]
    if about.thread_id is not None:
        topics.append(thread_topic(about.thread_id))
    if about.run_id is not None:
        topics.append(run_topic(about.run_id))
    transaction.ring(*topics)
    return number


class Entry(NamedTuple):
    """An event about a task, to be recorded with many others."""

    kind: str
    task_id: str
    data: dict[str, Any]


def append_many(
    transaction: Transaction, entries: Sequence[Entry], actor: str, *, run_id: str
) -> None:
    """Record many changes of one run, in their order; the wake-ups are those of `append`."""
    at = transaction.now.wall_ms
    transaction.run_many(
        "INSERT INTO event (at, kind, actor, run_id, task_id, data) VALUES (?, ?, ?, ?, ?, ?)",
        ((at, kind, actor, run_id, task_id, _encode(data)) for kind, task_id, data in entries),
    )
    transaction.ring(EVERYTHING, run_topic(run_id))


EVERYTHING = "_all"


def thread_topic(thread_id: str) -> str:
    """The bell of those who wait on one thread."""
    return f"_thread-{thread_id}"


def run_topic(run_id: str) -> str:
    """The bell of those who wait on one run."""
    return f"_run-{run_id}"


def latest(tx: Session) -> int:
    """The number of the newest event, 0 when there is none."""
    row = tx.only("SELECT max(seq) FROM event")
    return int(row[0] or 0)


class Matching:
    """Which events are asked for: those that match all that is given."""

    def __init__(
        self,
        thread_id: str | None = None,
        run_id: str | None = None,
        mailboxes: Sequence[str] = (),
        kinds: Sequence[str] = (),
    ) -> None:
        self.thread_id = thread_id
        self.run_id = run_id
        self.mailboxes = mailboxes
        self.kinds = kinds


EVERY_EVENT = Matching()


def after(tx: Session, seq: int, *, limit: int, matching: Matching = EVERY_EVENT) -> list[Event]:
    """At most `limit` events numbered above `seq`, in order, that match."""
    thread_id, run_id = matching.thread_id, matching.run_id
    conditions = ["seq > ?"]
    parameters: list[Any] = [seq]
    for column, values in (
        ("thread_id", () if thread_id is None else (thread_id,)),
        ("run_id", () if run_id is None else (run_id,)),
        ("mailbox", matching.mailboxes),
        ("kind", matching.kinds),
    ):
        if values:
            conditions.append(f"{column} IN ({', '.join('?' * len(values))})")
            parameters.extend(values)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE {' AND '.join(conditions)} ORDER BY seq LIMIT ?",
        (*parameters, limit),
    )
    return [_event(row) for row in rows]


def newest(tx: Session, run_id: str, limit: int) -> list[Event]:
    """The last `limit` events of a run, in order."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE run_id = ? ORDER BY seq DESC LIMIT ?", (run_id, limit)
    )
    return [_event(row) for row in reversed(rows)]


def newest_of_threads(tx: Session, thread_ids: Sequence[str], limit: int) -> list[Event]:
    """The last `limit` events of the bus about these threads, in order: those that name no run."""
    marks = ", ".join("?" * len(thread_ids))
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM event WHERE thread_id IN ({marks}) AND run_id IS NULL"
        " ORDER BY seq DESC LIMIT ?",
        (*thread_ids, limit),
    )
    return [_event(row) for row in reversed(rows)]


def every(tx: Session, *, up_to: int | None = None) -> Iterator[Event]:
    """All events in order, without holding them in memory."""
    rows = tx.stream(
        f"SELECT {_COLUMNS} FROM event WHERE seq <= ? ORDER BY seq",
        (up_to if up_to is not None else 2**62,),
    )
    return map(_event, rows)


def _event(row: Row) -> Event:
    *columns, data = row
    return Event._make((*columns, json.loads(data)))
