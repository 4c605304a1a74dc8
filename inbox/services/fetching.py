"""Fetching what is unread.

A cursor moves in `mark_read`, which the caller calls once its output has been written and
flushed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.store import waits
from inbox_orch.shared.store.engine import Session

from ..domain import limits
from ..domain.model import Message, Thread
from ..store import cursors, leases, messages, threads
from . import reaping
from .desk import Desk


class Fetched(NamedTuple):
    """Unread messages, each with its thread. `moves` is where `mark_read` puts the cursors."""

    agent: str
    items: tuple[tuple[Message, Thread], ...]
    truncated: bool
    moves: dict[str, int]
    next_cursor: str

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [
                {"message": message.as_json(), "thread": thread.as_json()}
                for message, thread in self.items
            ],
            "truncated": self.truncated,
            "next_cursor": self.next_cursor,
        }


def fetch(
    desk: Desk,
    mailboxes: Sequence[str] = (),
    *,
    limit: int = limits.DEFAULT_FETCH_LIMIT,
    wait_seconds: float | None = None,
    peek: bool = False,
    agent: str | None = None,
) -> Fetched:
    """Unread messages of the agent's mailboxes, oldest first. Takes no lease.

    `wait_seconds=None` looks once, and an empty result is a result. Hand the result to
    `mark_read` once it has reached its reader; `peek` is for those who never will.
    Errors: `usage`; `timeout` when a wait ends with nothing.
    """
    name = desk.acting(agent)
    reads = desk.reading(name, mailboxes)
    limits.check_number("limit", limit, 1, limits.MAX_LIST_LIMIT, whole=True)

    def look() -> waits.Look:
        watched = reads
        if not peek:
            desk.note_reader(name, reads)
            watched = _watched(desk, name, reads)
            reaping.reap(desk, watched)
        now = desk.database.now()
        with desk.database.snapshot() as snapshot:
            fetched = _unread(snapshot, name, reads, limit, now)
            if fetched.items:
                return waits.Look(fetched)
            due = reaping.due(desk, snapshot, watched, now, reaps=not peek)
        if fetched.moves and not peek:
            # Nothing is shown: there were only the agent's own, not to be passed over again.
            mark_fetched(desk, fetched)
        return due

    if wait_seconds is None:
        return _as_fetched(look().found) or _nothing(desk, name, reads)
    limits.check_wait_seconds(wait_seconds)
    found = _as_fetched(waits.wait(desk.database, reads, look, wait_seconds=wait_seconds))
    if found is None:
        raise InboxOrchError(
            "timeout",
            f"no message came within {plain_number(wait_seconds)} s",
            hint="call again to go on waiting; nothing is missed in between",
            data=_nothing(desk, name, reads).as_json(),
        )
    return found


def mark_fetched(desk: Desk, read: Fetched) -> None:
    """Move the agent's cursors over what was fetched, forward only."""
    with desk.database.transaction(durable=False) as tx:
        cursors.advance(tx, read.agent, read.moves, tx.now.wall_ms)


def _unread(
    tx: Session,
    agent: str,
    reads: Sequence[str],
    limit: int,
    now: Moment,
) -> Fetched:
    positions = cursors.positions(tx, agent, reads)
    found, moves, more = messages.unread(tx, agent, reads, positions, limit)
    by_id = threads.get_many(tx, list({m.thread_id for m in found}), now)
    items = tuple((message, by_id[message.thread_id]) for message in found)
    return Fetched(agent, items, more, moves, str(found[-1].id if found else 0))


def _nothing(desk: Desk, agent: str, reads: Sequence[str]) -> Fetched:
    """An empty result, with the cursor that the agent has come to."""
    with desk.database.snapshot() as snapshot:
        positions = cursors.positions(snapshot, agent, reads)
    return Fetched(agent, (), False, {}, str(max(positions.values())))


def _watched(desk: Desk, agent: str, reads: Sequence[str]) -> tuple[str, ...]:
    """The mailboxes of a look, and those in which a thread of the agent's is held:
    a holder that has died must be noticed by who waits for its result, too."""
    with desk.database.snapshot() as snapshot:
        return tuple(dict.fromkeys((*reads, *leases.mailboxes_of_held(snapshot, agent))))


def _as_fetched(found: object | None) -> Fetched | None:
    assert found is None or isinstance(found, Fetched)
    return found
