"""The clock of a visit, `timeout_seconds` of its stage: what counts, and what becomes of it."""

import pytest

from inbox_orch.orch.attempts import timing
from inbox_orch.orch.git import snapshots
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views.explain import explain
from support.buses import refused
from support.runs import Site, git
from support.stages import Course, add, agent, review


@pytest.fixture
def run(site: Site):
    return site.open_run(config=Config(roles={"reviewer": Role("reviewers")}))


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


WRITE = agent("write", timeout_seconds=60.0, on_failure="write", max_visits=3)
LATE = ("write", "failed")


def begun(site: Site, run, *stages, **options):
    add(site, run, "a", *(stages or (WRITE,)), **options)
    site.dispatch(run)


def is_over_after(site: Site, course: Course, seconds: float):
    """Then its worker is told, and not a moment before."""
    at_ms = site.clock.wall_ms + int(seconds * 1000)
    assert timing.due(site.scheduler.desk, course.run).due_wall_ms == at_ms
    site.clock.advance(seconds - 0.001)
    course.lead()
    assert course.attempt.state == "running"
    site.clock.advance(0.001)
    course.lead()
    assert course.attempt.state == "submitted"


def learns(course: Course, bus, token: str):
    """The worker hears of it, and cannot hand anything in; then a leader looks."""
    for _ in range(2):
        with refused("cancelled"):
            bus.done(course.attempt.thread_id, token, body="done at last")
    course.lead()


def test_a_worker_that_takes_too_long_is_told_and_what_it_did_is_put_back(site, run, course):
    begun(site, run)
    site.clock.advance(1000)
    course.lead()
    bus, token = course.claim()
    worktree, attempt = course.worktree, course.attempt
    (worktree / "a.txt").write_text("half\n")
    git(worktree, "add", "--all")
    git(worktree, "commit", "--quiet", "--message", "Half")
    (worktree / "README.md").write_text("changed\n")
    is_over_after(site, course, 60)
    assert course.way() == [("write", "live")] and (worktree / "a.txt").exists()
    assert site.scheduler.doctor(verify=True).problems == 0
    said = "write took longer than 60 s, and its worker is being stopped"
    assert explain(site.scheduler.desk, "a", run.name).next == said
    learns(course, bus, token)

    assert course.way() == [LATE, ("write", "live")]
    late = course.visits()[1]
    assert (late.reason, late.worker, late.worked_ms) == ("took longer than 60 s", "w1", 60_000)
    shown = site.scheduler.show_task(run, "a").as_json()["attempts"][0]["visits"][1]
    assert (shown["reason"], shown["worker"]) == (late.reason, "w1")
    assert "what it changed was taken back: took longer than 60 s" in course.text()
    assert git(worktree, "status", "--porcelain") == "" and not (worktree / "a.txt").exists()
    assert git(worktree, "rev-parse", "HEAD") == attempt.base_commit
    kept = f"{snapshots.ref_of(attempt.id)}^"  # before it was put back
    assert git(site.repository, "show", f"{kept}:README.md") == "changed"
    assert git(site.repository, "show", f"{kept}:a.txt") == "half"
    course.work(a_txt="one\n")
    assert site.states(run) == {"a": "succeeded"}
    assert site.scheduler.doctor(verify=True).problems == 0


def test_what_is_handed_in_before_a_leader_looks_counts(site: Site, run, course: Course):
    begun(site, run)
    bus, token = course.claim()
    (course.worktree / "a.txt").write_text("one\n")
    site.clock.advance(100)
    bus.done(course.attempt.thread_id, token, body="done")
    course.lead()

    assert course.way() == [("write", "succeeded")]


def test_an_open_question_does_not_count(site: Site, run, course: Course):
    begun(site, run)
    bus, token = course.claim()
    site.clock.advance(20)
    bus.ask(course.attempt.thread_id, token, body="which?")
    site.clock.advance(200)
    course.lead()
    assert course.attempt.state == "blocked"
    site.scheduler.answer(run, "a", body="that one")
    course.lead()

    is_over_after(site, course, 40)


