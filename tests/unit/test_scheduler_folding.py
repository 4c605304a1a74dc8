"""Folding the events of the scheduler finds what does not agree."""

from inbox_orch.orch.domain.folding import Fact, Folded, differences, fold


def fact(seq: int, kind: str, source: str | None, target: str, **ids: str) -> Fact:
    found = {"task_id": None, "attempt_id": None, **ids}
    return Fact(
        seq, kind, "R", found["task_id"], found["attempt_id"], {"from": source, "to": target}
    )


HISTORY = [
    fact(1, "run_open", None, "open"),
    fact(2, "task_pending", None, "pending", task_id="T"),
    fact(3, "attempt_allocating", None, "allocating", task_id="T", attempt_id="A"),
    fact(4, "task_active", "pending", "active", task_id="T", attempt_id="A"),
]
STORED = Folded(
    {"run": {"R": "open"}, "task": {"T": "active"}, "attempt": {"A": "allocating"}}, set(), []
)


def test_a_whole_history_gives_the_stored_states():
    assert differences(fold(HISTORY), STORED) == []


def test_a_missing_event_is_found():
    assert differences(fold(HISTORY[:3]), STORED) == [
        "task T is active, the events say pending",
    ]


def test_an_event_that_does_not_follow_is_found():
    broken = [*HISTORY, fact(5, "task_succeeded", "blocked", "succeeded", task_id="T")]
    found = differences(fold(broken), STORED)
    assert "event 5: task T leaves blocked, but it was active" in found


def test_a_transition_outside_of_the_table_is_found():
    broken = [*HISTORY, fact(5, "task_skipped", "active", "skipped", task_id="T")]
    assert "event 5: task T goes from active to skipped" in differences(fold(broken), STORED)


def test_an_edge_that_is_only_in_one_place_is_found():
    stored = STORED._replace(dependencies={("T", "U", "success")})
    assert differences(fold(HISTORY), stored) == [
        "dependency T -> U (success) is only in the table",
    ]
