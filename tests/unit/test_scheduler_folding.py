"""Folding the events of the scheduler finds what does not agree."""

from inbox_orch.orch.leader.event_folding import Fact, Folded, differences, fold


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


def edge(seq: int, kind: str, **data: str) -> Fact:
    return Fact(seq, kind, "R", "T", None, {"upstream": "U", "condition": "success", **data})


def test_an_edge_is_there_from_when_it_was_added_until_it_is_removed():
    added = edge(5, "dependency_added")
    removed = edge(6, "dependency_removed")
    stored = STORED._replace(dependencies={("T", "U", "success")})

    assert differences(fold([*HISTORY, added]), stored) == []
    assert differences(fold([*HISTORY, added, removed]), STORED) == []
    assert differences(fold([*HISTORY, added]), STORED) == [
        "dependency T -> U (success) is only in the events",
    ]


def test_removing_an_edge_that_is_not_there_is_found():
    other = edge(6, "dependency_removed", condition="failed")
    found = fold([*HISTORY, edge(5, "dependency_added"), other])

    assert found.contradictions == ["event 6: removes T -> U (failed), which was not there"]
    assert found.dependencies == {("T", "U", "success")}


def test_an_event_of_an_unknown_kind_is_found():
    unknown, known = edge(5, "task_painted"), edge(6, "task_reassigned")

    assert fold([*HISTORY, unknown, known]).contradictions == [
        "event 5: task_painted is no known kind"
    ]


def test_what_the_events_alone_know_of_is_found():
    assert differences(fold(HISTORY), STORED._replace(states={"run": {"R": "open"}})) == [
        "task T is not there, the events say active",
        "attempt A is not there, the events say allocating",
    ]


def test_an_event_that_does_not_say_where_it_leads_leads_where_its_kind_says():
    failed = Fact(4, "attempt_provision_failed", "R", "T", "A", {"from": "allocating"})
    found = fold([*HISTORY[:3], failed])

    assert (found.contradictions, found.states["attempt"]) == ([], {"A": "provision_failed"})


def test_what_an_event_says_goes_before_its_kind():
    moved = Fact(5, "task_blocked", "R", "T", None, {"from": "active", "to": "succeeded"})

    assert fold([*HISTORY, moved]).states["task"] == {"T": "succeeded"}


def test_a_removed_task_is_in_no_table():
    made = [
        fact(1, "run_open", None, "open"),
        fact(2, "task_pending", None, "pending", task_id="T"),
    ]
    removed = Fact(3, "task_removed", "R", "T", None, {"from": "pending", "to": None})
    nothing = Folded({"run": {"R": "open"}, "task": {}, "attempt": {}}, set(), [])

    assert differences(fold([*made, removed]), nothing) == []
    assert "event 5: removes task T, but it was active" in differences(
        fold([*HISTORY, removed._replace(seq=5)]), nothing
    )