def test_waiting_for_the_next_worker_does_not_count_and_its_time_with_the_first_does(
    site: Site, run, course: Course
):
    begun(site, run)
    bus = site.office.bus("w1")
    bus.claim(course.attempt.thread_id, mailboxes=["workers"], lease_seconds=30)
    site.clock.advance(100)
    course.lead()
    assert course.attempt.state == "offered"
    site.clock.advance(100)
    bus, token = course.claim("w2")
    site.clock.advance(10)
    bus.ask(course.attempt.thread_id, token, body="which?")
    site.clock.advance(500)  # without a holder from the middle of it on
    site.scheduler.answer(run, "a", body="that one")
    site.clock.advance(50)
    course.claim("w3")
    course.lead()

    is_over_after(site, course, 20)


def test_a_worker_that_does_not_answer_is_waited_for_as_long_as_one_that_is_cancelled(
    site: Site, run, course: Course
):
    begun(site, run)
    course.claim()
    is_over_after(site, course, 60)
    assert timing.due(site.scheduler.desk, run).due_wall_ms == site.clock.wall_ms + 60_000
    site.clock.advance(59)
    course.lead()
    assert course.way() == [("write", "live")]
    site.clock.advance(1)
    course.lead()

    assert course.way() == [LATE, ("write", "live")]


def test_the_end_of_its_lease_is_waited_for_and_no_longer(site: Site, run, course: Course):
    begun(site, run)
    bus = site.office.bus("w1")
    bus.claim(course.attempt.thread_id, mailboxes=["workers"], lease_seconds=70)
    is_over_after(site, course, 60)
    site.clock.advance(10)
    course.lead()

    assert course.way() == [LATE, ("write", "live")]


def test_without_a_way_to_go_somebody_decides(site: Site, run, course: Course):
    begun(site, run, WRITE._replace(on_failure=None))
    bus, token = course.claim()
    is_over_after(site, course, 60)
    learns(course, bus, token)

    assert course.way() == [LATE, ("decision", "live")]
    assert course.visits()[-1].reason == "took longer than 60 s"
    site.scheduler.answer(run, "a", body="", decided=Answered("continue"))
    course.lead()
    course.work(a_txt="one\n")
    assert site.states(run) == {"a": "succeeded"}


def test_a_review_that_takes_too_long_is_for_another_reviewer_and_for_no_writer(
    site: Site, run, course: Course
):
    judge = review("judge", timeout_seconds=60.0, on_failure="write")
    begun(site, run, agent("write", on_success="judge", max_visits=3), judge)
    course.work(a_txt="one\n")
    bus, token = course.claim("rev")
    (course.worktree / "a.txt").write_text("mine\n")
    is_over_after(site, course, 60)
    learns(course, bus, token)
    site.clock.advance(60)
    course.lead()

    assert course.way() == [("write", "succeeded"), ("judge", "lost"), ("judge", "live")]
    assert "The last try at judge came to nothing: took longer than 60 s" in course.text()
    course.judge("approve", "other")
    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:a.txt") == "one"


def test_the_task_can_be_cancelled_meanwhile(site: Site, run, course: Course):
    begun(site, run)
    bus, token = course.claim()
    is_over_after(site, course, 60)
    site.scheduler.cancel(run, ["a"])
    assert course.attempt.state == "ending"
    learns(course, bus, token)

    assert site.states(run) == {"a": "cancelled"}
    assert course.way() == [("write", "cancelled")]


def test_the_clock_of_the_attempt_is_another_one(site: Site, run, course: Course):
    begun(site, run, limits=Limits(run_seconds=90))
    bus, token = course.claim()
    is_over_after(site, course, 60)
    learns(course, bus, token)
    course.claim()
    site.clock.advance(30)
    course.lead()

    assert (course.attempt.state, course.attempt.clock) == ("ending", "run")


def test_a_stage_without_a_limit_has_no_clock(site: Site, run, course: Course):
    begun(site, run, agent("write", on_success="more"), agent("more", timeout_seconds=60.0))
    course.claim()
    site.clock.advance(100_000)
    assert timing.due(site.scheduler.desk, run).due_wall_ms is None
    course.lead()
    assert course.way() == [("write", "live")]
