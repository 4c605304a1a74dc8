"""What comes next in an attempt with a blueprint: it ends, within the bound that is printed."""

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from inbox_orch.orch.stages.checking import faults, most_visits
from inbox_orch.orch.stages.machine import (
    CHECKS,
    MOST_LOST,
    MOST_PAUSE_MS,
    Past,
    Seen,
    Step,
    has_to_wait,
    next_step,
)
from inbox_orch.orch.stages.model import ENDS, Blueprint, Stage

NAMES = ("a", "b", "c", "d", "e")


@st.composite
def stage(draw: st.DrawFn, number: int, names: tuple[str, ...]) -> Stage:
    """A stage that goes on to the next one when all is well, and anywhere otherwise."""
    ahead = names[number + 1] if number + 1 < len(names) else "done"
    anywhere = st.sampled_from((*names, *ENDS)) | st.none()
    kind = draw(st.sampled_from(("agent", "review", "gates", "action")))
    routes = {route: draw(anywhere) for route in ("on_failure", "on_error", "on_skip")}
    routes["on_success"] = draw(st.just(ahead) | st.just(ahead) | anywhere)
    if kind in ("gates", "action"):
        action = "run_gates" if kind == "gates" else "summarize_run"
        return Stage(names[number], "deterministic", action=action, **routes)
    reviews: dict[str, Any] = {"writes": False, "reviews": True, "on_reject": draw(anywhere)}
    return Stage(
        names[number],
        "agent",
        goal="Do it.",
        max_visits=draw(st.integers(1, 3) | st.integers(1, 3) | st.none()),
        approval=draw(st.sampled_from(("none", "none", "before", "after"))),
        **routes,
        **(reviews if kind == "review" else {}),
    )


@st.composite
def blueprints(draw: st.DrawFn) -> Blueprint:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    stages = tuple(draw(stage(number, names)) for number in range(len(names)))
    return Blueprint("x", stages, max_total_visits=draw(st.integers(1, 12)))


def visit(blueprint: Blueprint, step: Step, draw: Any, number: int) -> Past:
    """One visit that the step leads to, with any outcome that it can have."""
    name = str(step.stage)
    known = blueprint.by_id.get(name) or Stage(CHECKS, "deterministic", action="run_gates")
    tree = f"t{draw(st.integers(0, 3))}"
    if step.do == "offer":
        states = ["succeeded", "failed", "lost", "error"] + ["skipped"] * known.reviews
        state = draw(st.sampled_from(states))
        verdict = None
        if known.reviews and state in ("succeeded", "failed"):
            bad = draw(st.sampled_from(("request_changes", "reject")))
            verdict = "approve" if state == "succeeded" else bad
        return Past(name, "agent", state, verdict, tree=tree, ended_ms=number)
    state = draw(st.sampled_from(("succeeded", "failed", "error", "skipped")))
    kind = "gates" if known.runs_gates else "action"
    failing = None
    if state == "failed" and kind == "gates":
        failing = (draw(st.sampled_from("gh")), {"x": draw(st.integers(1, 3))})
    return Past(name, kind, state, tree=tree, failing=failing, ended_ms=number)


@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
@given(blueprints(), st.data())
def test_it_ends_or_asks_within_the_printed_bound_whatever_comes_out(
    blueprint: Blueprint, data: st.DataObject
):
    assume(not faults(blueprint))
    bound, past = most_visits(blueprint), list[Past]()
    most = (bound + 1) * (len(blueprint.stages) + 2) * MOST_LOST
    step = next_step(Seen(blueprint, past, unchecked=True))
    while step.do not in ("accept", "end") and (step.do != "decide" or step.cause == "approval"):
        assert len(past) <= most, past
        if step.do == "decide":
            # Somebody who refuses it for ever is asked for ever.
            refused = sum(v.verdict == "refuse" for v in past)
            answer = data.draw(
                st.sampled_from(("approve", "refuse") if refused < 3 else ("approve",))
            )
            asked = Past("decision", "decision", "succeeded", answer)
            past.append(asked._replace(cause="approval", about=step.stage, resume=step.resume))
        else:
            past.append(visit(blueprint, step, data.draw, len(past)))
        step = next_step(Seen(blueprint, past, unchecked=True))

    counted = [v for v in past if v.kind == "agent" and v.state not in ("lost", "skipped")]
    assert len(counted) <= bound
    if step.do == "decide":
        assert step.resume in blueprint.by_id or step.resume in (*ENDS, CHECKS)


@settings(max_examples=50, suppress_health_check=[HealthCheck.filter_too_much])
@given(blueprints(), st.data())
def test_no_decision_is_a_dead_end(blueprint: Blueprint, data: st.DataObject):
    assume(not faults(blueprint))
    past = list[Past]()
    for _ in range(12):
        step = next_step(Seen(blueprint, past))
        if step.do in ("accept", "end"):
            return
        if step.do == "decide":
            answers = ("approve",) if step.cause == "approval" else ("continue", "accept")
            asked = Past("decision", "decision", "succeeded", data.draw(st.sampled_from(answers)))
            asked = asked._replace(cause=step.cause, about=step.stage, resume=step.resume)
            past.append(asked)
            after = next_step(Seen(blueprint, past))
            assert (after.do, after.stage, after.cause) != (step.do, step.stage, step.cause)
        else:
            past.append(visit(blueprint, step, data.draw, len(past)))


def test_a_stage_whose_workers_are_lost_is_entered_again_later_each_time_and_then_asked_about():
    blueprint = Blueprint("x", (Stage("a", "agent", goal="Do."),))
    lost = Past("a", "agent", "lost", ended_ms=1000)

    assert next_step(Seen(blueprint, [lost])) == Step("offer", "a", at_ms=3000)
    assert next_step(Seen(blueprint, [lost, lost])) == Step("offer", "a", at_ms=5000)
    asked = next_step(Seen(blueprint, [lost] * 3))
    assert (asked.do, asked.cause, asked.resume) == ("decide", "infrastructure", "a")


def test_a_pause_is_over_when_its_time_has_come_and_after_the_clock_was_put_back():
    step = Step("offer", "a", at_ms=1_000_000)

    assert has_to_wait(step, 1_000_000 - MOST_PAUSE_MS)
    assert has_to_wait(step, 999_999)
    assert not has_to_wait(step, 1_000_000)
    assert not has_to_wait(step, 1_000_000 - MOST_PAUSE_MS - 1)
