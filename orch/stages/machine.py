"""What comes next in an attempt that goes by a blueprint: a function of its visits. Pure.

Whoever carries the steps out writes down one visit for each, so that the next leader, after any
crash, comes to the same.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from .convergence import Point, Verdict, judge
from .loops import counted, loop_of
from .model import SURROUNDINGS, Blueprint, Stage

CHECKS = "checks"
"""The stage after the last one: the checks of the task, if no stage has run them on this tree."""
MOST_LOST = 3
"""So many visits in a row whose workers were lost, and somebody has to decide."""
FIRST_PAUSE_MS, MOST_PAUSE_MS = 2_000, 120_000
_MOST_NAMED = 3
RENEWING = ("continue", "change_role", "relax")
"""Answers after which the loops' counters start anew."""
AS_IT_IS = "as it is"
"""Where an approval goes on at after somebody has decided to accept the work as it is."""
ANSWERS = ("continue", "change_role", "accept", "split", "relax", "abandon")
"""What may be answered; `relax` only where there is a refused patch to release."""
APPROVAL_ANSWERS = ("approve", "refuse", "abandon")


class Past(NamedTuple):
    """A visit that is over. `kind` and `state` as its row has them; `verdict`: of a review, what it
    says, of a decision, its answer. `tree`: what lay there then. `failing`: the first gate that
    stops, with the failures that count. `cause`, `about`, `resume`: of a decision, why it was asked
    for, in which stage, and which stage a plain yes enters. Of one that has released a rule of a
    refused patch, `takes` is the stage whose work that was, None where it lies in the worktree, and
    `left` are the rules that still keep it out. `ended_ms` by the wall clock."""

    stage: str
    kind: str
    state: str
    verdict: str | None = None
    reason: str | None = None
    tree: str | None = None
    failing: tuple[str, Mapping[str, int]] | None = None
    cause: str | None = None
    about: str | None = None
    resume: str | None = None
    ended_ms: int = 0
    takes: str | None = None
    left: tuple[str, ...] = ()


class Seen(NamedTuple):
    """All that decides: the blueprint, the visits that are over, whether the task has checks that
    no visit has run on the last tree, and whether a policy asks for an approval of what is there
    (`unapproved`)."""

    blueprint: Blueprint
    visits: Sequence[Past]
    unchecked: bool = False
    unapproved: bool = False


class Step(NamedTuple):
    """What to do. `do`: `offer` (an agent), `gates`, `action`, `council`, `decide`, `accept`, or
    `end`; `action` for the stage of an agent is that its refused work is taken up. `stage` is the
    one that is entered, or that a decision is about. `cause` and `reason` say why it is not simply
    the next one; `told` is what the next worker is told of how it converges; `resume` the stage
    that a decision may go on at. Not before `at_ms`. `by_policy`: it is a policy that asks for the
    decision, before the work comes in."""

    do: str
    stage: str | None = None
    cause: str | None = None
    reason: str | None = None
    told: str | None = None
    resume: str | None = None
    at_ms: int = 0
    by_policy: bool = False


def has_to_wait(step: Step, now_ms: int) -> bool:
    """Whether it is too early for a step. One that seems further off than any pause was set before
    the clock was put back: its time has come."""
    return now_ms < step.at_ms <= now_ms + MOST_PAUSE_MS


def next_step(seen: Seen) -> Step:
    """What comes next. Of one history it is always the same; see `Seen`."""
    # A decision that was void is asked for again.
    past = [v for v in seen.visits if not (v.kind == "decision" and v.state != "succeeded")]
    begun = [v for v in past if v.stage != SURROUNDINGS]
    if not begun:
        return _enter(seen, past, seen.blueprint.first)
    step = _after_last(seen, begun, begun[-1])
    return _asked_later(seen, step) if step.do == "decide" else step


def _after_last(seen: Seen, begun: Sequence[Past], last: Past) -> Step:
    if last.kind == "decision":
        return _after_decision(seen, begun, last)
    if last.state in ("lost", "void"):
        return _once_more(seen, begun, last)
    return _after(seen, begun, last)


def _asked_later(seen: Seen, step: Step) -> Step:
    """What came to nothing is asked again at once, and then later each time: whoever answers may be
    a program that never does."""
    void = list(
        takewhile(lambda v: v.kind == "decision" and v.state != "succeeded", seen.visits[::-1])
    )
    if len(void) < 2:
        return step
    return step._replace(at_ms=void[0].ended_ms + _pause_ms(len(void) - 1))


def _pause_ms(number: int) -> int:
    """The pause before the next time, after so many."""
    return int(min(MOST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** min(number - 1, 20)))


# -- after a visit -----------------------------------------------------------------------


