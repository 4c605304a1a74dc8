"""Which clock runs in which state of a thread, and when it has run out."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from inbox_orch.orch.attempts import clocks
from inbox_orch.orch.attempts.clocks import Working
from inbox_orch.orch.runs.model import Limits

NOW = 10_000_000
ALL = Limits(queue_seconds=10, run_seconds=100, silent_seconds=20, block_seconds=30)


def at(thread_state: str, **changes: object) -> Working:
    facts = {
        "thread_state": thread_state,
        "claimable_at": NOW,
        "first_claimed_at": NOW,
        "blocked_ms": 0,
        "asked_at": NOW if thread_state == "blocked" else None,
        "heard_at": NOW,
    }
    return Working(**{**facts, **changes})  # type: ignore[arg-type]


def named(limits: Limits, working: Working) -> set[str]:
    return {due.clock for due in clocks.running(limits, working)}


def subsets() -> Iterator[Limits]:
    given = {k: v for k, v in ALL.as_json().items() if v is not None}
    for size in range(len(given) + 1):
        for names in combinations(given, size):
            yield Limits(**{name: given[name] for name in names})


@pytest.mark.parametrize(
    "thread_state, running",
    [("pending", {"queue", "run"}), ("claimed", {"run", "silent"}), ("blocked", {"block"})],
)
def test_in_each_state_the_clocks_run_that_belong_to_it_and_have_a_limit(thread_state, running):
    for limits in subsets():
        limited = {
            name.removesuffix("_seconds")
            for name, limit in limits.as_json().items()
            if limit is not None
        }
        assert named(limits, at(thread_state)) == running & limited


def test_a_thread_that_nobody_has_ever_claimed_has_only_a_queue_clock():
    assert named(ALL, at("pending", first_claimed_at=None, heard_at=None)) == {"queue"}


@pytest.mark.parametrize(
    "thread_state, clock, seconds",
    [("pending", "queue", 10), ("claimed", "silent", 20), ("blocked", "block", 30)],
)
def test_a_clock_runs_out_at_its_moment_and_not_before(thread_state, clock, seconds):
    over = NOW + seconds * 1000

    assert clocks.run_out(ALL, at(thread_state), over - 1) is None
    due = clocks.run_out(ALL, at(thread_state), over)
    assert due is not None
    assert (due.at_ms, due.clock, due.limit_seconds) == (over, clock, seconds)
    assert f"{seconds} s" in due.sentence()


def test_the_run_clock_counts_no_time_in_which_a_question_was_open():
    working = at("claimed", blocked_ms=50_000, heard_at=NOW + 140_000)

    assert clocks.run_out(ALL, working, NOW + 149_999) is None
    due = clocks.run_out(ALL, working, NOW + 150_000)
    assert due is not None and due.clock == "run"


def test_of_two_clocks_the_one_that_ran_out_first_is_named():
    both = Limits(run_seconds=5, silent_seconds=4)
    due = clocks.run_out(both, at("claimed"), NOW + 60_000)

    assert due is not None and due.clock == "silent"
    later = clocks.run_out(both, at("claimed", heard_at=NOW + 3_000), NOW + 60_000)
    assert later is not None and later.clock == "run"


def test_a_limit_of_checks_is_no_clock_of_the_attempt():
    assert not clocks.has_any(Limits(check_seconds=5))
    assert all(clocks.has_any(limits) for limits in subsets() if limits != Limits())
    assert not clocks.has_any(Limits())


def test_a_wall_clock_that_was_set_back_ends_nothing_early():
    assert clocks.run_out(ALL, at("claimed"), NOW - 3_600_000) is None


def test_only_a_blocked_thread_has_a_clock_of_its_question():
    assert named(ALL, at("claimed", asked_at=NOW)) == {"run", "silent"}


@pytest.mark.parametrize(
    "clock, sentence",
    [
        ("queue", "queue clock: no worker has claimed it for 2.5 s"),
        ("run", "run clock: it has been worked on for 2.5 s"),
        ("silent", "silent clock: its worker has not been heard of for 2.5 s"),
        ("block", "block clock: its question has been open for 2.5 s"),
    ],
)
def test_each_clock_says_why_the_attempt_is_ended(clock, sentence):
    assert clocks.Due(NOW, clock, 2.5).sentence() == sentence
