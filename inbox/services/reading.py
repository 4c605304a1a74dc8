"""Looking without changing anything: no cursor moves, nothing is reaped."""

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import refuse_text
from inbox_orch.shared.store.engine import Session

from ..domain import limits, states
from ..domain.model import Artifact, Holders, Message, Thread, WorkTimes, schema_json
from ..store import cursors, leases, listing, messages, threads
from ..store.leases import LeaseRow
from ..store.listing import Filter
from .desk import Desk

SHOWN_MESSAGES = 50
_MOST_COUNTED = 1_000


class Listing(NamedTuple):
    """Some of the threads; `next_cursor` goes on behind the last one."""

    items: tuple[Thread, ...]
    truncated: bool
    next_cursor: str
    total: int | None

    def as_json(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "items": [thread.as_json() for thread in self.items],
            "truncated": self.truncated,
            "next_cursor": self.next_cursor,
        }
        if self.total is not None:
            shape["total"] = self.total
        return shape


class Shown(NamedTuple):
    """One thread with its messages and artifacts, and the schema of its result, if it has one."""

    thread: Thread
    messages: tuple[Message, ...]
    messages_truncated: bool
    artifacts: tuple[Artifact, ...]
    full: bool
    result_schema: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "thread": self.thread.as_json(),
            "messages": [m.as_json(full=self.full) for m in self.messages],
            "messages_truncated": self.messages_truncated,
            "artifacts": [a.as_json() for a in self.artifacts],
            **schema_json(self.result_schema),
        }


class Overview(NamedTuple):
    """What waits for an agent. Counts say over which mailbox they are, and stop at 1,000."""

    agent: str
    leases: tuple[Thread, ...]
    unread: dict[str, int]
    questions: tuple[Thread, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "leases": [thread.as_json() for thread in self.leases],
            "unread": [
                {"mailbox": m, "count": n, "at_least": n >= _MOST_COUNTED}
                for m, n in self.unread.items()
            ],
            "questions": [thread.as_json() for thread in self.questions],
        }


class Stats(NamedTuple):
    """How much there is, by mailbox and state, and how large the files are (bytes)."""

    mailboxes: tuple[dict[str, Any], ...]
    database_bytes: int
    wal_bytes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "mailboxes": list(self.mailboxes),
            "database_bytes": self.database_bytes,
            "wal_bytes": self.wal_bytes,
        }


class Wanted(NamedTuple):
    """Which threads are asked for: those that match all that is given."""

    states: Sequence[str] = ()
    mailboxes: Sequence[str] = ()
    senders: Sequence[str] = ()


def list_threads(
    desk: Desk,
    wanted: Wanted,
    *,
    limit: int,
    after: str | None,
    count: bool,
    agent: str | None,
) -> Listing:
    """Threads by age, those that the agent may see; `count` counts all of them. Error `usage`."""
    limits.check_number("limit", limit, 1, limits.MAX_LIST_LIMIT, whole=True)
    chosen = _filter(desk, *wanted, agent)
    start = limits.parse_cursor(after)
    with desk.database.snapshot() as snapshot:
        found = listing.select(snapshot, chosen, desk.database.now(), after=start, limit=limit + 1)
        total = listing.count(snapshot, chosen) if count else None
    shown = tuple(found[:limit])
    cursor = str(shown[-1].number) if shown else str(start)
    return Listing(shown, len(found) > limit, cursor, total)


def show(
    desk: Desk,
    thread_id: str,
    *,
    full: bool = False,
    mailboxes: Sequence[str] = (),
    agent: str | None = None,
) -> Shown:
    """One thread: `full` gives every message and every body whole.

    Error `not_found`, also for a sealed thread that the agent may not see.
    """
    with desk.database.snapshot() as snapshot:
        thread = visible_thread(desk, snapshot, thread_id, mailboxes, agent)
        if full:
            shown, truncated = messages.of_thread(snapshot, thread.id), False
        else:
            shown, truncated = messages.first_and_newest(snapshot, thread.id, SHOWN_MESSAGES - 1)
        artifacts = messages.artifacts_of(snapshot, thread.id)
        schema = threads.result_schema(snapshot, thread)
    return Shown(thread, tuple(shown), truncated, tuple(artifacts), full, schema)


def artifact(
    desk: Desk,
    thread_id: str,
    name: str,
    *,
    mailboxes: Sequence[str] = (),
    agent: str | None = None,
) -> tuple[Artifact, BinaryIO]:
    """The newest artifact of this name and its content, open for reading.

    Error `not_found` (no such name, or pruned; `details.names` lists what there is).
    """
    with desk.database.snapshot() as snapshot:
        thread = visible_thread(desk, snapshot, thread_id, mailboxes, agent)
        artifact = messages.artifact_named(snapshot, thread.id, name)
        names = sorted({a.name for a in messages.artifacts_of(snapshot, thread.id)})
    if artifact is None:
        error = not_found("artifact", name, hint=f"it has: {', '.join(names) or 'none'}")
        error.details["names"] = names
        raise error
    if artifact.pruned:
        raise InboxOrchError(
            "not_found",
            f"the artifact {name!r} has been pruned",
            hint="its sha256 is in `inbox show`; the bytes are gone",
            details={"kind": "artifact", "id": name},
        )
    return artifact, desk.artifacts.open(artifact.sha256)


def threads_by_id(desk: Desk, thread_ids: Sequence[str]) -> dict[str, Thread]:
    """Several threads by their ids; for the scheduler, which may see all of them."""
    with desk.database.snapshot() as snapshot:
        return threads.get_many(snapshot, thread_ids, desk.database.now())


