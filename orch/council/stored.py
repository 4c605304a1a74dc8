"""Councils as they are stored: rounds, seats, replies, and how a seat stands.

Pure. What replies say and what they come to is not its affair.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ..runs.model import Attempt

MOST_SEATS = 7
MAX_BRIEF_BYTES = 256 * 1024
MAX_LENS_BYTES = 16 * 1024
MOST_DECISIONS, MOST_CHOICES = 20, 10
MAX_REPLY_BYTES = 128 * 1024
MAX_REASON_BYTES = 4096
DEFAULT_QUORUM = 2
DEFAULT_DEADLINE_SECONDS = 3600.0
SEAT_GRACE_SECONDS = 30.0
"""So long after a seat's time limit its worker may take to stop the command and hand in."""

SEAT_FINAL = (
    "valid",
    "valid_after_kill",
    "invalid",
    "empty",
    "declined",
    "abstained",
    "failed",
    "timed_out",
    "late",
)
COUNTED = ("valid", "valid_after_kill")
"""Outcomes of an attempt whose reply counts, if it came in time or later."""

FORMATS = ("md", "json", "madr")


class StoredCouncil(NamedTuple):
    """What is asked. `decisions` is JSON; `seat_seconds` is how long a seat may take."""

    run_id: str
    brief: str
    brief_sha256: str
    nonce: str
    decisions: str
    quorum: int
    seat_seconds: float | None
    created_at: int


class Round(NamedTuple):
    """The first round asks for replies, the second one for votes. Times are wall-clock
    milliseconds; `closed_by` is `final` or `deadline`."""

    run_id: str
    number: int
    deadline_at: int | None
    opened_at: int
    closed_at: int | None
    closed_by: str | None

    @property
    def open(self) -> bool:
        """Whether replies still come in time."""
        return self.closed_at is None


class StoredSeat(NamedTuple):
    """A reviewer in a round, and the task that asks it. `labels` is a ballot's JSON; `closing`
    is how far it had come when the round was closed without its reply."""

    run_id: str
    round: int
    position: int
    reviewer: str
    task_id: str
    lens: str | None
    labels: str | None
    closing: str | None = None


class StoredReply(NamedTuple):
    """What an attempt came to. `raw` is at most 128 KiB of what was sent, `source` where it was
    found; `revision` is that of the tally from which it counts, when it came late."""

    attempt_id: str
    run_id: str
    task_id: str
    state: str
    source: str | None
    raw: bytes | None
    raw_bytes: int
    raw_sha256: str
    reason: str | None
    errors: str
    late: bool
    revision: int | None
    created_at: int


class StoredOverride(NamedTuple):
    """What a leader has settled. `items` is JSON."""

    run_id: str
    number: int
    kind: str
    items: str
    text: str
    actor: str
    forced: bool
    revision: int
    created_at: int


class StoredReport(NamedTuple):
    """A report that was stored as an artifact of a thread."""

    run_id: str
    name: str
    sha256: str
    bytes: int
    revision: int
    thread_id: str
    created_at: int


class Stands(NamedTuple):
    """How a seat stands, and what it has replied, if that decides it."""

    state: str
    reply: StoredReply | None = None

    @property
    def final(self) -> bool:
        """Whether the round need not wait for it any more."""
        return self.state in SEAT_FINAL


class Around(NamedTuple):
    """What is so around a seat. `revision` is that of the tally which is asked for: what came later
    does not count. `delivered`: the mailbox has been read past the request; `overdue`: its own
    time is over."""

    open_round: bool
    revision: int
    delivered: bool
    overdue: bool


def seat_stands(
    seat: StoredSeat, replies: Sequence[StoredReply], attempt: Attempt | None, around: Around
) -> Stands:
    """How a seat stands, from the outcomes of its attempts in order and the newest attempt.

    Once the round is closed, nothing but a late reply can change it.
    """
    for reply in replies:
        counts = reply.state in COUNTED
        if counts and (reply.revision is None or reply.revision <= around.revision):
            return Stands("late" if reply.late else reply.state, reply)
    in_time = [reply for reply in replies if not reply.late]
    if not around.open_round:
        if seat.closing is not None or not in_time:
            return Stands("timed_out")
        return Stands(in_time[-1].state, in_time[-1])
    if in_time and attempt is not None and in_time[-1].attempt_id == attempt.id:
        return Stands(in_time[-1].state, in_time[-1])
    if around.overdue:
        return Stands("timed_out")
    return Stands(_on_the_way(attempt, delivered=around.delivered))


def _on_the_way(attempt: Attempt | None, *, delivered: bool) -> str:
    if attempt is None or attempt.state in ("allocating", "provisioned"):
        return "pending"
    if attempt.state == "offered":
        return "delivered" if delivered else "pending"
    return "leased"
