"""Why an attempt went the way it went: of each visit how it ended, which route that took, and where
to; how its loops get on; what comes next, and how much may still come. Only looks.

It asks the machine that decides itself, with the visits up to each: nothing is told from memory.
"""

from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import WISHES, Run
from ..stages import course as courses
from ..stages import overtime
from ..stages.checking import most_visits
from ..stages.convergence import Verdict
from ..stages.course import Course, is_of_a_stage
from ..stages.machine import CHECKS, Seen, Step, convergence, next_step, route_of
from . import stages
from .changes import newest_or_named
from .stage_words import entry

_ENDS = {"accept": "done", "end": "fail"}
_LOST = ("lost", "void", "cancelled")


class Explained(NamedTuple):
    """One visit. `route` is the one that its stage took after it, None where no stage did: a
    decision takes what was answered. `target` is where that went: a stage, `done`, `fail`, or
    `decision`; None for a visit that lives, or that ended with its attempt. `verdict` is how the
    loop around it got on, where something was to be mended."""

    visit: Visit
    route: str | None
    target: str | None
    verdict: Verdict | None

    @property
    def why(self) -> str | None:
        """What there is to say of how it ended."""
        said = [None if self.visit.live else stages.why_of(self.visit)]
        said += [self.verdict.sentence if self.verdict is not None else None]
        return " – ".join(each for each in said if each) or None

    def as_json(self) -> dict[str, Any]:
        visit, verdict = self.visit, self.verdict
        return {
            "visit": stages.as_json([visit])[0],
            "route": self.route,
            "target": self.target,
            "convergence": None if verdict is None else verdict._asdict(),
            "why": self.why,
        }


class Explanation(NamedTuple):
    """An attempt that goes by a blueprint. `next`: what comes next, in words; `most_visits` how
    many visits of agents there are at most as long as nobody answers `continue`, `used` how many
    there were."""

    run: Run
    name: str
    course: Course
    items: tuple[Explained, ...]
    next: str
    most_visits: int

    @property
    def used(self) -> int:
        """How many visits of agents and councils there were."""
        return sum(each.visit.kind in ("agent", "council") for each in self.items)

    def as_json(self) -> dict[str, Any]:
        attempt = self.course.attempt
        return {
            "run": self.run.as_json(),
            "task": self.course.task.id,
            "key": self.course.task.key,
            "attempt": attempt.id,
            "number": attempt.number,
            "state": attempt.state,
            "blueprint": self.course.blueprint.id,
            "items": [each.as_json() for each in self.items],
            "truncated": False,
            "next_cursor": None,
            "next": self.next,
            "visits": self.used,
            "most_visits": self.most_visits,
            "max_total_visits": self.course.blueprint.max_total_visits,
        }


def explain(desk: Desk, name: str, run_name: str | None) -> Explanation:
    """The newest attempt at a task, or the one that is named (`KEY/N`). Errors: `not_found`,
    `usage`, `invalid_state` (it goes by no blueprint)."""
    run, listed = newest_or_named(desk, name, run_name)
    if not listed.attempt.staged:
        raise InboxOrchError(
            "invalid_state",
            f"{listed.name} goes by no blueprint",
            hint=f"`orch attempt show {listed.name}` tells what there is of it",
            details={"attempt": listed.attempt.id, "key": listed.key},
        )
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, listed.attempt.id)
        assert attempt is not None, "attempts are never removed"
        course = courses.read(snapshot, run, attempt.id)
        decision = stages.decisions_in(snapshot, [attempt]).get(attempt.task_id)
        by_do = runs.asked_by_key(snapshot, run, WISHES)
    items = tuple(_explained(course, number) for number in range(len(course.visits)))
    following = (
        _next(course, by_do) if decision is None else f"somebody decides: {decision.sentence}"
    )
    most = most_visits(course.blueprint)
    return Explanation(run, listed.name, course, items, following, most)


def _explained(course: Course, number: int) -> Explained:
    visit = course.visits[number]
    ended_with_it = not course.attempt.live and number == len(course.visits) - 1
    if visit.live or (visit.state == "cancelled"):
        return Explained(visit, None, None, None)
    seen = _up_to(course, number)
    route = _route(visit, seen)
    step = next_step(seen)
    if ended_with_it and (step.do not in _ENDS or step.cause == "split"):
        # Not by its blueprint: it was cancelled, took too long, its worker gave up for good, or its
        # task was split.
        return Explained(visit, route, None, convergence(seen))
    return Explained(visit, route, _target(step), convergence(seen))


def _up_to(course: Course, number: int) -> Seen:
    """What the machine knew when this visit was over."""
    whole = course.seen()
    later = course.visits[number + 1 : number + 2]
    checked_next = any(visit.stage == CHECKS for visit in later)
    return Seen(
        whole.blueprint, whole.visits[: number + 1], checked_next or (not later and whole.unchecked)
    )


def _route(visit: Visit, seen: Seen) -> str | None:
    if visit.kind == "decision":
        return visit.verdict
    if visit.state in _LOST or not (is_of_a_stage(visit) or visit.stage == CHECKS):
        return None
    return route_of(seen.visits[-1])


def _target(step: Step) -> str:
    return _ENDS.get(step.do) or ("decision" if step.do == "decide" else str(step.stage))


def _next(course: Course, by_do: bool) -> str:
    attempt, live = course.attempt, course.live
    if not attempt.live:
        return f"nothing: it is {attempt.state}" + (f", {attempt.reason}" if attempt.reason else "")
    if live is not None and overtime.is_over(live):
        return f"{entry(live.stage, live.nth)} {live.reason}, and its worker is being stopped"
    if live is not None:
        where = f" of `{live.mailbox}`" if live.mailbox else ""
        return f"{entry(live.stage, live.nth)} goes on: {_who(live, where, by_do)}"
    step = course.step()
    if step.do in _ENDS:
        return f"it ends: {_ENDS[step.do]}"
    if step.do == "decide":
        return f"somebody is asked to decide about {step.stage}"
    return f"{entry(step.stage, course.nth(str(step.stage)))}, as soon as a leader is there for it"


def _who(live: Visit, where: str, by_do: bool) -> str:
    if live.kind in ("gates", "action"):
        leads = "the same `orch do` call again" if by_do else "`orch drive`"
        return f"a leader runs it ({leads} does)"
    starts = " (the same `orch do` call again starts one)" if by_do else ""
    return f"a worker{where} has it, or takes it next{starts}"
