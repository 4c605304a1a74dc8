"""Whether a run has come to what is waited for, and what to say then.

Rules over values, for `wait`, `drive` and `board`: of one state they give one verdict. Must not
look at a database, a clock or git.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..runs.readiness import Picture, Standing

_FAILED = "`orch status` shows which tasks failed and why"
_ANSWER = "`orch blocked` shows the questions, `orch answer TASK --body TEXT` answers"
_DECIDE = "`orch blocked` shows the decisions, `orch answer TASK --decide ANSWER` decides"
_MERGE = "merge by hand, then: orch dispatch TASK --base COMMIT"


class Goal(NamedTuple):
    """What is waited for: `until` is `change`, `blocked`, `run`, or `task:KEY`, then with the
    id of that task."""

    until: str
    task_id: str | None = None


END_OF_RUN = Goal("run")


class Seen(NamedTuple):
    """What decides: how the tasks of a run stand; `asking`, the keys of those whose questions
    are open; whether anything is `moving`, or may begin to, without a decision; whether
    something has `changed` that has not been told yet; and `deciding`, those of the keys in
    `asking` whose blueprints ask for a decision."""

    picture: Picture
    asking: tuple[str, ...]
    moving: bool
    changed: bool = False
    deciding: tuple[str, ...] = ()


class Verdict(NamedTuple):
    """How waiting ends: well if `code` is None, else with that error (`run_unsuccessful`,
    `needs_decision`), its message and hint."""

    code: str | None = None
    message: str = ""
    hint: str | None = None
    details: Mapping[str, Any] = {}

    def failure(self, data: Mapping[str, Any] | None = None) -> InboxOrchError | None:
        """The error to end with, beside `data`; None if it ended well."""
        if self.code is None:
            return None
        return InboxOrchError(
            self.code, self.message, hint=self.hint, details=self.details, data=data
        )


WELL = Verdict()


def verdict_on(goal: Goal, seen: Seen) -> Verdict | None:
    """How waiting for `goal` ends; None as long as there is something to wait for.

    It ends with the goal, and also when that cannot come any more, or not without a decision.
    """
    picture = seen.picture
    if goal.task_id is not None and goal.task_id not in picture.by_id:
        return _unsuccessful(picture, f"{goal.until.removeprefix('task:')} was removed")
    if _is_reached(goal, seen):
        return WELL
    awaited = None if goal.task_id is None else picture.of(goal.task_id)
    if awaited is not None and awaited.settled:
        return _unsuccessful(picture, f"{awaited.task.key} is {awaited.state}")
    if picture.outcome not in ("running", "stuck"):
        return _unsuccessful(picture, f"run {picture.run.name} is {picture.outcome}")
    if picture.outcome == "stuck" or (seen.asking and not seen.moving):
        return _needs_decision(seen)
    return None


def conflicts(picture: Picture) -> tuple[Standing, ...]:
    """The tasks that wait because what they depend on does not merge."""
    return tuple(s for s in picture.standings if s.state == "base_conflict")


def unreachable(picture: Picture) -> tuple[str, ...]:
    """The keys of the tasks that can never start."""
    return tuple(s.task.key for s in picture.standings if s.state == "unreachable")


def _is_reached(goal: Goal, seen: Seen) -> bool:
    if goal.task_id is not None:
        return seen.picture.of(goal.task_id).state in ("succeeded", "skipped")
    if goal.until == "change" and seen.changed:
        return True
    if goal.until == "blocked" and seen.asking:
        return True
    return seen.picture.outcome == "succeeded"


def _unsuccessful(picture: Picture, message: str) -> Verdict:
    details = {"outcome": picture.outcome, "unreachable": list(unreachable(picture))}
    return Verdict("run_unsuccessful", message, _FAILED, details)


def _needs_decision(seen: Seen) -> Verdict:
    conflicting = [standing.task.key for standing in conflicts(seen.picture)]
    reasons, ways_out = [], []
    questions = [key for key in seen.asking if key not in seen.deciding]
    if questions:
        reasons.append(f"questions are open: {', '.join(questions)}")
        ways_out.append(_ANSWER)
    if seen.deciding:
        reasons.append(f"decisions are open: {', '.join(seen.deciding)}")
        ways_out.append(_DECIDE)
    if conflicting:
        reasons.append(f"what it depends on does not merge: {', '.join(conflicting)}")
        ways_out.append(_MERGE)
    message = f"run {seen.picture.run.name}: nothing runs, and {'; '.join(reasons)}"
    details: dict[str, Any] = {"tasks": [*seen.asking, *conflicting]}
    if seen.deciding:
        details["deciding"] = list(seen.deciding)
    return Verdict("needs_decision", message, "; ".join(ways_out), details)
