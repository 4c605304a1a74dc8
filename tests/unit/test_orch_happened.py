"""The events of a run in a person's words."""

from typing import Any

import pytest

from inbox_orch.orch.views.happened import is_told_by_next, sentence
from inbox_orch.shared.errors import PARTS, vocabulary

KINDS = {kind for part in PARTS if part.startswith("orch.") for kind in vocabulary(part).EVENTS}
ATTEMPT = {"number": 2, "reason": "boom:\n  no such file", "head": None}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_event_has_words_of_its_own_or_none(kind: str):
    said = sentence(kind, {"from": "open", "number": 1, "round": 1, "name": "r", "mailbox": "m"})

    assert said is None or (said != kind.replace("_", " ", 1) and "\n" not in said)


def test_a_kind_that_is_not_known_is_said_as_it_is():
    assert sentence("task_dreamt_of", {}) == "task dreamt_of"


@pytest.mark.parametrize(
    "kind, data, said",
    [
        ("attempt_offered", {"from": "provisioned", **ATTEMPT}, "attempt 2 was handed out"),
        ("attempt_offered", {"from": "running", **ATTEMPT}, "attempt 2 was handed back"),
        ("attempt_running", {"from": "blocked", **ATTEMPT}, None),
        ("attempt_failed", {"from": "running", **ATTEMPT}, "attempt 2 failed: boom: no such file"),
        ("attempt_failed", {"number": 2, "reason": None}, "attempt 2 failed"),
        ("attempt_failed", {"number": 2, "reason": "{number}"}, "attempt 2 failed: {number}"),
        ("task_pending", {"from": None, "key": "a"}, "was added"),
        (
            "task_pending",
            {"from": "active", "reason": "attempt 1 lost: gone"},
            "is to be tried again: attempt 1 lost: gone",
        ),
        ("task_skipped", {"from": "pending", "reason": "skipped by the leader"}, "was skipped"),
        (
            "task_skipped",
            {"from": "blocked", "reason": "split into p1, p2 by boss"},
            "was skipped: split into p1, p2 by boss",
        ),
        ("task_edited", {"changed": ["body", "checks"]}, "was changed: body, checks"),
        ("run_open", {"from": None}, "the run was opened"),
        ("run_open", {"from": "paused"}, "the run goes on"),
        (
            "base_conflict_found",
            {"paths": ["a.txt", "b.txt"]},
            "what it depends on does not merge: a.txt, b.txt",
        ),
    ],
)
def test_an_event_is_one_sentence(kind: str, data: dict[str, Any], said: str | None):
    assert sentence(kind, data) == said


def test_a_long_reason_is_cut():
    said = str(sentence("attempt_failed", {"number": 1, "reason": "no " * 4000}))

    assert len(said) < 330
    assert said.endswith("…")


@pytest.mark.parametrize(
    "first, then, told",
    [
        (("attempt_failed", "A"), ("task_failed", "A"), True),
        (("attempt_failed", "A"), ("task_pending", "A"), True),
        (("attempt_failed", "A"), ("task_failed", "B"), False),
        (("attempt_failed", "A"), ("attempt_submitted", "A"), False),
        (("task_failed", "A"), ("task_failed", "A"), False),
        (("attempt_failed", None), ("task_cancelled", None), False),
    ],
)
def test_the_end_of_an_attempt_is_told_with_what_becomes_of_its_task(
    first: tuple[str, str | None], then: tuple[str, str | None], told: bool
):
    assert is_told_by_next(*first, *then) is told
