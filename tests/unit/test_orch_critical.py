"""The critical path: what takes the longest, by time as far as it is known."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.runs.critical import critical_path
from inbox_orch.orch.runs.model import Dependency, Limits, Task
from inbox_orch.orch.runs.readiness import Standing


def standing(key: str, state: str = "waiting", number: int = 0) -> Standing:
    nothing = dict.fromkeys(Task._fields)
    task = Task(**{**nothing, "id": key, "key": key, "title": key, "number": number,
                   "limits": Limits()})  # fmt: skip
    return Standing(task, state)


def path(states: dict[str, str], edges: str, durations: dict[str, float]):
    standings = [standing(key, state) for key, state in states.items()]
    pairs = [edge.split(">") for edge in edges.split()]
    dependencies = [Dependency(b, a, "success") for a, b in pairs]
    return critical_path(standings, dependencies, durations)


def keys(found) -> str:
    return "".join(step.standing.task.key for step in found.steps)


def test_before_anybody_has_worked_the_most_tasks_count():
    found = path(dict.fromkeys("abcd", "waiting"), "a>b b>c a>d", {})

    assert (keys(found), found.measure, found.seconds) == ("abc", "count", None)
    assert [(step.seconds, step.estimated) for step in found.steps] == [(None, False)] * 3


def test_one_long_task_outweighs_two_short_ones():
    states = dict.fromkeys("abcd", "succeeded")
    found = path(states, "a>b b>c a>d", {"a": 1, "b": 2, "c": 3, "d": 60})

    assert (keys(found), found.measure, found.seconds) == ("ad", "durations", 61)


def test_what_has_not_begun_counts_as_the_middle_of_the_others():
    states = {"a": "succeeded", "b": "succeeded", "c": "ready", "d": "waiting"}
    found = path(states, "a>b a>c c>d", {"a": 10, "b": 15})

    assert (keys(found), found.measure, found.seconds) == ("acd", "estimated", 35)
    assert [step.estimated for step in found.steps] == [False, True, True]


def test_what_was_skipped_takes_no_time():
    states = {"a": "skipped", "b": "succeeded", "c": "succeeded"}
    found = path(states, "a>b", {"b": 5, "c": 6})

    assert (keys(found), found.seconds) == ("c", 6)


def test_of_two_ways_that_take_as_long_that_of_more_tasks_counts_then_the_older():
    states = {"a": "succeeded", "b": "skipped", "c": "succeeded"}
    more = path(states, "a>b a>c b>c", {"a": 5, "c": 6})
    older = path(dict.fromkeys("abc", "succeeded"), "a>c b>c", dict.fromkeys("abc", 5))

    assert (keys(more), [step.seconds for step in more.steps]) == ("abc", [5, 0, 6])
    assert keys(older) == "ac"


def test_a_run_without_tasks_has_an_empty_path():
    assert path({}, "", {}).steps == ()


@st.composite
def weighted(draw):
    size = draw(st.integers(1, 8))
    names = "abcdefgh"[:size]
    pairs = st.tuples(st.sampled_from(names), st.sampled_from(names))
    edges = {(a, b) for a, b in draw(st.sets(pairs, max_size=14)) if a < b}
    weights = {name: draw(st.integers(1, 50)) for name in names}
    return names, edges, weights


@settings(max_examples=150, deadline=None)
@given(weighted())
def test_no_chain_is_longer_than_the_one_found(drawn):
    names, edges, weights = drawn
    found = path(dict.fromkeys(names, "succeeded"), " ".join(f"{a}>{b}" for a, b in edges), weights)

    def longest(name: str) -> int:
        before = [longest(a) for a, b in edges if b == name]
        return weights[name] + max(before, default=0)

    assert found.seconds == max(map(longest, names))
    way = keys(found)
    assert all((a, b) in edges for a, b in itertools.pairwise(way))


def test_a_task_of_less_than_a_second_is_on_the_path_as_well():
    found = path(dict.fromkeys("ab", "succeeded"), "a>b", {"a": 0.5, "b": 0.25})

    assert (keys(found), found.seconds) == ("ab", 0.75)
