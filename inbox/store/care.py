"""What looking after the database reads: how things stand, and every table in the order of its
threads, for the comparison with the event log. Nothing here writes."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.store import kept_files
from inbox_orch.shared.store.engine import Row, Session

_Columns = Row | tuple[Any, ...]
JSON_COLUMNS = (
    ("message", "payload", "object"),
    ("message", "options", "array"),
    ("request", "response", None),
    ("event", "data", "object"),
)


# -- how things stand ----------------------------------------------------------------------


class Standing(NamedTuple):
    """What is unfinished now: counts of rows."""

    live_leases: int
    expired_leases: int
    expired_without_renewal: int
    delayed: int
    delayed_due: int
    overdue_questions: int


def standing(tx: Session, now: Moment) -> Standing:
    """Leases, delayed threads and questions at `now`."""
    leases = tx.only(
        "SELECT count(*), coalesce(sum(over), 0), coalesce(sum(over AND renewals = 0), 0) FROM"
        " (SELECT boot_id <> ? OR deadline_monotonic <= ? AS over, renewals FROM lease"
        " WHERE ended_at IS NULL)",
        (now.boot_id, now.monotonic_ms),
    )
    delayed = tx.only(
        "SELECT count(*), coalesce(sum(available_at <= ?), 0) FROM thread WHERE delayed = 1",
        (now.wall_ms,),
    )
    overdue = tx.only("SELECT count(*) FROM thread WHERE question_deadline <= ?", (now.wall_ms,))
    return Standing(*leases, *delayed, *overdue)


def contents(tx: Session, version: int) -> Iterator[tuple[str, int]]:
    """(digest, length) of everything that an artifact refers to and that was not pruned, and of
    what is kept without a thread, in a database whose schema has this version."""
    kept = " UNION SELECT sha256, bytes FROM kept_file" if version >= kept_files.SINCE else ""
    asked = f"SELECT sha256, bytes FROM artifact WHERE pruned = 0{kept} ORDER BY sha256"
    for row in tx.stream(asked):
        yield row[0], row[1]


def is_referenced(tx: Session, sha256: str) -> bool:
    """Whether any artifact still needs this content, or it is kept without a thread."""
    return is_named(tx, sha256) or kept_files.is_kept(tx, sha256)


def is_named(tx: Session, sha256: str) -> bool:
    """Whether a thread has an artifact of this content."""
    row = tx.one("SELECT 1 FROM artifact WHERE sha256 = ? AND pruned = 0 LIMIT 1", (sha256,))
    return row is not None


# -- everything of one thread together -----------------------------------------------------


class ThreadRow(NamedTuple):
    """What folding also knows of a thread."""

    state: str
    epoch: int
    deliveries: int
    holder: str | None
    max_deliveries: int
    pruned: bool
    cancel_seen: bool


class StoredLease(NamedTuple):
    """A lease as far as folding knows it."""

    epoch: int
    holder: str
    counted: bool
    ended_by: str | None


class StoredMessage(NamedTuple):
    """A message: what is said of its body, and what the body is; None for both once pruned."""

    id: int
    kind: str
    sha256: str
    bytes: int
    actual_sha256: str | None
    actual_bytes: int | None


class StoredArtifact(NamedTuple):
    """A named artifact."""

    name: str
    sha256: str
    bytes: int
    pruned: bool


class EventRow(NamedTuple):
    """An event with its data as stored."""

    seq: int
    kind: str
    data: dict[str, Any] | None


class Dossier(NamedTuple):
    """Everything that the tables and the log hold of one thread; `thread` is None where rows
    name a thread that is not there."""

    thread_id: str
    thread: ThreadRow | None
    events: tuple[EventRow, ...]
    leases: tuple[StoredLease, ...]
    messages: tuple[StoredMessage, ...]
    artifacts: tuple[StoredArtifact, ...]


def dossiers(tx: Session) -> Iterator[Dossier]:
    """Thread by thread, in the order of the ids, whatever table names it.

    Five cursors run side by side along their indexes, so that the memory which this takes does
    not depend on how many threads there are, nor on how long their bodies are.
    """
    threads = _Groups(tx.stream(_THREADS))
    events = _Groups(tx.stream(_EVENTS))
    leases = _Groups(tx.stream(_LEASES))
    messages = _Groups(_digested(tx.stream(_MESSAGES)))
    artifacts = _Groups(tx.stream(_ARTIFACTS))
    streams = (threads, events, leases, messages, artifacts)
    while ids := [stream.next_id for stream in streams if stream.next_id is not None]:
        thread_id = min(ids)
        rows = threads.take(thread_id)
        yield Dossier(
            thread_id,
            _thread(rows[0]) if rows else None,
            tuple(EventRow(row[1], row[2], _decoded(row[3])) for row in events.take(thread_id)),
            tuple(
                StoredLease(row[1], row[2], bool(row[3]), row[4]) for row in leases.take(thread_id)
            ),
            tuple(StoredMessage(*row[1:]) for row in messages.take(thread_id)),
            tuple(
                StoredArtifact(row[1], row[2], row[3], bool(row[4]))
                for row in artifacts.take(thread_id)
            ),
        )


_THREADS = (
    "SELECT id, state, epoch, deliveries, holder, max_deliveries, pruned, cancel_seen"
    " FROM thread ORDER BY id"
)
_EVENTS = (
    "SELECT thread_id, seq, kind, CAST(data AS BLOB) FROM event"
    " WHERE thread_id IS NOT NULL ORDER BY thread_id, seq"
)
_LEASES = "SELECT thread_id, epoch, holder, counted, ended_by FROM lease ORDER BY thread_id, epoch"
_MESSAGES = (
    "SELECT thread_id, id, kind, body_sha256, body_bytes, CAST(body AS BLOB)"
    " FROM message ORDER BY thread_id, id"
)
_ARTIFACTS = (
    "SELECT thread_id, name, sha256, bytes, pruned FROM artifact ORDER BY thread_id, name, id"
)


class _Groups:
    """Rows in the order of their first column, taken out group by group."""

    def __init__(self, rows: Iterable[_Columns]) -> None:
        self._groups = groupby(rows, key=lambda row: str(row[0]))
        self._rows: Iterator[_Columns] = iter(())
        self.next_id: str | None = None
        self._advance()

    def take(self, thread_id: str) -> list[_Columns]:
        """The rows of this thread, if it is the next one here."""
        if self.next_id != thread_id:
            return []
        taken = list(self._rows)
        self._advance()
        return taken

    def _advance(self) -> None:
        following = next(self._groups, None)
        self.next_id, self._rows = (None, iter(())) if following is None else following


def _digested(rows: Iterable[Row]) -> Iterator[tuple[Any, ...]]:
    """Messages with digest and length in the place of their body, which is let go at once."""
    for row in rows:
        *columns, body = row
        length = None if body is None else len(body)
        yield (*columns, _sha256(body), length)


def _thread(row: _Columns) -> ThreadRow:
    thread = ThreadRow._make(tuple(row)[1:])
    return thread._replace(pruned=bool(thread.pruned), cancel_seen=bool(thread.cancel_seen))


def _sha256(content: bytes | None) -> str | None:
    import hashlib

    return None if content is None else hashlib.sha256(content).hexdigest()


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
