"""Visits: each entry of a stage in an attempt, as values. Pure.

An attempt at a task without a blueprint has one, of the stage `work`; it lives as long as the
attempt. The thread and the mailbox of an attempt are those of its live visit, or of the last that
had some.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

from ..runs.model import Attempt

WORK = "work"
OPERATOR = "operator"
"""The mailbox in which decisions are asked for."""


class Visit(NamedTuple):
    """`number` counts the visits of the attempt, `nth` those of its `stage`, both from 1. `kind`
    and `state` are of `VISIT_KINDS` and `VISIT_STATES`. `tree_before` and `tree_after` are what
    lay in the worktree, `snapshot` a commit that keeps it as it was after, `head` its HEAD then.
    `verdict` is the one word that the route follows, `reason` why, in a line; `result` JSON;
    `tries` how often leaders have begun the gate that it is at; `worked_ms` how long workers had
    it. Times are wall-clock milliseconds."""

    attempt_id: str
    number: int
    stage: str
    nth: int
    kind: str
    state: str
    mailbox: str | None
    thread_id: str | None
    tree_before: str | None
    tree_after: str | None
    snapshot: str | None
    head: str | None
    worker: str | None
    verdict: str | None
    reason: str | None
    result: str | None
    tries: int
    worked_ms: int | None
    created_at: int
    ended_at: int | None

    @property
    def live(self) -> bool:
        """Whether it goes on."""
        return self.ended_at is None

    @property
    def found(self) -> dict[str, Any]:
        """The result as a value; empty where there is none."""
        stored: dict[str, Any] = {} if self.result is None else json.loads(self.result)
        return stored

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "stage": self.stage,
            "nth": self.nth,
            "kind": self.kind,
            "state": self.state,
            "mailbox": self.mailbox,
            "thread": self.thread_id,
            "tree_before": self.tree_before,
            "tree_after": self.tree_after,
            "snapshot": self.snapshot,
            "head": self.head,
            "worker": self.worker,
            "verdict": self.verdict,
            "reason": self.reason,
            "result": None if self.result is None else json.loads(self.result),
            "created_at": rfc3339(self.created_at),
            "ended_at": rfc3339(self.ended_at),
        }


def seats_of(visit: Visit) -> list[str]:
    """The threads of a visit that several workers have at once."""
    return list(visit.found.get("seats", ())) if visit.kind == "council" else []


def heard_in(live: Sequence[Attempt]) -> tuple[str, ...]:
    """The mailboxes in which the threads of attempts that live are."""
    found = dict.fromkeys(a.mailbox for a in live if a.thread_id is not None and not a.deciding)
    if any(a.deciding for a in live):
        found[OPERATOR] = None
    return tuple(found)


ENDED_AS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "rejected": "failed",
    "lost": "lost",
}
"""How the live visit ends with its attempt, by the state of that; otherwise `cancelled`."""


def ended_with(attempt_state: str) -> str:
    """How the live visit of an attempt ends with it."""
    return ENDED_AS.get(attempt_state, "cancelled")
