"""Which session of an agent a visit goes on with: what is stored of it, and told to its worker."""

import json

import pytest

from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import stages
from support.runs import Site
from support.stages import Course, add, agent, gates, review


@pytest.fixture
def run(site: Site):
    return site.open_run(config=Config(roles={"reviewer": Role("reviewers")}))


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def begun(site: Site, run, *stages, **options):
    add(site, run, "a", *stages, **options)
    site.dispatch(run)


def said(session: str, **facts):
    """What a worker with an agent hands in beside its words."""
    return {"schema": "inbox.usage/1", "agent": "claude", "session_id": session, **facts}


def offered(site: Site, course: Course):
    """The session that the present worker is told of."""
    message = site.scheduler.bus.messages(course.attempt.thread_id)[0]
    return json.loads(message.payload).get("session")


WRITE = agent("write", on_success="look")
LOOK = gates("look", run="! grep -s bad a.txt", on_failure="mend")
MEND = agent("mend", max_visits=4, on_success="look", on_failure="mend")
S1 = {"id": "s-1", "agent": "claude"}


def test_a_repair_goes_on_in_the_session_of_the_work_and_then_in_its_own(site, run, course):
    begun(site, run, WRITE, LOOK, MEND)
    assert offered(site, course) is None
    course.work(a_txt="bad\n", payload=said("s-1"))
    assert offered(site, course) == S1
    course.work(a_txt="bad two\n", payload=said("s-2", resumed_session_id="s-1"))
    assert offered(site, course) == {"id": "s-2", "agent": "claude"}
    course.work(a_txt="bad three\n", payload={"session_id": "mine", "agent": "claude"})
    site.scheduler.answer(run, "a", body="", decided=Answered("continue"))
    course.lead()
    assert offered(site, course) == {"id": "mine"}
    course.work(a_txt="good\n", payload=said("s-4", lost_session_id="mine"))

    shown = site.scheduler.show_task(run, "a").as_json()["attempts"][0]["visits"]
    found = [v["session"] for v in shown if v["kind"] == "agent"]
    none = {"resumed": False, "lost": None}
    assert found == [
        {**S1, **none},
        {"id": "s-2", "agent": "claude", "resumed": True, "lost": None},
        {"id": "mine", "agent": None, **none},
        {"id": "s-4", "agent": "claude", "resumed": False, "lost": "mine"},
    ]
    lines = [line for line in stages.lines_of(course.visits()) if " session " in line]
    assert ["resumed session s-2" in lines[0], "lost session mine" in lines[1]] == [True, True]


def test_another_attempt_begins_anew(site: Site, run, course: Course):
    begun(site, run, agent("write", on_failure="fail"), max_attempts=2)
    course.work(payload=said("s-1"))
    site.clock.advance(600)
    site.dispatch(run)

    assert course.attempt.number == 2 and offered(site, course) is None


def test_who_writes_again_after_a_review_goes_on_and_the_reviewer_does_not(site, run, course):
    judge = review("judge", on_failure="write")
    begun(site, run, agent("write", on_success="judge", max_visits=3), judge)
    course.work(a_txt="one\n", payload=said("s-1"))
    assert course.attempt.mailbox == "reviewers" and offered(site, course) is None
    course.judge("request_changes")
    assert offered(site, course) == S1
    course.work(a_txt="two\n", payload=said("s-1"))

    assert course.attempt.mailbox == "reviewers" and offered(site, course) is None
