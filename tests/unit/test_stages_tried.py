"""What a repair is told of the tries before somebody decided to go on."""

import json

from inbox_orch.orch.attempts.visits import Visit
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.orch.stages.tried import MOST_LINES, tried


def visit(stage: str, kind: str, state: str = "succeeded", **values) -> Visit:
    blank = dict.fromkeys(Visit._fields)
    base = {"stage": stage, "nth": 1, "kind": kind, "state": state, "ended_at": 1}
    return Visit(**{**blank, **base, **values})


def looked(*failures: str, mode: str = "block") -> Visit:
    result = GateResult("look", "failed", failures=dict.fromkeys(failures, 1), mode=mode)
    found = json.dumps({"gates": [result.as_json()]})
    return visit("look", "gates", "failed" if failures else "succeeded", result=found)


MEND = visit("mend", "agent", worker="w1")
GO_ON = visit("decision", "decision", verdict="continue")


def told(*visits: Visit) -> str:
    return tried(visits, lambda _: None) or ""


def test_nothing_is_told_where_nobody_has_decided_or_other_things_fail_now():
    assert told(MEND, looked("a"), MEND, looked("a")) == ""
    assert told(MEND, looked("a"), GO_ON, MEND, looked("b")) == ""
    assert told(MEND, looked("a"), visit("decision", "decision", "void"), MEND, looked("a")) == ""
    assert told(MEND, looked("a"), visit("decision", "decision", verdict="accept")) == ""
    assert told() == told(GO_ON) == ""


def test_a_visit_is_told_by_what_it_left_and_one_that_did_not_count_by_its_reason():
    failed = visit("mend", "agent", "failed", nth=2, worker="w2", reason="no\x1bidea")
    lines = told(MEND, looked("a", "b"), failed, GO_ON).splitlines()
    assert lines[1:] == [
        "- mend, by w1: 2 failures after it, among them a, b",
        "- mend (2), by w2: did not count: no\\x1bidea",
    ]


def test_reviews_are_no_tries_and_of_many_visits_the_newest_are_told():
    review = visit("judge", "agent", "failed", verdict="request_changes", reason="so")
    many = [each for _ in range(MOST_LINES + 2) for each in (MEND, looked("a"))]
    lines = told(review, *many, GO_ON).splitlines()
    assert lines[1] == "- … 2 visits before these" and len(lines) == MOST_LINES + 2
    assert "judge" not in str(lines)
