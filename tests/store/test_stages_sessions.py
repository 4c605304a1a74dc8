"""Which session of an agent a visit goes on with: what is stored of it, and told to its worker."""

import json

import pytest

from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import stages
from support.runs import Site
from support.stages import Course, add, agent, gates, review


@pytest.fixture
def run(site: Site):
    return site.open_run(config=Config(roles={"reviewer": "reviewers"}))


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
    stored = [v.found["session"] for v in course.visits() if v.kind == "agent" and not v.live]
    assert [(s["id"], s["resumed"]) for s in stored] == [("s-1", False), ("s-2", True)]
    assert site.scheduler.bus.show(course.attempt.thread_id).messages[0].payload


def test_any_leader_tells_it_since_it_is_stored(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload=said("s-1"))
    bus, token = course.claim()
    bus.release(course.attempt.thread_id, token)

    assert offered(site, course) == S1


def test_who_writes_again_after_a_review_goes_on_and_the_reviewer_does_not(site, run, course):
    judge = review("judge", on_failure="write")
    begun(site, run, agent("write", on_success="judge", max_visits=3), judge)
    course.work(a_txt="one\n", payload=said("s-1"))
    assert course.attempt.mailbox == "reviewers" and offered(site, course) is None
    course.judge("request_changes")
    assert offered(site, course) == S1
    course.work(a_txt="two\n", payload=said("s-1"))

    assert course.attempt.mailbox == "reviewers" and offered(site, course) is None


def test_even_in_the_mailbox_and_the_role_of_the_writer_a_review_begins_anew(site: Site):
    run = site.open_run(title="Later", config=Config(roles={"builder": "builders"}))
    course = Course(site, run)
    judge = review("judge", role="builder", on_failure="write")
    write = agent("write", role="builder", on_success="judge", max_visits=3)
    begun(site, run, write, judge)
    course.work(a_txt="one\n", payload=said("s-1"))
    assert (course.way()[-1], course.attempt.mailbox) == (("judge", "live"), "builders")
    assert offered(site, course) is None
    course.judge("request_changes")

    assert course.way()[-1] == ("write", "live") and offered(site, course) == S1


def test_what_was_taken_back_was_in_a_session_that_is_left(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload=said("s-1"))
    course.fail()

    assert course.way()[-1] == ("mend", "live") and offered(site, course) is None


def test_who_was_lost_was_in_a_session_that_is_left(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload=said("s-1"))
    for _ in range(3):
        course.claim()
        site.clock.advance(400)
        course.lead()
    site.clock.advance(60)
    course.lead()

    assert course.way()[-2:] == [("mend", "lost"), ("mend", "live")]
    assert offered(site, course) is None


@pytest.mark.parametrize(
    "other",
    [{"role": "coding_optimized_builder"}, {"toolset": "docs"}, {"writes": False}],
    ids=["role", "toolset", "reads"],
)
def test_another_role_or_toolset_begins_anew(site: Site, run, course: Course, other):
    more = agent("more", **other)
    begun(site, run, agent("write", on_success="more"), more)
    course.work(a_txt="one\n", payload=said("s-1"))

    assert course.way()[-1] == ("more", "live") and offered(site, course) is None


def test_one_that_only_reads_in_between_changes_nothing(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="read"),
        agent("read", writes=False, on_success="more"),
        agent("more"),
    )
    begun(site, run, *stages)
    course.work(a_txt="one\n", payload=said("s-1"))
    course.work(payload=said("s-2"))

    assert offered(site, course) == S1


def test_another_mailbox_begins_anew(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, agent("mend", max_visits=1, on_success="look"))
    course.work(a_txt="bad\n", payload=said("s-1"))
    course.work(a_txt="bad two\n", payload=said("s-1"))
    decided = Answered("change_role", "", "elsewhere")
    site.scheduler.answer(run, "a", body="", decided=decided)
    course.lead()

    assert course.attempt.mailbox == "elsewhere" and offered(site, course) is None


def test_after_a_decision_it_goes_on(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, agent("mend", max_visits=1, on_success="look"))
    course.work(a_txt="bad\n", payload=said("s-1"))
    course.work(a_txt="bad two\n", payload=said("s-1"))
    site.scheduler.answer(run, "a", body="", decided=Answered("continue"))
    course.lead()

    assert course.way()[-1] == ("mend", "live") and offered(site, course) == S1


def test_another_attempt_begins_anew(site: Site, run, course: Course):
    begun(site, run, agent("write", on_failure="fail"), max_attempts=2)
    course.work(payload=said("s-1"))
    site.clock.advance(600)
    site.dispatch(run)

    assert course.attempt.number == 2 and offered(site, course) is None


def test_a_command_of_ones_own_says_its_session_in_its_result(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload={"session_id": "mine", "agent": "claude"})

    assert offered(site, course) == {"id": "mine"}


@pytest.mark.parametrize("session", ["--yolo", "", 7, "a b"])
def test_what_could_be_no_word_of_a_command_is_no_session(site: Site, run, course, session):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload=said(session))

    assert offered(site, course) is None


def test_one_that_was_lost_is_said_in_json_and_in_a_line(site: Site, run, course: Course):
    begun(site, run, WRITE, LOOK, MEND)
    course.work(a_txt="bad\n", payload=said("s-1"))
    course.work(a_txt="good\n", payload=said("s-3", lost_session_id="s-1"))
    shown = site.scheduler.show_task(run, "a")
    visits = shown.as_json()["attempts"][0]["visits"]
    found = [v.get("session") for v in visits]
    (line,) = [line for line in stages.lines_of(course.visits()) if ". mend" in line]
    assert "lost session s-1" in line

    lost = {"id": "s-3", "agent": "claude", "resumed": False, "lost": "s-1"}
    assert found == [None, lost | {"id": "s-1", "lost": None}, None, lost, None]


def test_without_a_blueprint_there_is_none(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    payload = site.scheduler.bus.messages(item["thread"])[0].payload
    assert "session" not in json.loads(payload)
