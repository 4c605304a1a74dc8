"""A stage of the type council: three seats, and a majority of two."""

import json

import pytest

from inbox_orch.orch.attempts import timing
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages import settle
from inbox_orch.orch.stages.model import Stage
from support.buses import refused
from support.runs import Site, git
from support.stages import Course, add, agent


@pytest.fixture
def run(site: Site):
    return site.open_run(config=Config(roles={"frontier_reviewer": Role("reviewers")}))


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def asked(site: Site, run, course: Course, **options) -> None:
    """A council that judges what `w1` has written."""
    council = Stage("ask", "council", goal="Good?", on_failure="write", **options)
    add(site, run, "a", agent("write", on_success="ask", max_visits=3), council)
    site.dispatch(run)
    course.work(a_txt="one\n")


def say(site: Site, verdict: str, who: str, text: str = "so") -> None:
    bus = site.office.bus(who)
    claimed = bus.claim(mailboxes=["reviewers"])
    said = {"verdict": verdict, "summary": text, "findings": [{"text": f"{who}: {text}"}]}
    bus.done(claimed.thread.id, str(claimed.lease.token), body=json.dumps(said))


def is_over(site: Site) -> bool:
    """Whether no seat is left to claim."""
    with refused("nothing_available"):
        site.office.bus("eve").claim(mailboxes=["reviewers"])
    return True


def test_two_of_three_approve(site: Site, run, course: Course):
    asked(site, run, course)
    say(site, "approve", "ada")
    course.lead()
    assert course.way()[-1] == ("ask", "live")
    say(site, "approve", "bob")
    course.lead()

    assert course.way() == [("write", "succeeded"), ("ask", "approve")]
    assert site.states(run) == {"a": "succeeded"}
    assert "ada: so; bob: so" in str(course.visits()[-1].reason)
    assert is_over(site)


def test_each_seat_is_given_the_change_and_may_change_nothing(site: Site, run, course: Course):
    asked(site, run, course)
    bus = site.office.bus("ada")
    told = bus.claim(mailboxes=["reviewers"]).messages[0].body or ""
    assert "+one" in told and "Good?" in told and '"approve"' in told
    (course.worktree / "a.txt").write_text("mine\n")
    for who in ("bob", "eve"):
        say(site, "approve", who)
    course.lead()

    assert course.visits()[-1].found["put_back"] == ["a.txt"]
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:a.txt") == "one"


def test_what_a_majority_asks_for_is_told_with_the_findings_of_all(site: Site, run, course: Course):
    asked(site, run, course)
    say(site, "approve", "ada", "fine")
    say(site, "request_changes", "bob", "no test")
    say(site, "request_changes", "eve", "too long")
    course.lead()

    assert course.way()[-2:] == [("ask", "request_changes"), ("write", "live")]
    assert "- bob: no test" in course.text() and "- eve: too long" in course.text()


def test_a_majority_that_rejects_is_somebodys_to_decide(site: Site, run, course: Course):
    asked(site, run, course)
    say(site, "reject", "ada")
    say(site, "reject", "bob")
    course.lead()

    assert course.visits()[-1].found["cause"] == "rejected"


def test_without_a_majority_somebody_decides(site: Site, run, course: Course):
    asked(site, run, course)
    say(site, "approve", "ada")
    say(site, "reject", "bob")
    say(site, "request_changes", "eve")
    course.lead()

    assert course.way()[-2:] == [("ask", "error"), ("decision", "live")]
    said = "no majority of 3 seats: approve 1, reject 1, request_changes 1 (3 reviewers)"
    assert said in str(course.visits()[-1].reason)


def test_one_reviewer_in_three_seats_is_one_voice_and_an_author_is_none(
    site: Site, run, course: Course
):
    asked(site, run, course)
    say(site, "approve", "ada")
    say(site, "approve", "ada")
    say(site, "approve", "w1")
    course.lead()

    assert course.way()[-1] == ("decision", "live")
    assert "approve 1 (1 reviewer)" in str(course.visits()[-1].reason)


def test_seats_that_stay_empty_are_waited_for_until_the_stage_s_time_is_over(
    site: Site, run, course: Course
):
    asked(site, run, course, timeout_seconds=60.0)
    say(site, "approve", "ada")
    course.lead()
    until = course.visits()[-1].created_at + 60_000
    assert timing.due(site.scheduler.desk, run).due_wall_ms == until
    site.clock.advance(60)
    course.lead()

    assert course.way()[-2:] == [("ask", "error"), ("decision", "live")]
    assert is_over(site)


def test_a_seat_whose_answer_is_no_verdict_is_asked_again_and_then_left(
    site: Site, run, course: Course
):
    asked(site, run, course)
    for _ in range(3):
        bus = site.office.bus("eve")
        claimed = bus.claim(mailboxes=["reviewers"])
        assert json.loads(claimed.messages[0].payload)["retry_refused"]
        bus.fail(claimed.thread.id, str(claimed.lease.token), body="prose", retry_in_seconds=0)
        course.lead()
    say(site, "approve", "ada")
    say(site, "approve", "bob")
    course.lead()

    assert course.way() == [("write", "succeeded"), ("ask", "approve")]


def test_without_a_reviewer_it_is_skipped_and_said(site: Site):
    run = site.open_run(title="Later")
    course = Course(site, run)
    asked(site, run, course)

    assert course.way() == [("write", "succeeded"), ("ask", "skipped")]
    assert "not reviewed: ask was skipped" in str(course.attempt.details)


def test_seats_of_a_task_that_is_cancelled_are_called_off(site: Site, run, course: Course):
    asked(site, run, course)
    site.scheduler.cancel(run, ["a"])
    course.lead()

    assert site.states(run) == {"a": "cancelled"}
    assert is_over(site)


class Died(BaseException):
    """What a process ends with, here."""


def test_who_goes_on_after_a_crash_comes_to_the_same(site: Site, run, course: Course, monkeypatch):
    asked(site, run, course)
    say(site, "approve", "ada")
    say(site, "approve", "bob")

    def died(*_) -> bool:
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(settle, "end", died)
        with pytest.raises(Died):
            course.lead()
    assert course.way()[-1] == ("ask", "live")
    course.lead()

    assert course.way() == [("write", "succeeded"), ("ask", "approve")]
    assert site.states(run) == {"a": "succeeded"}
