"""The clocks of an attempt: which of them runs, and when it has run out.

By the wall clock, as everything but leases: a limit is for people to set in hours, and holds
over a reboot. A wall clock that is set forward may end an attempt early, one that is set back
late; either way the attempt is tried again.
"""

from typing import NamedTuple

from inbox_orch.shared.ids import plain_number

from ..runs.model import Limits


class Working(NamedTuple):
    """How the work on an attempt stands, as its thread tells. Wall-clock milliseconds.

    `claimable_at`: since when it may be claimed; `first_claimed_at`: by whomsoever;
    `blocked_ms`: how long questions were open that are settled now; `asked_at`: since when one is
    open; `heard_at`: the holder's last sign of life, or the answer that it waited for;
    `queued_ms`: how long it waited for another holder after the first, questions apart.
    """

    thread_state: str
    claimable_at: int
    first_claimed_at: int | None
    blocked_ms: int
    asked_at: int | None
    heard_at: int | None
    queued_ms: int = 0


class Due(NamedTuple):
    """When a clock runs out (wall-clock milliseconds), and after how many seconds that is."""

    at_ms: int
    clock: str
    limit_seconds: float

    def sentence(self) -> str:
        """Why the attempt is ended."""
        return _SENTENCES[self.clock].format(limit=plain_number(self.limit_seconds))


_SENTENCES = {
    "queue": "queue clock: no worker has claimed it for {limit} s",
    "run": "run clock: it has been worked on for {limit} s",
    "silent": "silent clock: its worker has not been heard of for {limit} s",
    "block": "block clock: its question has been open for {limit} s",
    "visit": "took longer than {limit} s",
}


def running(limits: Limits, working: Working) -> list[Due]:
    """Every clock that runs now, the nearest first.

    While a question is open only the clock of the question runs: the others stand still, since
    a worker is not to blame for waiting.
    """
    blocked = working.thread_state == "blocked"
    started = working.first_claimed_at
    since = {
        "queue": working.claimable_at if working.thread_state == "pending" else None,
        "run": None if blocked or started is None else started + working.blocked_ms,
        "silent": working.heard_at if working.thread_state == "claimed" else None,
        "block": working.asked_at if blocked else None,
    }
    seconds = limits.as_json()
    due = []
    for clock, began in since.items():
        limit = seconds[f"{clock}_seconds"]
        if limit is not None and began is not None:
            due.append(Due(began + int(limit * 1000), clock, limit))
    return sorted(due)


def run_out(limits: Limits, working: Working, now_ms: int) -> Due | None:
    """The clock that ran out first, if one has."""
    due = running(limits, working)
    return due[0] if due and due[0].at_ms <= now_ms else None


def of_visit(limit_seconds: float, working: Working) -> Due | None:
    """When a visit has taken longer than its stage allows; None while no worker has it. Only the
    time counts in which one had it: neither waiting for one, however often, nor for an answer."""
    if working.thread_state != "claimed" or working.first_claimed_at is None:
        return None
    began = working.first_claimed_at + working.blocked_ms + working.queued_ms
    return Due(began + int(limit_seconds * 1000), "visit", limit_seconds)


def has_any(limits: Limits) -> bool:
    """Whether an attempt has any clock at all."""
    return any(
        limit is not None for name, limit in limits.as_json().items() if name != "check_seconds"
    )
