"""What `inbox work` needs of the bus beside the calls of any holder.

Looking at a lease without writing, claiming without a wait of its own, the messages for the
task file, and moving what counts as read when a command is started with them.
"""

from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_name
from inbox_orch.shared.store import waits
from inbox_orch.shared.store.engine import Session

from ..domain import limits
from ..domain.model import Message, Thread
from ..domain.states import BLOCKED, CANCELLED
from ..domain.working import Hold, Standing
from ..store import leases, messages, threads
from ..store.leases import LeaseRow
from . import claiming, reaping
from .claiming import Claimed
from .desk import Desk

_PAGE = 20
_HOLDS = {"expired": Hold.LOST, "cancelled": Hold.CANCELLED}


def claim_if_any(
    desk: Desk, mailboxes: Sequence[str], *, lease_seconds: float, agent: str | None = None
) -> Claimed | waits.Look:
    """Take the next thread of these mailboxes and one's own, or say when to look again.

    For a caller that waits with an event loop of its own. Errors: `usage`, `busy`.
    """
    holder = desk.acting(agent)
    reads = desk.reading(holder, mailboxes)
    lease_ms = int(limits.check_lease_seconds(lease_seconds) * 1000)
    if claiming.worth_claiming(desk, reads, None):
        try:
            return claiming.claim_now(desk, holder, reads, lease_ms, None)
        except InboxOrchError as error:
            if error.code != "nothing_available":
                raise
    return claiming.due(desk, reads, None)


def standing(desk: Desk, thread_id: str, token: str) -> Standing:
    """How the lease with this token stands. Writes only when a question's deadline has
    passed. Errors: `not_found`, `busy`."""
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        thread = desk.find_thread(snapshot, thread_id, now)
        seen = _stands(snapshot, thread, leases.by_token(snapshot, token))
    deadline = thread.question_deadline
    if seen.hold is not Hold.LIVE or deadline is None or deadline > now.wall_ms:
        return seen
    with desk.database.transaction() as tx:
        thread = reaping.reap_question(desk, tx, desk.thread_now(tx, thread.id))
        return _stands(tx, thread, leases.by_token(tx, token))


def _stands(tx: Session, thread: Thread, lease: LeaseRow | None) -> Standing:
    if lease is None or lease.thread_id != thread.id:
        return Standing(thread, Hold.LOST)
    taken_over = lease.epoch != thread.epoch
    if lease.ended_by is not None:
        hold = _HOLDS.get(lease.ended_by, Hold.ENDED)
        return Standing(thread, hold, lease.ended_by, taken_over)
    if taken_over or thread.state == CANCELLED:
        return Standing(thread, Hold.LOST if taken_over else Hold.CANCELLED)
    return Standing(
        thread,
        Hold.LIVE,
        question_open=thread.state == BLOCKED,
        answer_unread=messages.answered_after(tx, thread.id, lease.read_position),
        renew_at=lease.deadline_monotonic - lease.lease_ms + lease.lease_ms // 3,
        expires_at=lease.deadline_monotonic,
    )


def thread_messages(desk: Desk, thread_id: str, *, after: int = 0) -> Sequence[Message]:
    """The next messages of a thread behind message `after`, whole; empty at the end."""
    with desk.database.snapshot() as snapshot:
        return messages.of_thread(snapshot, thread_id, after=after, limit=_PAGE)


def note_given(desk: Desk, token: str, message_id: int) -> None:
    """The holder has been given everything up to this message. Error `busy`."""
    with desk.database.transaction(durable=False) as tx:
        leases.advance_read_position(tx, token, message_id)


def note_worker(desk: Desk, mailboxes: Sequence[str]) -> tuple[str, ...]:
    """Remember that the agent reads these mailboxes; returns all that it reads.

    Errors: `usage`, `busy`, `read_only`.
    """
    holder = desk.acting(None)
    reads = desk.reading(holder, [check_name(m, "mailbox") for m in mailboxes])
    desk.note_reader(holder, reads)
    return reads


def result_schema(desk: Desk, thread: Thread) -> str | None:
    """The text of the schema of a thread's result, if it has one."""
    with desk.database.snapshot() as snapshot:
        return threads.result_schema(snapshot, thread)
