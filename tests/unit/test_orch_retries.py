"""What the end of an attempt means for its task: two budgets, back-off, no retry when fatal."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.runs import retries, states
from inbox_orch.orch.runs.model import Task

BAD_ENDS = (*states.COUNTED_AS_WORK, *states.COUNTED_AS_INFRASTRUCTURE)


def a_task(work: int = 0, infra: int = 0, most_work: int = 3, most_infra: int = 3) -> Task:
    return Task(
        **dict.fromkeys(Task._fields)
        | {
            "work_failures": work,
            "infra_failures": infra,
            "max_attempts": most_work,
            "max_infra_attempts": most_infra,
        }
    )


def after(task: Task, end: str, *, fatal: bool = False) -> retries.Consequence:
    return retries.consequence(task, end, fatal=fatal, jitter=0.5)


def test_every_end_without_success_counts_against_one_budget_or_is_a_cancellation():
    bad = set(states.ATTEMPT_ENDED) - {"succeeded", "cancelled"}

    assert set(BAD_ENDS) == bad
    assert not set(states.COUNTED_AS_WORK) & set(states.COUNTED_AS_INFRASTRUCTURE)


@pytest.mark.parametrize("end", BAD_ENDS)
def test_a_budget_is_used_up_by_its_own_failures_only(end: str):
    counted = end in states.COUNTED_AS_WORK
    for work, infra in product(range(3), range(3)):
        result = after(a_task(work, infra), end)

        assert result.work_failures == work + counted
        assert result.infra_failures == infra + (not counted)
        used_up = result.work_failures == 3 or result.infra_failures == 3
        assert result.state == ("failed" if used_up else "pending")
        assert (result.delay_seconds is None) == used_up


@pytest.mark.parametrize("end", BAD_ENDS)
def test_a_fatal_failure_is_not_tried_again(end: str):
    assert after(a_task(), end, fatal=True).state == "failed"


def test_a_cancelled_attempt_cancels_its_task_and_counts_nothing():
    assert after(a_task(1, 1), "cancelled") == ("cancelled", 1, 1, None)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_the_pause_grows_and_stays_in_its_bounds(failures: int, jitter: float):
    seconds = retries.backoff_seconds(failures, jitter)
    whole = min(120.0, 2.0 * 2 ** min(failures - 1, 16))

    assert whole / 2 <= seconds <= whole
    assert retries.backoff_seconds(failures + 1, jitter) >= seconds


def test_an_attempt_that_goes_back_counts_nothing_and_waits_for_nothing():
    result = retries.consequence(a_task(1, 2), "cancelled", fatal=True, jitter=0.5, goes_back=True)

    assert result == ("pending", 1, 2, None)


def test_only_a_cancelled_attempt_goes_back():
    result = retries.consequence(a_task(), "failed", fatal=True, jitter=0.5, goes_back=True)

    assert result == ("failed", 1, 0, None)


def test_the_pause_counts_the_failures_of_both_kinds():
    result = retries.consequence(a_task(1, 1, 9, 9), "failed", fatal=False, jitter=1)

    assert result.delay_seconds == retries.backoff_seconds(3, 1) == 8


@pytest.mark.parametrize("failures, seconds", [(1, 2), (2, 4), (6, 64), (7, 120), (5000, 120)])
def test_the_pause_doubles_from_2_seconds_to_120(failures: int, seconds: float):
    assert retries.backoff_seconds(failures, 1) == seconds
    assert retries.backoff_seconds(failures, 0) == seconds / 2


def test_an_end_that_is_not_in_the_table_is_a_bug():
    with pytest.raises(AssertionError):
        after(a_task(), "succeeded")
