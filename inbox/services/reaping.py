"""Noticing what has run out: leases, and the deadlines of questions.

Nothing runs in the background. The next command or wait that looks at a mailbox notices.
"""

import sqlite3
from collections.abc import Sequence

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.transactions import Transaction
from inbox_orch.shared.waits import Look

from ..domain import limits
from ..domain.model import Thread
from ..domain.states import BLOCKED, CLAIMED, FAILED, PENDING
from ..store import leases, threads
from .desk import SYSTEM, Desk, Draft


class Reaping(Desk):
    """The part of a service that notices expiry on its way."""

    def reap(self, mailboxes: Sequence[str]) -> None:
        """Notice what has run out in these mailboxes; writes only when there is something."""
        with self.database.snapshot() as connection:
            if not self.anything_due(connection, mailboxes, self.database.clock.now()):
                return
        with self.database.transaction() as tx:
            self.reap_in(tx, mailboxes)

    def anything_due(
        self, connection: sqlite3.Connection, mailboxes: Sequence[str], now: Moment
    ) -> bool:
        """Whether `reap` would write."""
        return bool(
            leases.expired_in(connection, mailboxes, now, 1)
            or threads.overdue_questions(connection, now.wall_ms, 1)
        )

    def reap_in(self, tx: Transaction, mailboxes: Sequence[str]) -> bool:
        """The same inside a transaction: at most 32 leases, and 32 questions. When more are over,
        those first that would be claimed first; returns whether that was so."""
        over = leases.expired_in(tx.connection, mailboxes, tx.now, limits.MAX_REAPED)
        more = len(over) == limits.MAX_REAPED
        if more:
            over = leases.expired_by_rank(tx.connection, mailboxes, tx.now, limits.MAX_REAPED)
        for thread_id in over:
            self.expire_lease(tx, self.thread_now(tx, thread_id))
        for thread_id in threads.overdue_questions(
            tx.connection, tx.now.wall_ms, limits.MAX_REAPED
        ):
            # The lease first, also of a mailbox that nobody has looked at yet: a holder whose
            # lease is over does not get the thread back.
            self.reap_thread(tx, self.thread_now(tx, thread_id))
        return more

    def reap_thread(self, tx: Transaction, thread: Thread) -> Thread:
        """Notice what has run out on one thread; returns it as it is then."""
        if thread.lease is not None and thread.lease.expired:
            thread = self.expire_lease(tx, thread)
        return self.reap_question(tx, thread)

    def reap_question(self, tx: Transaction, thread: Thread) -> Thread:
        """Notice a question's deadline only; the caller's own lease is its own affair."""
        if question_is_overdue(thread, tx.now):
            thread = self.expire_question(tx, thread)
        return thread

    def expire_lease(self, tx: Transaction, thread: Thread) -> Thread:
        """End an expired lease: offer the thread again, or fail it when deliveries are used up.

        A blocked thread stays blocked without a holder; claiming it after the answer does not
        count a delivery.
        """
        lease = thread.lease
        assert lease is not None and lease.expired
        leases.end(tx.connection, thread.id, lease.epoch, ended_by="expired", now_ms=tx.now.wall_ms)
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
            message = self.write_message(
                tx,
                thread,
                Draft("No delivery is left: the last lease expired without a result."),
                kind="system",
                author=SYSTEM,
            )
        after = self.move(
            tx,
            thread,
            "expire",
            target,
            actor=SYSTEM,
            changes=changes,
            data={**facts, "reason": changes.get("reason")},
            message=message,
        )
        tx.ring(lease.holder, thread.sender)
        return after

    def expire_question(self, tx: Transaction, thread: Thread) -> Thread:
        """Nobody answered in time: say so, and give the thread back to its holder or the queue."""
        assert thread.question is not None
        message = self.write_message(
            tx,
            thread,
            Draft("unanswered: the question's deadline has passed."),
            kind="system",
            author=SYSTEM,
            answers=thread.question,
        )
        after = self.move(
            tx,
            thread,
            "unanswered",
            CLAIMED if thread.holder is not None else PENDING,
            actor=SYSTEM,
            changes=question_closed(tx, thread),
            data={"question": thread.question},
            message=message,
        )
        if after.holder is not None:
            tx.ring(after.holder)
        return after

    def due(
        self,
        connection: sqlite3.Connection,
        mailboxes: Sequence[str],
        now: Moment,
        *,
        reaps: bool = True,
    ) -> Look:
        """When something in these mailboxes falls due by itself, for a wait to wake up then.

        What is over already is worth another look at once, since one look reaps a limited
        number; but only for a wait that `reaps`.
        """
        delayed = threads.due_delayed(connection, mailboxes)
        question = threads.next_question_deadline(connection)
        expiry = leases.next_expiry(connection, mailboxes, now)
        # A thread whose delay is over changes no more until somebody claims it.
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
