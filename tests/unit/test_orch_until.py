"""What a run says to somebody who waits for it, over every set of standings that there is."""

from collections.abc import Iterator
from itertools import chain, combinations

import pytest

from inbox_orch.orch.leader.until import WELL, Goal, Seen, Verdict, verdict_on
from inbox_orch.orch.runs import readiness
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run, Task
from inbox_orch.orch.runs.readiness import Picture, Standing
from inbox_orch.orch.runs.states import RUN_STATES, TASK_FINAL

PENDING = ("ready", "waiting", "backing_off", "base_conflict", "unreachable")
STANDINGS = ("active", "blocked", *TASK_FINAL, *PENDING)
GOALS = ("change", "blocked", "run")


def seen(*states: str, run_state: str = "open", changed: bool = False) -> Seen:
    """A run with one task in each of these states, whose keys are their states."""
    values = dict.fromkeys(Run._fields) | {
        "name": "r",
        "state": run_state,
        "config": Config().canonical(),
        "cancelled_at": 1 if run_state == "cancelling" else None,
    }
    run = Run(**values)
    nothing = dict.fromkeys(Task._fields)
    standings = tuple(
        Standing(Task(**{**nothing, "id": state, "key": state, "mailbox": "m"}), state)
        for state in states
    )
    outcome = readiness._outcome(run, standings)
    picture = Picture(run, standings, {s.task.id: s for s in standings}, outcome)
    moving = readiness.may_move(picture, [s for s in states if s in ("active", "blocked")])
    return Seen(picture, tuple(s for s in states if s == "blocked"), moving, changed)


def verdict(until: str, *states: str, **options: bool) -> Verdict | None:
    task = until.removeprefix("task:") if until.startswith("task:") else None
    return verdict_on(Goal(until, task), seen(*states, **options))


def code(until: str, *states: str, **options: bool) -> str | None:
    """`well`, the error's code, or None while there is something to wait for."""
    found = verdict(until, *states, **options)
    return found if found is None else found.code or "well"


def every_seen() -> Iterator[Seen]:
    """Each set of standings in each state of a run; what waits is there only with something to
    wait for, and a closed run has no live attempts."""
    sets = chain.from_iterable(combinations(STANDINGS, n) for n in range(len(STANDINGS) + 1))
    for states in sets:
        held_up = {"active", "blocked", "ready", "backing_off", "base_conflict"} & set(states)
        if "waiting" in states and not held_up:
            continue
        for run_state in RUN_STATES:
            if run_state != "closed" or not {"active", "blocked"} & set(states):
                yield seen(*states, run_state=run_state)


def every_goal(of: Seen) -> Iterator[Goal]:
    yield from (Goal(until) for until in GOALS)
    yield from (Goal(f"task:{s.task.key}", s.task.id) for s in of.picture.standings)


@pytest.mark.parametrize("until, states, expected", [
    ("run", (), None),
    ("run", ("active",), None),
    ("run", ("ready",), None),
    ("run", ("backing_off",), None),
    ("run", ("succeeded", "skipped"), "well"),
    ("run", ("succeeded", "failed"), "run_unsuccessful"),
    ("run", ("cancelled", "unreachable"), "run_unsuccessful"),
    ("run", ("blocked",), "needs_decision"),
    ("run", ("blocked", "active"), None),
    ("run", ("blocked", "ready"), None),
    ("run", ("blocked", "waiting"), "needs_decision"),
    ("run", ("base_conflict",), "needs_decision"),
    ("run", ("base_conflict", "waiting", "failed"), "needs_decision"),
    ("run", ("base_conflict", "active"), None),
    ("run", ("base_conflict", "backing_off"), None),
    ("blocked", ("blocked", "active"), "well"),
    ("blocked", ("base_conflict",), "needs_decision"),
    ("blocked", ("succeeded",), "well"),
    ("blocked", ("failed",), "run_unsuccessful"),
    ("change", ("blocked",), "needs_decision"),
    ("change", ("blocked", "active"), None),
    ("change", ("base_conflict",), "needs_decision"),
    ("task:succeeded", ("succeeded", "active"), "well"),
    ("task:skipped", ("skipped", "failed"), "well"),
    ("task:failed", ("failed", "active"), "run_unsuccessful"),
    ("task:unreachable", ("unreachable", "failed", "active"), "run_unsuccessful"),
    ("task:waiting", ("waiting", "blocked"), "needs_decision"),
    ("task:waiting", ("waiting", "base_conflict"), "needs_decision"),
    ("task:base_conflict", ("base_conflict", "active"), None),
])  # fmt: skip
def test_an_open_run(until: str, states: tuple[str, ...], expected: str | None):
    assert code(until, *states) == expected