def _after(seen: Seen, begun: Sequence[Past], last: Past) -> Step:
    stage = _stage(seen.blueprint, last.stage)
    route = route_of(last)
    target = stage.target(route)
    if route == "on_success" and stage.approval == "after":
        return Step("decide", stage.id, "approval", resume=target)
    if last.state == "failed" and last.failing is not None and target in seen.blueprint.by_id:
        return _after_failing(seen, begun, last, target)
    return _go(seen, begun, last, target)


def route_of(last: Past) -> str:
    """The route that the stage of a visit takes after it."""
    if last.state == "succeeded":
        return "on_success"
    if last.state == "failed":
        return "on_reject" if last.verdict == "reject" else "on_failure"
    return "on_skip" if last.state == "skipped" else "on_error"


def _after_failing(seen: Seen, begun: Sequence[Past], last: Past, target: str) -> Step:
    """To the stage that mends, as long as that converges."""
    points = _series(begun, last)
    left = _visits_left(seen, begun, target)
    verdict = judge(points, visits_left=left)
    if verdict.stops:
        assert last.failing is not None
        reason = f"{verdict.sentence.rstrip('.')}; {_named(last.failing)}"
        return Step("decide", last.stage, verdict.word, reason, resume=target)
    told = verdict.sentence if len(points) > 1 else None
    return _go(seen, begun, last, target)._replace(told=told)


def convergence(seen: Seen) -> Verdict | None:
    """How the loop around the last visit gets on, by which it was decided where that goes; None
    where nothing is to be mended after it."""
    past = [v for v in seen.visits if v.stage != SURROUNDINGS]
    last = past[-1] if past else None
    if last is None or last.kind == "decision" or last.state != "failed" or last.failing is None:
        return None
    target = _stage(seen.blueprint, last.stage).target(route_of(last))
    if target not in seen.blueprint.by_id:
        return None
    begun = [v for v in past if not (v.kind == "decision" and v.state != "succeeded")]
    return judge(_series(begun, last), visits_left=_visits_left(seen, begun, target))


def _named(failing: tuple[str, Mapping[str, int]]) -> str:
    """The gate, and what it names first."""
    gate, failures = failing
    names = list(failures)
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{gate}: {', '.join(names[:_MOST_NAMED])}{more}"


def _series(begun: Sequence[Past], last: Past) -> list[Point]:
    """What the loop has come to: the visits of this stage in which the same gate failed first,
    since it last let the work pass or somebody decided."""
    assert last.failing is not None
    points: list[Point] = []
    for visit in reversed(begun):
        if visit.kind == "decision" and visit.verdict in RENEWING:
            break
        if visit.stage != last.stage:
            continue
        if visit.failing is None or visit.failing[0] != last.failing[0]:
            break
        points.append(Point(visit.tree or "", visit.failing[1]))
    return points[::-1]


def _once_more(seen: Seen, begun: Sequence[Past], last: Past) -> Step:
    """The same stage again after its workers were lost, a little later each time."""
    lost = 0
    for visit in reversed(begun):
        if visit.state not in ("lost", "void"):
            break
        lost += 1
    if lost >= MOST_LOST:
        return Step("decide", last.stage, "infrastructure", last.reason, resume=last.stage)
    again = _enter(seen, begun, last.stage)
    return again._replace(at_ms=last.ended_ms + _pause_ms(lost))


def _after_decision(seen: Seen, begun: Sequence[Past], last: Past) -> Step:
    resume = last.resume or seen.blueprint.first
    if last.verdict == "abandon":
        return Step("end", last.about, "abandoned", last.reason)
    if last.verdict == "split":
        return Step("end", last.about, "split", last.reason)
    if last.verdict == "relax":
        return _after_relaxing(seen, begun, last, resume)
    if last.verdict == "accept" or (last.verdict == "approve" and resume == AS_IT_IS):
        if seen.unapproved:
            return _approval(last.about or seen.blueprint.first, AS_IT_IS)
        return Step("accept", last.about, "accepted", last.reason)
    if last.verdict == "refuse":
        stage = _stage(seen.blueprint, last.about or resume)
        return _go(seen, begun, last, stage.target("on_failure"))
    return _go(seen, begun, last, resume)


def _after_relaxing(seen: Seen, begun: Sequence[Past], last: Past, resume: str) -> Step:
    """To the refused work, as soon as nothing keeps it out any more: that of an agent is taken as
    it is; a leader does its own once more."""
    if last.left:
        reason = f"its patch still breaks {', '.join(last.left)}"
        return Step("decide", last.about, last.cause, reason, resume=resume)
    if last.takes is None:
        return _go(seen, begun, last, "done")
    if _stage(seen.blueprint, last.takes).type == "agent":
        return Step("action", last.takes)
    return _enter(seen, begun, last.takes)


# -- to the next one ---------------------------------------------------------------------


