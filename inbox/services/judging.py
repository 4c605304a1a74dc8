"""Whether a token still serves: one transaction of a holder, with its token judged.

The order in which a token is judged is the contract's (guarantee 1) and stands in `_judge` alone.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..domain import states
from ..domain.model import Message, Thread
from ..store import leases, messages, threads
from ..store.leases import LeaseRow
from . import reaping
from .desk import Desk
from .reaping import question_is_overdue


class Held(NamedTuple):
    """A call by the holder: inside its transaction, the token judged.

    `repeat` is set when the call is an exact repeat of the one that ended the lease.
    """

    tx: Transaction
    thread: Thread
    lease: LeaseRow
    late: bool
    repeat: Message | None

    @property
    def agent(self) -> str:
        """The holder."""
        return self.lease.holder


@contextlib.contextmanager
def hold(
    desk: Desk,
    thread_id: str,
    token: str,
    digest: str | None = None,
    *,
    durable: bool = True,
    ended_too: bool = False,
) -> Iterator[Held]:
    """One transaction of a holder. A cancelled thread's holder is told, and that it has
    been told is recorded, in the same transaction.

    Others act on what is recorded besides the call itself, so that has to be on the disk,
    even where the call need not be.
    """
    with desk.database.transaction(durable=durable) as tx:
        thread = desk.find_thread(tx, thread_id, tx.now)
        lease = _judge(tx, thread, token)
        lasting = tx.durable or not (lease is None or question_is_overdue(thread, tx.now))
        if lasting and lease is not None:
            yield _decide(desk, tx, thread, lease, digest, ended_too)
            return
        if lasting and not thread.cancel_seen:
            _note_cancel_seen(desk, tx, thread, token)
    if not lasting:
        # Nothing has been written; how a commit is made must be known before it begins.
        with hold(desk, thread_id, token, digest, ended_too=ended_too) as held:
            yield held
        return
    raise cancelled(thread)


def _judge(tx: Transaction, thread: Thread, token: str) -> LeaseRow | None:
    """The lease of a token that is the thread's last one; None when the thread has been
    cancelled. Error `lease_lost` for any other token."""
    lease = leases.by_token(tx, token)
    last = lease is not None and (lease.thread_id, lease.epoch) == (thread.id, thread.epoch)
    if last and thread.state == states.CANCELLED:
        return None
    if lease is None or not last or lease.ended_by == "expired":
        raise lease_lost(thread, lease)
    return lease


def _decide(
    desk: Desk,
    tx: Transaction,
    thread: Thread,
    lease: LeaseRow,
    digest: str | None,
    ended_too: bool,
) -> Held:
    if lease.ended_by is not None:
        if digest is not None and digest == lease.end_digest:
            assert lease.end_message is not None
            message = messages.get(tx, lease.end_message)
            return Held(tx, thread, lease, thread.late, message)
        if ended_too:
            return Held(tx, thread, lease, False, None)
        raise InboxOrchError(
            "invalid_state",
            f"this lease of thread {thread.id} has ended: it was {lease.ended_by}",
            hint="claim the thread again to go on, if it is pending",
            details={"thread": thread.id, "state": thread.state, "ended_by": lease.ended_by},
        )
    thread = reaping.reap_question(desk, tx, thread)
    tx.keep()
    return Held(tx, thread, lease, lease.expired(tx.now), None)


def _note_cancel_seen(desk: Desk, tx: Transaction, thread: Thread, token: str) -> None:
    threads.update(
        tx,
        thread.id,
        {"cancel_seen": 1},
        expected_state=thread.state,
        expected_epoch=thread.epoch,
    )
    lease = leases.by_token(tx, token)
    assert lease is not None
    desk.record(tx, "cancel_seen", thread, actor=lease.holder, data={"from": thread.state})


def check_early(desk: Desk, thread_id: str, token: str, attach: Sequence[str]) -> None:
    """Judge the token before a large file is copied in for nothing."""
    if attach:
        with desk.database.snapshot() as snapshot:
            thread = desk.find_thread(snapshot, thread_id, desk.database.now())
            lease = leases.by_token(snapshot, token)
        if lease is None or (lease.thread_id, lease.epoch) != (thread.id, thread.epoch):
            raise lease_lost(thread, lease)


def lease_lost(thread: Thread, lease: LeaseRow | None) -> InboxOrchError:
    """The token is not the thread's any more: exit 7, with who has it now, or how it ended."""
    expires_at = None if thread.lease is None else rfc3339(thread.lease.expires_at)
    now = f"held by {thread.holder}" if thread.holder else thread.state
    if thread.state == states.FAILED and thread.reason:
        now += f" ({thread.reason})"
    return InboxOrchError(
        "lease_lost",
        f"the token is not the current one of thread {thread.id}, which is now {now}",
        hint="stop working on it; nothing was changed. `claim` gets a new lease if it is pending",
        details={
            "thread": thread.id,
            "state": thread.state,
            "reason": thread.reason,
            "holder": thread.holder,
            "epoch": thread.epoch,
            "token_epoch": None if lease is None else lease.epoch,
            "expires_at": expires_at,
        },
    )


def cancelled(thread: Thread) -> InboxOrchError:
    """The thread was cancelled under its holder: exit 10."""
    return InboxOrchError(
        "cancelled",
        f"thread {thread.id} was cancelled",
        hint="stop working on it; what you have not handed in is not wanted any more",
        details={"thread": thread.id, "reason": thread.reason},
    )
