"""Noticing what has run out: leases, and the deadlines of questions.

Nothing runs in the background. The next command or wait that looks at a mailbox notices.
"""

from collections.abc import Sequence

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.store.engine import Session, Transaction
from inbox_orch.shared.store.waits import Look

from ..domain import limits
from ..domain.model import Thread
from ..domain.states import BLOCKED, CLAIMED, FAILED, PENDING
from ..store import leases, threads
from .desk import SYSTEM, Desk, Draft, Heading, Move


def reap(desk: Desk, mailboxes: Sequence[str]) -> None:
    """Notice what has run out in these mailboxes; writes only when there is something."""
    with desk.database.snapshot() as snapshot:
        if not anything_due(desk, snapshot, mailboxes, desk.database.now()):
            return
    with desk.database.transaction() as tx:
        reap_in(desk, tx, mailboxes)


def anything_due(desk: Desk, tx: Session, mailboxes: Sequence[str], now: Moment) -> bool:
    """Whether `reap` would write."""
    return bool(
        leases.expired_in(tx, mailboxes, now, 1) or threads.overdue_questions(tx, now.wall_ms, 1)
    )


def reap_in(desk: Desk, tx: Transaction, mailboxes: Sequence[str]) -> bool:
    """End leases and questions whose time is over, in the caller's transaction: at most 32 of
    each, of leases first those whose threads would be claimed first. Returns whether there may be
    more of either."""
    over = leases.expired_in(tx, mailboxes, tx.now, limits.MAX_REAPED)
    more = len(over) == limits.MAX_REAPED
    if more:
        over = leases.expired_by_rank(tx, mailboxes, tx.now, limits.MAX_REAPED)
    for thread_id in over:
        expire_lease(desk, tx, desk.thread_now(tx, thread_id))
    overdue = threads.overdue_questions(tx, tx.now.wall_ms, limits.MAX_REAPED)
    for thread_id in overdue:
        # The lease first, also of a mailbox that has not been looked at yet: a holder whose
        # lease is over does not get the thread back.
        reap_thread(desk, tx, desk.thread_now(tx, thread_id))
    return more or len(overdue) == limits.MAX_REAPED


def reap_thread(desk: Desk, tx: Transaction, thread: Thread) -> Thread:
    """Notice what has run out on one thread; returns it as it is then."""
    if thread.lease is not None and thread.lease.expired:
        thread = expire_lease(desk, tx, thread)
    return reap_question(desk, tx, thread)


def reap_question(desk: Desk, tx: Transaction, thread: Thread) -> Thread:
    """Notice a question's deadline only; the caller's own lease is its own affair."""
    if question_is_overdue(thread, tx.now):
        thread = expire_question(desk, tx, thread)
    return thread


def expire_lease(desk: Desk, tx: Transaction, thread: Thread) -> Thread:
    """End an expired lease: offer the thread again, or fail it when deliveries are used up.

    A blocked thread stays blocked without a holder; claiming it after the answer does not
    count a delivery.
    """
    lease = thread.lease
    assert lease is not None and lease.expired
    leases.end(tx, thread.id, lease.epoch, leases.End("expired"), now_ms=tx.now.wall_ms)
    facts = {"lease_holder": lease.holder, "expired_at": lease.expires_at}
    changes: dict[str, object] = {"holder": None}
    if thread.state == BLOCKED:
        target, changes["uncounted"] = BLOCKED, 1
    elif thread.deliveries < thread.max_deliveries:
        target, changes["reason"] = PENDING, "lease_expired"
        changes["available_at"] = tx.now.wall_ms
    else:
        target, changes["reason"] = FAILED, "exhausted"
    message = None
    if target == FAILED:
        message = desk.write_message(
            tx,
            thread,
            Draft("No delivery is left: the last lease expired without a result."),
            Heading("system", SYSTEM),
        )
    data = {**facts, "reason": changes.get("reason")}
    after = desk.move(tx, thread, Move("expire", target, SYSTEM, changes, data, message))
    tx.ring(lease.holder, thread.sender)
    return after


def expire_question(desk: Desk, tx: Transaction, thread: Thread) -> Thread:
    """No answer came in time: say so, and give the thread back to its holder or the queue."""
    assert thread.question is not None
    message = desk.write_message(
        tx,
        thread,
        Draft("unanswered: the question's deadline has passed."),
        Heading("system", SYSTEM, answers=thread.question),
    )
    target = CLAIMED if thread.holder is not None else PENDING
    changes, data = question_closed(tx, thread), {"question": thread.question}
    after = desk.move(tx, thread, Move("unanswered", target, SYSTEM, changes, data, message))
    if after.holder is not None:
        tx.ring(after.holder)
    return after


def due(
    desk: Desk,
    tx: Session,
    mailboxes: Sequence[str],
    now: Moment,
    *,
    reaps: bool = True,
) -> Look:
    """When something in these mailboxes falls due by itself, for a wait to wake up then.

    What is over already is worth another look at once, since one look reaps a limited
    number; but only for a wait that `reaps`.
    """
    delayed = threads.due_delayed(tx, mailboxes)
    question = threads.next_question_deadline(tx)
    expiry = leases.next_expiry(tx, mailboxes, now)
    # A thread whose delay is over changes no more until it is claimed.
    if delayed is not None and delayed <= now.wall_ms:
        delayed = None
    if question is not None and question <= now.wall_ms and not reaps:
        question = None
    if expiry is not None and expiry <= now.monotonic_ms and not reaps:
        expiry = None
    wall = [t for t in (delayed, question) if t is not None]
    return Look(None, due_wall_ms=min(wall, default=None), due_monotonic_ms=expiry)


def question_is_overdue(thread: Thread, now: Moment) -> bool:
    """Whether the deadline of its open question has passed."""
    return thread.question_deadline is not None and thread.question_deadline <= now.wall_ms


def question_closed(tx: Transaction, thread: Thread) -> dict[str, object]:
    """The columns that change when a question is settled without the holder's doing."""
    changes: dict[str, object] = {"question": None, "question_deadline": None}
    if thread.holder is None:
        changes |= {"available_at": tx.now.wall_ms, "reason": "answered"}
    return changes
