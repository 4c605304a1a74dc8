"""Who is ready, who waits, who can never start, and how the run stands; every combination."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from typing import get_args

import pytest

from inbox_orch.orch.runs import readiness
from inbox_orch.orch.runs.model import Dependency, Run, Task
from inbox_orch.orch.runs.readiness import CONDITIONS
from inbox_orch.orch.runs.states import TASK_FINAL, TASK_STATES
from inbox_orch.orch.schemas.things import StandingState

NOW = 1_000_000

# The table of the design, written down once more: met, never, or open.
TABLE = {
    "success": {"succeeded": "met", "skipped": "met", "failed": "never", "cancelled": "never"},
    "finished": {"succeeded": "met", "skipped": "met", "failed": "met", "cancelled": "met"},
    "failed": {"succeeded": "never", "skipped": "never", "failed": "met", "cancelled": "never"},
}
UPSTREAM = (*TASK_STATES, "unreachable")


def a_run(**changes: object) -> Run:
    values = dict.fromkeys(Run._fields) | {
        "id": "R",
        "name": "run",
        "state": "open",
        "on_failure": "continue",
    }
    return Run(**{**values, **changes})


def a_task(key: str, state: str = "pending", **changes: object) -> Task:
    values = dict.fromkeys(Task._fields) | {
        "id": key,
        "key": key,
        "state": state,
        "number": 1,
        "priority": 0,
    }
    return Task(**{**values, **changes})


def standings(
    tasks: Sequence[Task],
    edges: Sequence[tuple[str, str, str]] = (),
    run: Run | None = None,
    conflicts: dict[str, list[str]] | None = None,
) -> readiness.Picture:
    dependencies = [Dependency(*edge) for edge in edges]
    return readiness.picture(run or a_run(), tasks, dependencies, conflicts or {}, NOW)


def upstreams(states: Sequence[str]) -> tuple[list[Task], list[tuple[str, str, str]]]:
    """Tasks in these states; an unreachable one waits in vain for a failed one."""
    tasks, edges = [], []
    for number, state in enumerate(states):
        key = f"up{number}"
        if state == "unreachable":
            tasks += [a_task(f"cause{number}", "failed"), a_task(key)]
            edges.append((key, f"cause{number}", "success"))
        else:
            tasks.append(a_task(key, state))
    return tasks, edges


def expected_state(verdicts: Sequence[str]) -> str:
    if "never" in verdicts:
        return "unreachable"
    return "waiting" if "open" in verdicts else "ready"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_condition_meets_every_multiset_of_upstream_states(size: int):
    seen = set()
    for conditions in product(CONDITIONS, repeat=size):
        for states in combinations_with_replacement(UPSTREAM, size):
            tasks, edges = upstreams(states)
            mine = [("me", f"up{i}", condition) for i, condition in enumerate(conditions)]
            me = standings([*tasks, a_task("me")], [*edges, *mine]).of("me")
            verdicts = [
                "never" if state == "unreachable" else TABLE[condition].get(state, "open")
                for condition, state in zip(conditions, states, strict=True)
            ]
            assert me.state == expected_state(verdicts), (conditions, states)
            seen.add(me.state)
    assert seen == {"ready", "waiting", "unreachable"}


@pytest.mark.parametrize("state", [s for s in TASK_STATES if s != "pending"])
def test_a_task_that_has_started_stands_as_it_is_stored(state: str):
    picture = standings([a_task("up", "failed"), a_task("me", state)], [("me", "up", "success")])

    assert picture.of("me").state == state


def test_the_schema_knows_every_way_to_stand():
    assert get_args(StandingState) == readiness.STANDINGS


def test_what_is_unreachable_names_the_task_that_began_it():
    tasks = [a_task("root", "failed"), a_task("middle"), a_task("end")]
    edges = [("middle", "root", "success"), ("end", "middle", "finished")]

    picture = standings(tasks, edges)

    assert picture.of("middle").because == ("root",)
    assert picture.of("end").because == ("root",)


def test_a_picture_has_the_run_and_what_waits_for_what():
    tasks, edge = [a_task("up", "active"), a_task("me")], ("me", "up", "success")
    run = a_run()
    picture = standings(tasks, [edge], run)

    assert (picture.run, picture.dependencies) == (run, [Dependency(*edge)])
    assert [standing.task for standing in picture.standings] == tasks


def test_what_waits_names_only_what_is_open():
    tasks = [a_task("done", "succeeded"), a_task("running", "active"), a_task("me")]
    edges = [("me", "done", "success"), ("me", "running", "success")]

    assert standings(tasks, edges).of("me").because == ("running",)


def test_a_retry_of_the_cause_brings_everything_back_to_life():
    edges = [("middle", "root", "success"), ("end", "middle", "success")]
    tasks = [a_task("root", "pending"), a_task("middle"), a_task("end")]

    assert [s.state for s in standings(tasks, edges).standings] == ["ready", "waiting", "waiting"]


@pytest.mark.parametrize("policy", ["fail-fast", "abort"])
def test_after_a_failure_nothing_pending_starts_under_a_strict_policy(policy: str):
    tasks = [a_task("bad", "failed"), a_task("free"), a_task("running", "active")]

    picture = standings(tasks, run=a_run(on_failure=policy))

    assert picture.of("free").state == "unreachable"
    assert picture.of("free").because == ("bad",)
    assert picture.of("running").state == "active"


def test_backing_off_ends_at_its_moment():
    later = standings([a_task("me", not_before=NOW + 1)]).of("me")

    assert (later.state, later.until) == ("backing_off", NOW + 1)
    assert standings([a_task("me", not_before=NOW)]).of("me").state == "ready"


def test_a_back_off_from_before_the_clock_was_put_back_is_over():
    longest, days = NOW + 120_000, NOW + 3 * 86_400_000

    assert standings([a_task("me", not_before=longest)]).of("me").state == "backing_off"
    assert standings([a_task("me", not_before=days)]).of("me").state == "ready"


def test_a_base_that_conflicts_shows_its_paths_and_no_task():
    me = standings([a_task("me")], conflicts={"me": ["a.txt"]}).of("me")

    assert (me.state, me.because, me.conflict_paths) == ("base_conflict", (), ("a.txt",))


# -- outcome ---------------------------------------------------------------------------------


def expected_outcome(states: Sequence[str]) -> str:
    if any(s in ("pending", "active", "blocked") for s in states):
        return "running"
    if all(s in ("succeeded", "skipped") for s in states):
        return "succeeded"
    return "partial" if "succeeded" in states else "failed"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_outcome_of_every_multiset_of_states(size: int):
    for states in combinations_with_replacement(TASK_STATES, size):
        picture = standings([a_task(f"t{i}", state) for i, state in enumerate(states)])

        assert picture.outcome == expected_outcome(states), states


def test_a_run_without_tasks_is_running():
    assert standings([]).outcome == "running"


def test_a_run_in_which_only_a_conflict_is_left_is_stuck():
    tasks = [a_task("done", "succeeded"), a_task("me")]

    assert standings(tasks, conflicts={"me": ["a"]}).outcome == "stuck"


def test_a_paused_run_is_never_stuck():
    tasks = [a_task("me")]
    picture = standings(tasks, run=a_run(state="paused"), conflicts={"me": ["a"]})

    assert picture.outcome == "running"


def test_unreachable_tasks_are_settled():
    tasks = [a_task("bad", "failed"), a_task("good", "succeeded"), a_task("me")]

    assert standings(tasks, [("me", "bad", "success")]).outcome == "partial"


@pytest.mark.parametrize("state", TASK_FINAL)
def test_a_cancelled_run_is_cancelled_once_nothing_lives(state: str):
    run = a_run(state="cancelling")

    assert standings([a_task("a", state)], run=run).outcome == "cancelled"
    assert standings([a_task("a", state), a_task("b", "active")], run=run).outcome == "running"


# -- order -----------------------------------------------------------------------------------


def test_urgency_is_priority_then_longest_way_then_age():
    tasks = [
        a_task("old", number=1),
        a_task("long", number=2),
        a_task("after", number=3),
        a_task("urgent", number=4, priority=5),
        a_task("young", number=5),
    ]
    edges = [Dependency("after", "long", "success")]
    picture = readiness.picture(a_run(), tasks, edges, {}, NOW)

    order = readiness.dispatch_order(picture.standings, edges)

    assert [task.key for task in order] == ["urgent", "long", "old", "young"]


def test_a_standing_is_that_of_its_own_task():
    tasks = [
        a_task("bad", "failed"),
        a_task("never"),
        a_task("later", not_before=NOW + 1),
        a_task("apart"),
        a_task("ready"),
    ]
    edges = [("never", "bad", "success")]

    for run in (a_run(), a_run(on_failure="abort")):
        picture = standings(tasks, edges, run=run, conflicts={"apart": ["a"]})
        assert [standing.task for standing in picture.standings] == tasks


def test_a_back_off_waits_for_no_task():
    assert standings([a_task("me", not_before=NOW + 1)]).of("me").because == ()


def test_a_back_off_of_the_longest_pause_is_not_over_and_one_a_millisecond_longer_is():
    assert standings([a_task("me", not_before=NOW + 120_001)]).of("me").state == "ready"


def test_what_two_ways_make_unreachable_names_all_that_began_it_once():
    tasks = [
        a_task("one", "failed"),
        a_task("two", "cancelled"),
        a_task("left"),
        a_task("right"),
        a_task("end"),
    ]
    edges = [
        ("left", "one", "success"),
        ("right", "two", "success"),
        ("right", "one", "success"),
        ("end", "left", "success"),
        ("end", "right", "success"),
        ("end", "two", "success"),
    ]
    picture = standings(tasks, edges)

    assert picture.of("left").because == ("one",)
    assert picture.of("right").because == ("two", "one")
    assert picture.of("end").because == ("one", "two")


@pytest.mark.parametrize("state", ["closed", "paused"])
def test_a_run_that_was_cancelled_stays_so(state: str):
    run = a_run(state=state, cancelled_at=NOW)

    assert standings([a_task("a")], run=run).outcome == "cancelled"
    assert standings([a_task("a", "blocked")], run=run).outcome == "running"


@pytest.mark.parametrize(
    "states, outcome",
    [
        (["succeeded", "skipped"], "succeeded"),
        (["succeeded", "pending"], "partial"),
        (["pending", "skipped"], "failed"),
        ([], "succeeded"),
    ],
)
def test_in_a_closed_run_what_is_undone_stays_undone(states: list[str], outcome: str):
    tasks = [a_task(f"t{number}", state) for number, state in enumerate(states)]

    assert standings(tasks, run=a_run(state="closed")).outcome == outcome


def test_a_run_whose_last_task_waits_for_a_conflict_is_stuck_and_one_that_backs_off_is_not():
    waiting = [a_task("base"), a_task("me")]
    edges = [("me", "base", "success")]

    assert standings(waiting, edges, conflicts={"base": ["a"]}).outcome == "stuck"
    assert standings([a_task("me", not_before=NOW + 1)]).outcome == "running"
