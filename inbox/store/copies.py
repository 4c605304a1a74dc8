"""Reading a whole database out, one row in memory at a time."""

from collections.abc import Callable, Iterator
from typing import Any

from inbox_orch.shared.clock import Moment, rfc3339
from inbox_orch.shared.store.engine import Session
from inbox_orch.shared.store.events import every as every_event
from inbox_orch.shared.store.events import latest as latest_event

from ..domain.model import Artifact, Lease, schema_json
from . import messages, threads

Line = dict[str, Any]


def lines(tx: Session, version: int, now: Moment) -> Iterator[Line]:
    """Everything as flat objects with a `type`, table by table, one row in memory at a time;
    `version` is that of the schema."""
    yield _meta(tx, version, now)
    sections: tuple[Callable[[Session, Moment], Iterator[Line]], ...] = (
        _threads,
        _messages,
        _artifacts,
        _leases,
        _cursors,
        _events,
    )
    for section in sections:
        yield from section(tx, now)


def _meta(tx: Session, version: int, now: Moment) -> Line:
    values = {row[0]: row[1] for row in tx.all("SELECT key, value FROM meta")}
    newest = latest_event(tx)
    return {
        "type": "meta",
        "database": values.get("database_id"),
        "created_at": rfc3339(int(values["created_at"])) if "created_at" in values else None,
        "exported_at": rfc3339(now.wall_ms),
        "schema_version": version,
        "newest_event": str(newest),
    }


def _threads(tx: Session, now: Moment) -> Iterator[Line]:
    for thread in threads.every(tx, now):
        schema = schema_json(threads.result_schema(tx, thread))
        yield {"type": "thread", **thread.as_json(), **schema}


def _messages(tx: Session, now: Moment) -> Iterator[Line]:
    for message in messages.every(tx):
        yield {"type": "message", **message.as_json(full=True)}


def _artifacts(tx: Session, now: Moment) -> Iterator[Line]:
    for row in tx.stream(
        "SELECT name, sha256, bytes, message_id, created_at, pruned, thread_id"
        " FROM artifact ORDER BY id"
    ):
        *columns, thread_id = tuple(row)
        artifact = Artifact._make(columns)
        shape = artifact._replace(pruned=bool(artifact.pruned)).as_json()
        yield {"type": "artifact", "thread": thread_id, **shape}


def _leases(tx: Session, now: Moment) -> Iterator[Line]:
    """Without the token: a reader of the export must not be able to act as the holder."""
    for row in tx.stream(
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


def _cursors(tx: Session, now: Moment) -> Iterator[Line]:
    for row in tx.stream(
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


def _events(tx: Session, now: Moment) -> Iterator[Line]:
    for event in every_event(tx):
        yield {"type": "event", **event.as_json()}
