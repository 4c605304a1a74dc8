"""Waiting for a reply, watching events.

A holder's read position moves in `mark_read`, which the caller calls once its output has been
written and flushed.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_name, plain_number, refuse_text
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.engine import Session
from inbox_orch.shared.store.events import Event, Matching

from ..domain import limits
from ..domain.model import Message, Thread
from ..store import leases, messages, threads
from . import fetching, holding, judging, reaping
from .desk import Desk
from .fetching import Fetched

_WATCH_BATCH = 500


class Replies(NamedTuple):
    """What others have written on a thread; `next_cursor` goes on behind it."""

    thread: Thread
    token: str
    messages: tuple[Message, ...]
    truncated: bool
    next_cursor: str

    def as_json(self) -> dict[str, Any]:
        return {
            "thread": self.thread.as_json(),
            "messages": [message.as_json(full=True) for message in self.messages],
            "truncated": self.truncated,
            "next_cursor": self.next_cursor,
        }


class Watch(Iterator[Event]):
    """The events of a watch. `next_cursor` goes on behind the last one that was handed out and,
    once the watch has ended, behind all that it has looked through."""

    def __init__(self, stream: Generator[Event, None, int], start: int) -> None:
        self._stream = stream
        self.next_cursor = str(start)

    def __next__(self) -> Event:
        try:
            event = next(self._stream)
        except StopIteration as end:
            if end.value is not None:
                self.next_cursor = str(end.value)
            raise
        self.next_cursor = str(event.seq)
        return event


def mark_read(desk: Desk, read: Fetched | Replies) -> None:
    """Move what moves because this was read, forward only."""
    if isinstance(read, Fetched):
        fetching.mark_fetched(desk, read)
    elif read.messages:
        with desk.database.transaction(durable=False) as tx:
            leases.advance_read_position(tx, read.token, read.messages[-1].id)


def wait_reply(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    after: str | None = None,
    wait_seconds: float = limits.DEFAULT_WAIT_SECONDS,
) -> Replies:
    """Block until another agent has written on the thread, keeping the lease alive.

    `after` is a message id; by default the holder's own last message, else what it got when
    it claimed. Errors: `usage`, those of every token, `timeout` (with `data.next_cursor`).
    """
    limits.check_wait_seconds(wait_seconds)
    thread_id = desk.thread_id(thread_id)
    start = _reply_start(desk, thread_id, token, after)

    def look() -> waits.Look:
        return _look_for_reply(desk, thread_id, token, start, desk.database.now())

    topics = (events.thread_topic(thread_id),)
    found = waits.wait(desk.database, topics, look, wait_seconds=wait_seconds)
    if found is None:
        raise InboxOrchError(
            "timeout",
            f"nothing was written on thread {thread_id} within {plain_number(wait_seconds)} s",
            hint="call again to go on waiting; nothing is missed in between",
            details={"thread": thread_id},
            data={"next_cursor": str(start)},
        )
    assert isinstance(found, Replies)
    return found


def watch(
    desk: Desk,
    matching: Matching,
    *,
    after: str | None = None,
    wait_seconds: float = limits.DEFAULT_WAIT_SECONDS,
    agent: str | None = None,
) -> Watch:
    """Matching events as they are committed, those that the agent may see, for `wait_seconds`.

    `after` is an event id; by default only what comes from now on. No cursor moves.
    Errors: `usage`; `not_found`, also for a sealed thread that the agent may not see.
    """
    limits.check_wait_seconds(wait_seconds)
    name = agent if agent is not None else desk.agent
    refuse_text(matching.mailboxes, "mailboxes")
    refuse_text(matching.kinds, "kinds")
    named = tuple(check_name(m, "mailbox") for m in matching.mailboxes)
    thread_id = matching.thread_id
    if thread_id is not None:
        reads = named if name is None else (name, *named)
        with desk.database.snapshot() as snapshot:
            thread = desk.find_thread(snapshot, thread_id, desk.database.now())
            thread_id = desk.check_visible(snapshot, thread, name, reads).id
    matching = Matching(thread_id, mailboxes=named, kinds=tuple(matching.kinds))
    start = _watch_start(desk, after)
    return Watch(_events(desk, start, matching, wait_seconds, name), start)


def latest_event(desk: Desk) -> str:
    """The id of the newest event, "0" when there is none."""
    with desk.database.snapshot() as snapshot:
        return str(events.latest(snapshot))


# -- wait-reply --------------------------------------------------------------------------


def _reply_start(desk: Desk, thread_id: str, token: str, after: str | None) -> int:
    if after is not None:
        return limits.parse_cursor(after)
    with desk.database.snapshot() as snapshot:
        lease = leases.by_token(snapshot, token)
        if lease is None:
            return 0
        own = messages.last_id(snapshot, thread_id, by=lease.holder)
        return own or lease.read_position


def _look_for_reply(desk: Desk, thread_id: str, token: str, start: int, now: Moment) -> waits.Look:
    with desk.database.snapshot() as snapshot:
        thread = desk.find_thread(snapshot, thread_id, now)
        lease = leases.by_token(snapshot, token)
        mine = lease is not None and (lease.thread_id, lease.epoch) == (
            thread.id,
            thread.epoch,
        )
        replies = (
            messages.written_by_others(
                snapshot, thread.id, lease.holder, start, limits.DEFAULT_LIST_LIMIT + 1
            )
            if lease is not None
            else []
        )
    overdue = thread.question_deadline is not None and thread.question_deadline <= now.wall_ms
    if lease is None or not mine or lease.ended_by is not None or overdue:
        # Judge the token, and record what follows, in a transaction; it raises unless the
        # question's deadline was the only reason. That deadline is over or not by the moment
        # of the transaction, whatever the wall clock does meanwhile.
        with judging.hold(desk, thread_id, token) as held:
            return _look_for_reply(desk, thread_id, token, start, held.tx.now)
    if replies:
        shown = tuple(replies[: limits.DEFAULT_LIST_LIMIT])
        truncated = len(replies) > len(shown)
        return waits.Look(Replies(thread, token, shown, truncated, str(shown[-1].id)))
    return _keep_lease(desk, thread, lease, now)


def _keep_lease(desk: Desk, thread: Thread, lease: leases.LeaseRow, now: Moment) -> waits.Look:
    """Renew when a third of the lease has gone by; wake up again for the next time."""
    third = lease.lease_ms // 3
    next_renewal = lease.deadline_monotonic - 2 * third
    if lease.boot_id != now.boot_id or now.monotonic_ms >= next_renewal:
        holding.renew(desk, thread.id, lease.token)
        next_renewal = now.monotonic_ms + third
    return waits.Look(None, due_wall_ms=thread.question_deadline, due_monotonic_ms=next_renewal)


# -- watch -------------------------------------------------------------------------------


def _watch_start(desk: Desk, after: str | None) -> int:
    return int(latest_event(desk)) if after is None else limits.parse_cursor(after)


def _events(
    desk: Desk,
    seq: int,
    matching: Matching,
    wait_seconds: float,
    agent: str | None,
) -> Generator[Event, None, int]:
    """Batches, each read in a short snapshot that is closed before anything is handed out;
    returns up to where it has looked."""
    deadline = desk.database.now().monotonic_ms + wait_seconds * 1000
    thread_id, mailboxes = matching.thread_id, matching.mailboxes
    topic = events.EVERYTHING if thread_id is None else events.thread_topic(thread_id)

    def look() -> waits.Look:
        nonlocal seq
        scope = _watched_mailboxes(desk, thread_id, mailboxes)
        reaping.reap(desk, scope)
        with desk.database.snapshot() as snapshot:
            batch = events.after(snapshot, seq, limit=_WATCH_BATCH, matching=matching)
            shown = visible_events(desk, snapshot, batch, agent, mailboxes)
            due = reaping.due(desk, snapshot, scope, desk.database.now())
            full = len(batch) == _WATCH_BATCH
            # Events that do not match are not looked through a second time.
            seq = batch[-1].seq if full else max(seq, events.latest(snapshot))
        return waits.Look(shown) if shown or full else due

    def found_within(seconds: float) -> list[Event] | None:
        found = waits.wait(desk.database, (topic,), look, wait_seconds=seconds)
        assert found is None or isinstance(found, list)
        return found

    while (remaining_ms := deadline - desk.database.now().monotonic_ms) > 0:
        batch = found_within(remaining_ms / 1000)
        if batch is None:
            break
        yield from batch
    # The time is over: what is there now is given out, but not what comes meanwhile, or a
    # watch beside busy writers would never end.
    reaping.reap(desk, _watched_mailboxes(desk, thread_id, mailboxes))
    end = int(latest_event(desk))
    while seq < end:
        yield from found_within(0) or ()
    return seq


def _watched_mailboxes(
    desk: Desk, thread_id: str | None, mailboxes: Sequence[str]
) -> Sequence[str]:
    with desk.database.snapshot() as snapshot:
        if thread_id is not None:
            return (desk.find_thread(snapshot, thread_id, desk.database.now()).mailbox,)
        return mailboxes or leases.mailboxes_with_live_leases(snapshot)


def visible_events(
    desk: Desk,
    tx: Session,
    batch: list[Event],
    agent: str | None,
    mailboxes: Sequence[str],
) -> list[Event]:
    """Those of a batch that the agent may see: none on a thread that is sealed to it."""
    wanted = list({e.thread_id for e in batch if e.thread_id is not None})
    by_id = threads.get_many(tx, wanted, desk.database.now())
    reads = () if agent is None else (agent, *mailboxes)
    hidden = {
        thread.id for thread in by_id.values() if not threads.is_visible(tx, thread, agent, reads)
    }
    return [e for e in batch if e.thread_id not in hidden]
