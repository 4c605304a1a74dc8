"""What a thread and a token that somebody was given are worth now. Looking changes nothing."""

from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..domain import states
from ..domain.model import Thread
from ..store import leases
from .desk import Desk

HELD, OVERDUE = "held", "overdue"
ENDED, CANCELLED, LOST, UNKNOWN = "ended", "cancelled", "lost", "unknown"


class Standing(NamedTuple):
    """`verdict`: `held`; `overdue`, which is held until somebody else claims it; `ended` by its
    holder; `cancelled`; `lost`, when the token is not the thread's; `unknown`, when there is no
    such thread. `ended_by` is how the lease ended."""

    verdict: str
    thread: Thread | None = None
    ended_by: str | None = None


def standing(desk: Desk, thread_id: str, token: str) -> Standing:
    """Judge a token in the order of `judging`, without a change."""
    now = desk.database.clock.now()
    with desk.database.snapshot() as snapshot:
        try:
            thread = desk.find_thread(snapshot, thread_id, now)
        except InboxOrchError as error:
            if error.code not in ("not_found", "usage"):
                raise
            return Standing(UNKNOWN)
        lease = leases.by_token(snapshot, token)
    if lease is None or (lease.thread_id, lease.epoch) != (thread.id, thread.epoch):
        return Standing(LOST, thread)
    if thread.state == states.CANCELLED:
        return Standing(CANCELLED, thread)
    if lease.ended_by is not None:
        return Standing(LOST if lease.ended_by == "expired" else ENDED, thread, lease.ended_by)
    return Standing(OVERDUE if lease.expired(now) else HELD, thread)