def _go(seen: Seen, begun: Sequence[Past], last: Past, target: str) -> Step:
    if target == "done":
        if seen.unchecked and last.stage != CHECKS:
            return Step("gates", CHECKS)
        if seen.unapproved:
            return _approval(_last_writing(seen, begun), "done")
        return Step("accept")
    if target == "fail":
        return Step("end", last.stage, "failed", last.reason)
    if target == "pause":
        cause = _why_it_pauses(last)
        return Step(
            "decide", last.about or last.stage, cause, last.reason, resume=_again(seen, last)
        )
    return _enter(seen, begun, target)


def _approval(about: str, resume: str) -> Step:
    return Step("decide", about, "approval", resume=resume, by_policy=True)


def _last_writing(seen: Seen, begun: Sequence[Past]) -> str:
    """The stage that has changed something last: a refusal goes the way of its failure."""
    stages = seen.blueprint.by_id
    for visit in reversed(begun):
        stage = stages.get(visit.stage)
        if stage is not None and stage.type == "agent" and stage.writes:
            return stage.id
    return seen.blueprint.first


def _why_it_pauses(last: Past) -> str:
    if last.state == "error":
        return "error"
    return "rejected" if last.verdict == "reject" else "pause"


def _again(seen: Seen, last: Past) -> str:
    """Where it goes on when somebody says so: a rejected review at what its stage does about
    changes, everything else where it stopped."""
    if last.stage == CHECKS:
        return CHECKS if last.state == "error" else seen.blueprint.first
    if last.verdict == "reject":
        target = _stage(seen.blueprint, last.stage).target("on_failure")
        if target in seen.blueprint.by_id:
            return target
    return last.about or last.stage


def _enter(seen: Seen, begun: Sequence[Past], target: str) -> Step:
    stage = _stage(seen.blueprint, target)
    if stage.approval == "before" and not _is_approved(begun, target):
        return Step("decide", target, "approval", resume=target)
    if stage.type in ("agent", "council"):
        if _visits_left(seen, begun, target) <= 0:
            return Step("decide", target, "exhausted", _used_up(seen, begun, stage), resume=target)
        return Step("offer" if stage.type == "agent" else "council", target)
    return Step("gates" if stage.runs_gates else "action", target)


def _is_approved(begun: Sequence[Past], target: str) -> bool:
    last = begun[-1] if begun else None
    return last is not None and (last.kind, last.verdict, last.resume) == (
        "decision",
        "approve",
        target,
    )


def _used_up(seen: Seen, begun: Sequence[Past], stage: Stage) -> str:
    if seen.blueprint.max_total_visits <= _visits_of_agents(begun):
        return f"{seen.blueprint.max_total_visits} visits are used up"
    return f"the {stage.max_visits} visits of {stage.id} are used up"


# -- bounds ------------------------------------------------------------------------------


def _visits_left(seen: Seen, begun: Sequence[Past], target: str) -> int:
    """How often a stage may still be entered: by itself, counted since the loop around it was last
    left, and by the bound of the whole attempt; counters start anew when somebody says so."""
    stage = _stage(seen.blueprint, target)
    if stage.type == "deterministic":
        return seen.blueprint.max_total_visits
    left = seen.blueprint.max_total_visits - _visits_of_agents(begun)
    if stage.max_visits is not None:
        left = min(left, stage.max_visits - _visits_in_the_loop(seen, begun, target))
    return left


def _counts(visit: Past) -> bool:
    return visit.kind in ("agent", "council") and visit.state in ("succeeded", "failed", "error")


def _since_renewed(begun: Sequence[Past]) -> list[Past]:
    found: list[Past] = []
    for visit in reversed(begun):
        if visit.kind == "decision" and visit.verdict in RENEWING:
            break
        found.append(visit)
    return found[::-1]


def _visits_of_agents(begun: Sequence[Past]) -> int:
    return sum(map(_counts, _since_renewed(begun)))


def _visits_in_the_loop(seen: Seen, begun: Sequence[Past], target: str) -> int:
    """The visits of a stage since its loop was last entered; see `loops`."""
    history = [
        visit.stage
        for visit in _since_renewed(begun)
        if visit.kind != "decision"
        and visit.state not in ("lost", "void")
        # Refused work that was taken up was the visit before.
        and not (visit.kind == "action" and _stage(seen.blueprint, visit.stage).type == "agent")
    ]
    return counted(history, target, loop_of(seen.blueprint, target))


def _stage(blueprint: Blueprint, stage_id: str) -> Stage:
    found = blueprint.by_id.get(stage_id)
    if found is None:
        assert stage_id == CHECKS, f"{blueprint.id} has no stage {stage_id}"
        return Stage(CHECKS, "deterministic", action="run_gates", on_failure="pause")
    return found
