"""What becomes of each failure inside an attempt that goes by a blueprint: one table. Pure.

docs/reference/failures.md is made of it.
"""

from typing import NamedTuple

THEN = {
    "same_visit": "the same visit goes on",
    "same_stage": "the same stage is entered again",
    "on_failure": "`on_failure`",
    "decision": "somebody decides",
    "retries": "the task's retries",
}
"""What can follow, each with how it is put."""
ENDS = ("delivery", "visit", "attempt")
"""What a failure can end."""
COUNTS = ("deliveries", "infrastructure", "visits", "attempts")
"""What a failure can be counted among."""


class Failure(NamedTuple):
    """A way to fail: `what` fails; what it `ends`, of `ENDS` (None: nothing, or only itself); what
    it `counts` among, of `COUNTS`; what follows `then`, of `THEN`; and what is to be `told` of it
    beside."""

    what: str
    ends: str | None
    counts: str | None
    then: str
    told: str = ""


_BACK = "files, index and HEAD are as before the visit; the next text has the reason"
_LATER = "later each time; the third time in a row, somebody decides"
_ASKED = "the attempt is blocked, and gives its slot back"

FAILURES = {
    "worker_died": Failure(
        "the worker died, or handed it back",
        "delivery",
        "deliveries",
        "same_visit",
        "in the same worktree; the next worker is told",
    ),
    "no_verdict": Failure(
        "a review answers what is no verdict",
        "delivery",
        "deliveries",
        "same_visit",
        "whoever has it next is told what was wrong; no writer is sent",
    ),
    "review_ended": Failure(
        "the command of a review ends with a failure, takes too long, or has no log-in",
        "delivery",
        "deliveries",
        "same_visit",
        "later each time; whoever has it next is told how it ended; no writer is sent",
    ),
    "deliveries_used_up": Failure(
        "its deliveries are used up", "visit", "infrastructure", "same_stage", _LATER
    ),
    "provider_out": Failure(
        "the provider is limited or out of order", "visit", "infrastructure", "same_stage", _LATER
    ),
    "review_late": Failure(
        "a review takes longer than its `timeout_seconds`",
        "visit",
        "infrastructure",
        "same_stage",
        _LATER,
    ),
    "review_given_up": Failure(
        "a reviewer's `inbox fail`",
        "visit",
        "infrastructure",
        "same_stage",
        f"{_LATER}; no writer is sent",
    ),
    "worker_failed": Failure(
        "any other worker's `inbox fail`", "visit", "visits", "on_failure", _BACK
    ),
    "visit_late": Failure(
        "any other visit takes longer than its `timeout_seconds`",
        "visit",
        "visits",
        "on_failure",
        _BACK,
    ),
    "no_change": Failure("no change where one is due", "visit", "visits", "on_failure", _BACK),
    "unreadable_result": Failure(
        "the result cannot be read", "visit", "visits", "on_failure", _BACK
    ),
    "patch_refused": Failure("the patch does not apply", "visit", "visits", "on_failure", _BACK),
    "policy_denied": Failure("a policy denies it", "visit", "visits", "on_failure", _BACK),
    "policy_asked": Failure(
        "a policy asks, and the answer is no", "visit", "visits", "on_failure", _BACK
    ),
    "approval_refused": Failure(
        "its approval is refused",
        "visit",
        "visits",
        "on_failure",
        "the next text has the reason",
    ),
    "gate_failed": Failure(
        "a gate failed",
        "visit",
        None,
        "on_failure",
        "the next text has what is reported; whether that goes on, convergence says",
    ),
    "gate_unjudged": Failure(
        "a gate cannot be judged, at the base neither", None, None, "decision", _ASKED
    ),
    "changes_requested": Failure(
        "a review asks for changes",
        "visit",
        "visits",
        "on_failure",
        "the next text has the findings",
    ),
    "rejected": Failure("a review rejects", None, None, "decision", _ASKED),
    "visits_used_up": Failure("the visits are used up", None, None, "decision", _ASKED),
    "not_converging": Failure("it does not converge", None, None, "decision", _ASKED),
    "budget_full": Failure("the budget is full", None, None, "decision", _ASKED),
    "abandoned": Failure("somebody decides to abandon it", "attempt", "attempts", "retries"),
    "fatal": Failure(
        "the worker's `inbox fail --fatal`",
        "attempt",
        "attempts",
        "retries",
        "which are over with it",
    ),
    "clock": Failure("a clock of the attempt has run out", "attempt", "attempts", "retries"),
    "worktree_gone": Failure("the worktree is gone", "attempt", "infrastructure", "retries"),
}
"""Every failure by its name. An attempt with a blueprint is not tried again after one that counts
among attempts, unless `max_attempts` says so."""
