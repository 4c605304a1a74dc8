"""One table says what becomes of each failure inside an attempt with a blueprint."""

from inbox_orch.orch.stages.failures import COUNTS, ENDS, FAILURES, THEN


def named(**keys: str | None) -> set[str]:
    return {
        name
        for name, failure in FAILURES.items()
        if all(getattr(failure, key) == value for key, value in keys.items())
    }


def test_each_row_is_of_the_vocabulary_and_each_word_is_used():
    rows = FAILURES.values()

    assert {row.ends for row in rows} == {None, *ENDS}
    assert {row.counts for row in rows} == {None, *COUNTS}
    assert {row.then for row in rows} == set(THEN)
    assert len({row.what for row in rows}) == len(rows)


def test_only_these_end_the_attempt():
    assert named(ends="attempt") == {"abandoned", "fatal", "clock", "worktree_gone"}
    assert named(ends="attempt") == named(then="retries")


def test_what_is_decided_by_somebody_ends_nothing_and_counts_for_nothing():
    assert named(then="decision") == named(ends=None) == named(ends=None, counts=None)


def test_a_gate_that_cannot_be_judged_is_nobodys_to_mend():
    assert "gate_unjudged" not in named(then="on_failure")
    assert FAILURES["gate_unjudged"].counts is None


def test_nothing_that_befalls_a_review_sends_a_writer_but_its_own_word():
    of_reviews = {name for name, row in FAILURES.items() if "review" in row.what.split(" other")[0]}

    assert of_reviews & named(then="on_failure") == {"changes_requested"}


def test_trouble_with_workers_and_providers_uses_up_no_visit():
    assert named(then="same_stage") == named(ends="visit", counts="infrastructure")
    assert named(then="same_visit") == named(ends="delivery")
    assert named(counts="visits") == named(ends="visit", then="on_failure") - {"gate_failed"}
