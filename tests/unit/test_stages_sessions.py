"""Whose session a visit goes on with: the last one that wrote, if all that counts is the same."""

import json
from typing import Any

import pytest

from inbox_orch.orch.attempts.visits import Visit
from inbox_orch.orch.stages.course import Course
from inbox_orch.orch.stages.model import Blueprint, Stage
from inbox_orch.orch.stages.sessions import to_resume
from support.stages import agent, gates, review

STAGES = {
    stage.id: stage
    for stage in (
        agent("write", role="builder"),
        agent("mend", role="builder"),
        agent("tidy", role="other"),
        agent("note", role="builder", toolset="docs"),
        agent("read", role="builder", writes=False),
        gates("look"),
        review("judge", role="builder"),
        Stage("ask", "council", role="builder"),
    )
}
KINDS = {"look": "gates", "ask": "council", "decision": "decision"}


def visit(stage: str, state: str = "succeeded", session: Any = "s-1", **facts: Any) -> Visit:
    """One that is over; the agent that is known has said its session."""
    blank = dict.fromkeys(Visit._fields)
    found = None if session is None else json.dumps({"session": {"id": session, "agent": "claude"}})
    known = {"stage": stage, "state": state, "kind": KINDS.get(stage, "agent"), "result": found}
    return Visit(**{**blank, "mailbox": "workers", "ended_at": 1, **known, **facts})


def resumed(stage: str, *visits: Visit, mailbox: str = "workers") -> str | None:
    """The session that a stage goes on with after these visits."""
    course = Course(None, None, None, Blueprint("b", tuple(STAGES.values())), visits)  # type: ignore[arg-type]
    found = to_resume(course, STAGES[stage], mailbox)
    assert found is None or found["agent"] == "claude"
    return None if found is None else str(found["id"])


WRITTEN = visit("write")
FAILED = visit("look", "failed", None)


@pytest.mark.parametrize(
    "visits",
    [
        (WRITTEN,),
        (WRITTEN, FAILED),
        (WRITTEN, visit("judge", "failed", "s-2", verdict="request_changes")),
        (WRITTEN, visit("read", session="s-2"), FAILED),
        (WRITTEN, visit("ask", "failed", "s-2")),
        (WRITTEN, FAILED, visit("decision", session=None)),
        (visit("mend", "failed", "s-0"), WRITTEN),
    ],
)
def test_work_goes_on_in_the_session_of_the_last_that_wrote(visits):
    assert resumed("mend", *visits) == resumed("write", *visits) == "s-1"


@pytest.mark.parametrize(
    "visits",
    [
        (),
        (FAILED,),
        (visit("write", session=None),),
        (WRITTEN, visit("mend", session=None)),
        (WRITTEN, visit("mend", "failed", "s-2")),
        (WRITTEN, visit("mend", "lost", "s-2")),
        (WRITTEN, visit("mend", "error", "s-2")),
        (WRITTEN, visit("tidy", session="s-2")),
        (WRITTEN, visit("note", session="s-2")),
        (visit("write", mailbox="elsewhere"),),
        (visit("judge", "succeeded", "s-2"),),
    ],
)
def test_what_was_taken_back_lost_or_done_by_another_is_begun_anew(visits):
    assert resumed("mend", *visits) is None


@pytest.mark.parametrize("stage", ["judge", "ask", "read", "tidy", "note"])
def test_who_reviews_or_reads_or_has_another_role_or_toolset_begins_anew(stage):
    assert resumed(stage, WRITTEN, FAILED) is None


def test_another_mailbox_begins_anew():
    assert resumed("mend", WRITTEN, mailbox="elsewhere") is None
