"""Visits in a person's words, and what somebody needs who decides."""

from typing import Any, NamedTuple

import pytest

from inbox_orch.orch.board.deeds import decided_by, next_decision
from inbox_orch.orch.runs.model import Task
from inbox_orch.orch.runs.readiness import Standing
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views.needs import way_out, what_it_needs
from inbox_orch.orch.views.stage_words import begun, ended, entry


@pytest.mark.parametrize("data, said", [
    ({"stage": "fix", "nth": 1, "kind": "agent", "mailbox": "w"}, "fix began"),
    ({"stage": "fix", "nth": 2, "kind": "agent", "mailbox": "w"}, "fix (2) began"),
    ({"stage": "seats", "nth": 1, "kind": "council"}, "seats began"),
    ({"stage": "lint", "nth": 1, "kind": "gates"}, None),
    ({"stage": "review", "nth": 1, "kind": "agent"}, None),
    ({"stage": "decision", "kind": "decision", "why": "stage fix goes in circles"},
     "asks for a decision: stage fix goes in circles"),
])  # fmt: skip
def test_what_begins_is_told_where_somebody_has_it(data: dict[str, Any], said: str | None):
    assert begun(data) == said


def of(stage: str, kind: str, state: str, **more: Any) -> dict[str, Any]:
    return {"stage": stage, "nth": 1, "kind": kind, "state": state, **more}


@pytest.mark.parametrize("data, said", [
    (of("fix", "agent", "succeeded", worker="w1"), "fix is done, by w1"),
    (of("fix", "agent", "failed", nth=2, why="it changed nothing"),
     "fix (2) failed: it changed nothing"),
    (of("lint", "gates", "succeeded"), "lint passed"),
    (of("lint", "gates", "failed", why="lint: 3 failures"), "lint failed: 3 failures"),
    (of("lint", "gates", "failed", why="lint: 3 failures; types: 1 failure"),
     "lint failed: lint: 3 failures; types: 1 failure"),
    (of("lint", "gates", "error", why="tests: no tests ran"),
     "lint could not be judged: tests: no tests ran"),
    (of("gather", "action", "succeeded"), "gather is done"),
    (of("review", "agent", "succeeded", verdict="approve", worker="r1"), "r1 approves in review"),
    (of("review", "agent", "failed", verdict="request_changes", worker="r1", why="too long"),
     "r1 asks for changes in review: too long"),
    (of("review", "agent", "failed", verdict="reject", worker="r1"), "r1 rejects it in review"),
    (of("review", "agent", "skipped", why="no mailbox"), "review was skipped: no mailbox"),
    (of("fix", "agent", "lost", why="nobody left"), "fix has lost its worker: nobody left"),
    (of("fix", "agent", "cancelled"), "fix was called off"),
    (of("surroundings", "gates", "succeeded", why="2 of 3 gates can judge here"),
     "the gates were tried on the base: 2 of 3 gates can judge here"),
    (of("surroundings", "gates", "succeeded"), None),
    (of("decision", "decision", "succeeded", verdict="continue", worker="ann"),
     "ann decided: continue"),
    (of("decision", "decision", "void", why="its thread failed"),
     "the decision is void: its thread failed"),
])  # fmt: skip
def test_what_a_visit_came_to_is_one_sentence(data: dict[str, Any], said: str | None):
    assert ended(data) == said


def test_a_visit_is_named_by_its_stage_and_from_the_second_on_by_its_number():
    assert [entry("fix", n) for n in (1, 2, None)] == ["fix", "fix (2)", "fix"]


class Decision(NamedTuple):
    sentence: str
    answers: tuple[str, ...]


def standing(state: str) -> Standing:
    return Standing(Task(**{**dict.fromkeys(Task._fields), "id": "t", "key": "a"}), state)


def test_what_waits_for_a_decision_says_why_and_how_it_is_given():
    decision = Decision("stage fix does not get better", ("continue", "abandon"))
    blocked = standing("blocked")

    assert what_it_needs(blocked) == "its worker asks"
    assert way_out(blocked, "r") == "`orch answer --run r a --body TEXT` answers"
    assert what_it_needs(blocked, decision) == "a decision: stage fix does not get better"
    failed = blocked._replace(state="failed")
    assert way_out(failed, "r") == "`orch retry --run r a` tries again"
    assert way_out(failed, "r", by_do=True) == "the same `orch do` call again tries again"
    assert way_out(blocked, "r", decision) == (
        "`orch answer --run r a --decide ANSWER --body HINT` decides: continue, abandon"
    )


@pytest.mark.parametrize("text, given", [
    ("continue", Answered("continue")),
    ("continue: look in b.txt\nfirst", Answered("continue", "look in b.txt\nfirst")),
    (" change_role  experts with care", Answered("change_role", "with care", "experts")),
    ("change_role", Answered("change_role")),
    ("change_role MAILBOX with care", Answered("change_role", "with care")),
])  # fmt: skip
def test_what_is_written_on_a_board_is_an_answer_and_a_hint(text: str, given: Answered):
    assert decided_by(text) == given


def test_the_offered_answers_go_round_and_the_hint_stays():
    answers, texts = ("continue", "change_role", "accept"), ["look first"]
    for _ in range(4):
        texts.append(next_decision(answers, texts[-1]))

    assert texts[1:] == [
        "continue look first",
        "change_role MAILBOX look first",
        "accept look first",
        "continue look first",
    ]