def work_times(desk: Desk, thread_ids: Sequence[str]) -> dict[str, WorkTimes]:
    """When those of the threads that were ever claimed were worked on; for the scheduler."""
    from ..store import times

    with desk.database.snapshot() as snapshot:
        return times.work_times(snapshot, thread_ids)


def holders(desk: Desk, thread_ids: Sequence[str]) -> dict[str, Holders]:
    """Who has held those of the threads that were ever claimed; for the scheduler."""
    from ..store import times

    with desk.database.snapshot() as snapshot:
        return times.holders(snapshot, thread_ids)


def is_read(desk: Desk, mailbox: str) -> bool:
    """Whether this mailbox has ever been read."""
    with desk.database.snapshot() as snapshot:
        return cursors.has_reader(snapshot, mailbox)


def delivered(desk: Desk, thread_ids: Sequence[str]) -> set[str]:
    """Those of the threads whose mailbox has been read past them; for the scheduler."""
    with desk.database.snapshot() as snapshot:
        return cursors.delivered(snapshot, thread_ids)


def messages_of(desk: Desk, thread_id: str, *, newest: int | None = None) -> tuple[Message, ...]:
    """The messages of a thread, whole: all of them, or the `newest` ones."""
    with desk.database.snapshot() as snapshot:
        if newest is None:
            return tuple(messages.of_thread(snapshot, thread_id))
        return tuple(messages.of_thread(snapshot, thread_id, limit=newest, newest_first=True))


def message(desk: Desk, message_id: int) -> Message | None:
    """One message by its id, whole; for the scheduler, which may see all of them."""
    with desk.database.snapshot() as snapshot:
        return messages.get(snapshot, message_id)


def last_message(desk: Desk, thread_id: str, kind: str) -> Message | None:
    """The newest message of this kind on a thread; for the scheduler."""
    with desk.database.snapshot() as snapshot:
        return messages.last_of_kind(snapshot, thread_id, kind)


def cancel_settles_at(desk: Desk, thread_id: str) -> int | None:
    """When a cancelled thread's last holder cannot be working on it any more, as far as
    leases tell: the end of its lease in monotonic milliseconds.

    None when that is so already: it has been told, its lease has run out, or there was none.
    Error `not_found`.
    """
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        thread = desk.find_thread(snapshot, thread_id, now)
        lease = leases.of_epoch(snapshot, thread.id, thread.epoch)
    if thread.cancel_seen or lease is None or lease.ended_by != "cancelled":
        return None
    return None if lease.expired(now) else lease.deadline_monotonic


def last_lease(desk: Desk, thread_id: str) -> LeaseRow | None:
    """The newest lease of a thread, whether it has ended or not; for the scheduler."""
    with desk.database.snapshot() as snapshot:
        thread = threads.get(snapshot, thread_id, desk.database.now())
        return None if thread is None else leases.of_epoch(snapshot, thread.id, thread.epoch)


def overview(desk: Desk, *, mailboxes: Sequence[str] = (), agent: str | None = None) -> Overview:
    """What waits for the agent: its leases, unread counts, questions put to it."""
    name = desk.acting(agent)
    reads = desk.reading(name, mailboxes)
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        positions = cursors.positions(snapshot, name, reads)
        return Overview(
            name,
            tuple(threads.held_by(snapshot, name, now)),
            {
                mailbox: messages.unread_count(
                    snapshot, name, reads, mailbox, positions[mailbox], _MOST_COUNTED
                )
                for mailbox in reads
            },
            tuple(threads.open_questions_to(snapshot, name, now)),
        )


def stats(desk: Desk, *, mailboxes: Sequence[str] = (), agent: str | None = None) -> Stats:
    """Threads by mailbox and state, those that the agent may see. Error `usage`."""
    chosen = _filter(desk, (), mailboxes, (), agent)
    with desk.database.snapshot() as snapshot:
        rows = listing.count_by_mailbox_and_state(snapshot, chosen)
        oldest_pending = {
            thread.mailbox: thread.created_at
            for thread in threads.numbered(
                snapshot,
                [oldest for _, state, _, oldest in rows if state == states.PENDING],
                desk.database.now(),
            )
        }
    by_mailbox: dict[str, dict[str, Any]] = {}
    for mailbox, state, number, _ in rows:
        entry = by_mailbox.setdefault(
            mailbox,
            {"mailbox": mailbox, **dict.fromkeys(states.THREAD_STATES, 0)}
            | {"oldest_pending_at": rfc3339(oldest_pending.get(mailbox))},
        )
        entry[state] = number
    return Stats(tuple(by_mailbox.values()), *desk.database.admin.sizes())


def _filter(
    desk: Desk,
    states_wanted: Sequence[str],
    mailboxes: Sequence[str],
    senders: Sequence[str],
    agent: str | None,
) -> Filter:
    refuse_text(states_wanted, "states_wanted")
    refuse_text(senders, "senders")
    for state in states_wanted:
        if state not in states.THREAD_STATES:
            raise usage(f"there is no state {state!r}: {', '.join(states.THREAD_STATES)}")
    name = agent if agent is not None else desk.agent
    named = desk.reading(name, mailboxes) if name is not None else ()
    return Filter(
        tuple(dict.fromkeys(states_wanted)),
        desk.named_mailboxes(mailboxes),
        tuple(dict.fromkeys(senders)),
        agent=name,
        reads=named,
    )


def visible_thread(
    desk: Desk,
    tx: Session,
    thread_id: str,
    mailboxes: Sequence[str],
    agent: str | None,
) -> Thread:
    """The thread, if the agent may see it, by what it reads; error `not_found`."""
    thread = desk.find_thread(tx, thread_id, desk.database.now())
    name = agent if agent is not None else desk.agent
    reads = desk.reading(name, mailboxes) if name is not None else ()
    return desk.check_visible(tx, thread, name, reads)
