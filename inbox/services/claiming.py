"""Taking a lease: on the thread named, or on the next by priority, then age."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import new_token, plain_number
from inbox_orch.shared.store import waits
from inbox_orch.shared.store.engine import Transaction

from ..domain import limits, states
from ..domain.model import Artifact, Lease, Message, Thread, schema_json
from ..store import leases, messages, threads
from . import reaping
from .desk import Desk

CLAIM_MESSAGES = 100
_MOST_MADE_DUE = 1000
_MOST_COMPARED = 200


class Claimed(NamedTuple):
    """A thread that is yours. `lease.token` goes with every later command on it.

    `messages` are the first one and the newest ones; `messages_truncated` says whether some in
    between are left out. `redelivered`: it was held before and not finished. `result_schema` is the
    text of the JSON Schema that the result has to satisfy, if there is one.
    """

    thread: Thread
    lease: Lease
    messages: tuple[Message, ...]
    messages_truncated: bool
    artifacts: tuple[Artifact, ...]
    redelivered: bool
    result_schema: str | None = None

    def as_json(self) -> dict[str, Any]:
        first, *rest = self.messages
        return {
            "thread": self.thread.as_json(),
            "lease": self.lease.as_json(),
            "messages": [first.as_json(full=True), *(m.as_json() for m in rest)],
            "messages_truncated": self.messages_truncated,
            "artifacts": [a.as_json() for a in self.artifacts],
            "redelivered": self.redelivered,
            **schema_json(self.result_schema),
        }


def claim(
    desk: Desk,
    thread_id: str | None = None,
    *,
    mailboxes: Sequence[str] = (),
    lease_seconds: float = limits.DEFAULT_LEASE_SECONDS,
    wait_seconds: float = 0,
    agent: str | None = None,
) -> Claimed:
    """Take the lease of a thread in one's mailboxes (one's own and those named).

    Errors: `usage`; `nothing_available` or, after a wait, `timeout`; for a named thread
    `not_found`, `wrong_mailbox`, `already_claimed`, `invalid_state`.
    """
    holder = desk.acting(agent)
    reads = desk.reading(holder, mailboxes)
    lease_ms = int(limits.check_lease_seconds(lease_seconds) * 1000)
    limits.check_wait_seconds(wait_seconds)
    if thread_id is not None:
        thread_id = desk.thread_id(thread_id)
    # The last refusal of a named thread: it is the answer when the wait ends without a lease.
    refusal: InboxOrchError | None = None
    first = True

    def look() -> waits.Look:
        nonlocal refusal, first
        if first:
            desk.note_reader(holder, reads)
        elif not worth_claiming(desk, reads, thread_id):
            return due(desk, reads, thread_id)
        # The first look decides whether there is anything to wait for at all.
        first = False
        try:
            return waits.Look(claim_now(desk, holder, reads, lease_ms, thread_id))
        except InboxOrchError as error:
            if wait_seconds <= 0 or error.code not in ("nothing_available", "already_claimed"):
                raise
            refusal = None if thread_id is None else error
            return due(desk, reads, thread_id)

    found = waits.wait(desk.database, reads, look, wait_seconds=wait_seconds)
    if found is None:
        raise _nothing_came(wait_seconds, refusal)
    assert isinstance(found, Claimed)
    return found


def claim_now(
    desk: Desk, holder: str, reads: Sequence[str], lease_ms: int, thread_id: str | None
) -> Claimed:
    """Take the lease of the thread named, or of the next one, without a wait; errors as of `claim`,
    which has checked what was given."""
    claimed, chosen = None, None
    while chosen is None:
        with desk.database.transaction() as tx:
            more = reaping.reap_in(desk, tx, reads)
            more |= threads.make_due_available(tx, reads, tx.now.wall_ms, _MOST_MADE_DUE)
            if more and thread_id is None and not _first_is_known(tx, reads):
                continue  # so many in one commit: others want to write, too
            chosen = _choose(desk, tx, reads, thread_id)
            if isinstance(chosen, str):
                claimed = _acquire(desk, tx, chosen, holder, lease_ms)
    if claimed is None:
        assert isinstance(chosen, InboxOrchError)
        raise chosen
    return claimed


def _choose(
    desk: Desk, tx: Transaction, reads: Sequence[str], thread_id: str | None
) -> str | InboxOrchError:
    """The thread to be claimed, or why there is none. The refusal is raised only after the
    commit: what was reaped on the way must stay reaped."""
    if thread_id is None:
        found = threads.next_claimable(tx, reads)
        return found or _nothing_in(tx, reads)
    try:
        _check_claimable(desk, tx, thread_id, reads)
    except InboxOrchError as refusal:
        return refusal
    return thread_id


def _check_claimable(desk: Desk, tx: Transaction, thread_id: str, reads: Sequence[str]) -> None:
    thread = desk.find_thread(tx, thread_id, tx.now)
    if thread.mailbox not in reads:
        raise InboxOrchError(
            "wrong_mailbox",
            f"thread {thread.id} is in the mailbox {thread.mailbox}",
            hint=f"add --mailbox {thread.mailbox} to claim from it",
            details={"thread": thread.id, "mailbox": thread.mailbox},
        )
    thread = reaping.reap_thread(desk, tx, thread)
    if thread.holder is not None:
        raise already_claimed(thread)
    states.require("claim", thread.state, thread.id)
    if threads.is_delayed(tx, thread.id, tx.now.wall_ms):
        raise limits.nothing_available(
            f"thread {thread.id} becomes available at {rfc3339(thread.available_at)}",
            thread=thread.id,
            available_at=rfc3339(thread.available_at),
        )


def _acquire(desk: Desk, tx: Transaction, thread_id: str, holder: str, lease_ms: int) -> Claimed:
    """Raise the epoch and give out a fresh token: from here on no older token serves."""
    before = desk.thread_now(tx, thread_id)
    shown, truncated = messages.first_and_newest(tx, thread_id, CLAIM_MESSAGES)
    token = new_token()
    row = threads.mark_claimed(tx, thread_id, holder=holder, now_ms=tx.now.wall_ms)
    assert row is not None, "a pending thread is claimed under the write lock"
    grant = leases.Grant(token, holder, lease_ms, read_position=shown[-1].id)
    leases.insert(tx, before._replace(epoch=row["epoch"]), grant, tx.now)
    thread = desk.thread_now(tx, thread_id)
    assert thread.lease is not None
    desk.record(
        tx,
        states.event_of("claim", states.PENDING, states.CLAIMED),
        thread,
        actor=holder,
        data={
            "from": states.PENDING,
            "lease_seconds": lease_ms / 1000,
            "expires_at": thread.lease.expires_at,
            "counted": not before.uncounted,
        },
    )
    return Claimed(
        thread,
        thread.lease._replace(token=token),
        tuple(shown),
        truncated,
        tuple(messages.artifacts_of(tx, thread_id)),
        before.epoch > 0,
        threads.result_schema(tx, thread),
    )


def worth_claiming(desk: Desk, reads: Sequence[str], thread_id: str | None) -> bool:
    """Look without the write lock, so that many waiters woken by one thread do not queue."""
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        if reaping.anything_due(desk, snapshot, reads, now):
            return True
        if thread_id is not None:
            thread = threads.get(snapshot, thread_id, now)
            held = thread is not None and thread.holder is not None
            return not held and not threads.is_delayed(snapshot, thread_id, now.wall_ms)
        due = threads.due_delayed(snapshot, reads)
        if due is not None and due <= now.wall_ms:
            return True
        return threads.next_claimable(snapshot, reads) is not None


def due(desk: Desk, reads: Sequence[str], thread_id: str | None) -> waits.Look:
    """When to look again. A thread whose time has come since the look before is due now:
    nothing rings for it."""
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        look = reaping.due(desk, snapshot, reads, now)
        if thread_id is None:
            available = threads.due_delayed(snapshot, reads)
        else:
            thread = threads.get(snapshot, thread_id, now)
            pending = thread is not None and thread.state == states.PENDING
            available = thread.available_at if thread is not None and pending else None
    times = [t for t in (look.due_wall_ms, available) if t is not None]
    return look._replace(due_wall_ms=min(times, default=None))


def _first_is_known(tx: Transaction, reads: Sequence[str]) -> bool:
    """Whether none of those that are free again, and not taken in yet, would come before the
    thread that is first of the others. To be asked where as many were taken in as one commit
    takes: else none is left."""
    due = threads.due_delayed(tx, reads)
    if due is not None and due <= tx.now.wall_ms:
        return False
    if threads.overdue_questions(tx, tx.now.wall_ms, 1):
        return False
    first = threads.next_claimable(tx, reads)
    left = leases.expired_by_rank(tx, reads, tx.now, 1)
    if not left:
        return True
    return first is not None and threads.comes_before(tx, first, left[0])


def already_claimed(thread: Thread) -> InboxOrchError:
    """The thread is held: exit 4, with by whom and until when."""
    expires_at = None if thread.lease is None else rfc3339(thread.lease.expires_at)
    return InboxOrchError(
        "already_claimed",
        f"thread {thread.id} is held by {thread.holder} until {expires_at}",
        hint="claim without an id to take the next one, or wait with --wait",
        details={"thread": thread.id, "holder": thread.holder, "expires_at": expires_at},
    )


def _nothing_in(tx: Transaction, reads: Sequence[str]) -> InboxOrchError:
    """Nothing to claim; says so when a mailbox that never had a thread is nearly named as one
    that has."""
    refusal = limits.nothing_available("nothing to claim in " + ", ".join(reads))
    empty = [box for box in reads[1:] if not threads.has_any(tx, box)]
    if empty:
        from inbox_orch.shared.shell.nearest import nearest

        from ..store import names

        near = nearest(empty[0], names.mailboxes(tx, "", _MOST_COMPARED, read=False))
        if near:
            refusal.hint = f"did you mean --mailbox {near}?"
    return refusal


def _nothing_came(wait_seconds: float, refusal: InboxOrchError | None) -> InboxOrchError:
    because = f" ({refusal.message})" if refusal is not None else ""
    return InboxOrchError(
        "timeout",
        f"nothing could be claimed within {plain_number(wait_seconds)} s{because}",
        hint="call again to go on waiting",
        details={} if refusal is None else refusal.details,
    )