def test_a_paused_run_is_waited_for_unless_only_an_answer_helps():
    for state in ("ready", "backing_off", "base_conflict", "active"):
        assert code("run", state, run_state="paused") is None
    assert code("run", "blocked", "ready", run_state="paused") == "needs_decision"


def test_a_run_that_is_being_cancelled_ends_by_itself():
    assert code("run", "blocked", run_state="cancelling") is None
    assert code("run", "cancelled", run_state="cancelling") == "run_unsuccessful"


def test_a_closed_run_has_ended_with_whatever_was_left_undone():
    assert code("run", "ready", "base_conflict", run_state="closed") == "run_unsuccessful"
    assert code("task:ready", "ready", "succeeded", run_state="closed") == "run_unsuccessful"
    assert code("run", "succeeded", run_state="closed") == "well"


def test_a_change_that_has_not_been_told_comes_first():
    for of in every_seen():
        assert verdict_on(Goal("change"), of._replace(changed=True)) == WELL
        assert verdict_on(Goal("run"), of._replace(changed=True)) == verdict_on(Goal("run"), of)


def test_nothing_ends_badly_while_a_worker_is_at_work_but_what_is_lost_already():
    for of in every_seen():
        if not any(s.state == "active" for s in of.picture.standings):
            continue
        for goal in every_goal(of):
            found = verdict_on(goal, of)
            lost = goal.task_id is not None and of.picture.of(goal.task_id).settled
            assert found in (None, WELL) or lost, (goal, of)


def test_no_wait_hangs_on_a_run_that_cannot_move_without_a_decision():
    for of in every_seen():
        paused = of.picture.run.state == "paused"
        if of.moving or not of.picture.standings or (paused and not of.asking):
            continue
        for goal in every_goal(of):
            assert verdict_on(goal, of) is not None, (goal, of)


def test_a_decision_names_the_tasks_and_the_way_out_of_each_kind():
    for of in every_seen():
        for goal in every_goal(of):
            found = verdict_on(goal, of)
            if found is None or found.code != "needs_decision":
                continue
            kinds = [k for k in ("blocked", "base_conflict") if k in of.picture.by_id]
            assert kinds and found.details == {"tasks": kinds}
            assert ("orch answer TASK" in str(found.hint)) == ("blocked" in kinds)
            assert ("orch dispatch TASK --base COMMIT" in str(found.hint)) == (
                "base_conflict" in kinds
            )


def test_a_failure_is_told_of_a_run_that_has_ended_or_of_a_task_that_has():
    for of in every_seen():
        for goal in every_goal(of):
            found = verdict_on(goal, of)
            if found is None or found.code != "run_unsuccessful":
                continue
            assert of.picture.outcome in ("partial", "failed", "cancelled") or (
                goal.task_id is not None and of.picture.of(goal.task_id).settled
            )
            never = [s.task.key for s in of.picture.standings if s.state == "unreachable"]
            assert found.details == {"outcome": of.picture.outcome, "unreachable": never}


def test_the_error_stands_beside_the_data_that_it_is_given():
    found = verdict("run", "failed")
    assert found is not None
    failure = found.failure({"a": 1})
    assert failure is not None
    assert (failure.code, failure.exit_code, failure.data) == ("run_unsuccessful", 11, {"a": 1})
    assert WELL.failure({"a": 1}) is None


def test_questions_and_decisions_are_named_apart_with_both_ways_out():
    both = seen("blocked", "failed")._replace(asking=("a", "b"), deciding=("b",), moving=False)
    verdict = verdict_on(Goal("run"), both)

    assert verdict is not None
    assert "questions are open: a; decisions are open: b" in verdict.message
    assert "--body TEXT` answers; `orch blocked` shows the decisions" in str(verdict.hint)
    assert verdict.details == {"tasks": ["a", "b"], "deciding": ["b"]}
