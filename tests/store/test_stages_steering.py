"""Tasks with a blueprint are steered, answered and timed at every place of their way: between two
stages, while a gate is to run, in a decision."""

import json
import shutil

import pytest

from inbox_orch.orch.attempts import timing
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages.decide import Answered
from support.buses import refused
from support.runs import Site, commit, git
from support.stages import Course, add, agent, gates

LOOK = (
    agent("write", max_visits=3, on_success="look"),
    gates("look", run="! grep -s bad a.txt", on_failure="mend"),
    agent("mend", max_visits=2, on_success="look"),
)


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def begun(site: Site, run, *stages, **options):
    add(site, run, "a", *(stages or LOOK), **options)
    site.dispatch(run)


# -- places of the way -----------------------------------------------------------------------


def offered(course: Course) -> None:
    """Nobody has claimed its first thread."""


def running(course: Course) -> None:
    course.claim()


def handed_in(course: Course) -> None:
    """What a gate will find fault with."""
    bus, token = course.claim()
    (course.worktree / "a.txt").write_text("bad\n")
    bus.done(course.attempt.thread_id, token, body="done")


def before_a_gate(course: Course) -> None:
    handed_in(course)
    course.site.scheduler.reconcile(course.run, checks=False)


def deciding(course: Course) -> None:
    course.fail("no idea")


def answered_on_the_thread(course: Course) -> None:
    deciding(course)
    bus = course.site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    bus.done(claimed.thread.id, str(claimed.lease.token), body='{"answer": "continue"}')


PLACES = [offered, running, handed_in, before_a_gate, deciding, answered_on_the_thread]


def ended(course: Course) -> None:
    """Whoever still has a lease is given the time that it has."""
    course.lead()
    course.site.clock.advance(400)
    course.lead()


@pytest.mark.parametrize("place", PLACES)
def test_a_task_is_cancelled_wherever_it_is(site: Site, run, course: Course, place):
    begun(site, run)
    place(course)
    site.scheduler.cancel(run, ["a"])
    ended(course)

    assert site.states(run) == {"a": "cancelled"}
    assert not any(v.live for v in course.visits())
    assert site.open_intents(run) == []
    assert site.scheduler.questions(run) == []


@pytest.mark.parametrize("place", [running, before_a_gate, deciding])
def test_a_run_is_cancelled_wherever_its_tasks_are(site: Site, run, course: Course, place):
    begun(site, run)
    place(course)
    site.scheduler.cancel_run(run)
    ended(course)

    assert site.states(run) == {"a": "cancelled"}
    assert site.scheduler.run(run.name).state == "closed"
    assert not any(v.live for v in course.visits())
    assert site.open_intents(run) == []


def cancelled(site: Site, run) -> None:
    site.scheduler.cancel(run, ["a"])


def run_cancelled(site: Site, run) -> None:
    site.scheduler.cancel_run(run)


@pytest.mark.parametrize("act", [cancelled, run_cancelled])
def test_one_that_no_worker_has_had_yet_is_cancelled_too(site: Site, run, course: Course, act):
    begun(site, run, gates("look", run="true", on_success="write"), agent("write"))
    assert (course.attempt.state, course.attempt.thread_id) == ("provisioned", None)
    act(site, run)
    ended(course)

    assert site.states(run) == {"a": "cancelled"}
    assert not any(v.live for v in course.visits())


def test_one_that_no_worker_has_had_yet_is_lost_with_its_worktree(site: Site, run, course: Course):
    begun(site, run, gates("look", run="true", on_success="write"), agent("write"))
    shutil.rmtree(course.worktree)
    course.lead()

    assert (course.attempt.state, site.states(run)) == ("lost", {"a": "backing_off"})


def test_one_that_no_worker_has_had_yet_goes_to_others(site: Site, run, course: Course):
    begun(site, run, gates("look", run="true", on_success="write"), agent("write"))
    site.scheduler.reassign(run, ["a"], "others")
    ended(course)
    site.dispatch(run)
    course.lead()

    assert course.attempt.mailbox == "others"
    course.work(a_txt="good\n")
    assert site.states(run) == {"a": "succeeded"}


@pytest.mark.parametrize("place", [handed_in, answered_on_the_thread])
def test_a_paused_run_lets_what_has_begun_come_to_its_end(site: Site, run, course: Course, place):
    begun(site, run)
    place(course)
    site.scheduler.pause_run(run)
    course.lead()
    site.scheduler.resume_run(run)
    course.lead()

    assert site.states(run)["a"] in ("active", "blocked", "succeeded")
    assert site.scheduler.doctor(verify=True).problems == 0


@pytest.mark.parametrize("place", [running, deciding])
def test_a_task_goes_to_other_workers_wherever_it_is(site: Site, run, course: Course, place):
    begun(site, run)
    place(course)
    site.scheduler.reassign(run, ["a"], "others")
    ended(course)
    site.dispatch(run)

    assert len(site.attempts(run, "a")) == 2
    assert course.attempt.mailbox == "others"


def test_the_worktree_of_one_that_decides_is_not_taken_away(site: Site, run, course: Course):
    begun(site, run)
    deciding(course)
    site.scheduler.cleanup(run, force=True)

    assert course.worktree.is_dir()


def test_a_retry_goes_on_from_what_an_attempt_has_come_to(site: Site, run, course: Course):
    begun(site, run)
    course.work(a_txt="bad\n")
    course.fail("no idea")
    site.scheduler.answer(run, "a", body="", decided=Answered("abandon"))
    course.lead()
    assert site.states(run) == {"a": "failed"}
    site.scheduler.retry(run, ["a"], from_attempt=1)
    site.dispatch(run)

    assert (course.worktree / "a.txt").read_text() == "bad\n"
    course.work(a_txt="good\n")
    assert site.states(run) == {"a": "succeeded"}


def test_two_attempts_where_that_is_asked_for(site: Site, run, course: Course):
    stages = (agent("write", on_success="look"), gates("look", run="! grep -s bad a.txt"))
    begun(site, run, *stages, max_attempts=2)
    course.work(a_txt="bad\n")
    assert site.states(run) == {"a": "backing_off"}
    site.clock.advance(400)
    site.dispatch(run)
    course.work(a_txt="good\n")

    assert [a.state for a in site.attempts(run, "a")] == ["failed", "succeeded"]
    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]


def test_one_attempt_where_nothing_is_said(site: Site, run, course: Course):
    stages = (agent("write", on_success="look"), gates("look", run="! grep -s bad a.txt"))
    begun(site, run, *stages)
    course.work(a_txt="bad\n")

    assert site.states(run) == {"a": "failed"}


# -- other tasks that fail ---------------------------------------------------------------------


@pytest.mark.parametrize("place", [running, before_a_gate, deciding])
def test_abort_ends_what_is_on_its_way(site: Site, place):
    run = site.open_run(on_failure="abort")
    course = Course(site, run)
    begun(site, run)
    place(course)
    add(site, run, "b", agent("write"))
    (item,) = site.dispatch(run).values()
    site.fail(item, fatal=True)
    ended(course)
    ended(course)

    assert site.states(run) == {"a": "cancelled", "b": "failed"}


# -- answers -----------------------------------------------------------------------------------


def test_of_two_answers_the_first_counts(site: Site, run, course: Course):
    begun(site, run)
    deciding(course)
    site.scheduler.answer(run, "a", body="one", decided=Answered("continue", "one"))
    with refused("invalid_state"):
        site.scheduler.answer(run, "a", body="two", decided=Answered("abandon", "two"))
    course.lead()

    assert course.way()[1:] == [("decision", "continue"), ("write", "live")]


def test_an_answer_comes_too_late_for_one_that_was_given_on_the_thread(
    site: Site, run, course: Course
):
    begun(site, run)
    answered_on_the_thread(course)
    with refused("invalid_state"):
        site.scheduler.answer(run, "a", body="", decided=Answered("abandon"))
    course.lead()

    assert course.way()[1:] == [("decision", "continue"), ("write", "live")]


def test_one_who_holds_the_decision_and_dies_leaves_it_open(site: Site, run, course: Course):
    begun(site, run)
    deciding(course)
    for number in range(5):
        bus = site.office.bus(f"boss{number}")
        bus.claim(course.attempt.thread_id, mailboxes=["operator"])
        site.clock.advance(400)
        course.lead()
        assert site.states(run) == {"a": "blocked"}
    site.scheduler.answer(run, "a", body="", decided=Answered("continue"))
    course.lead()

    last = course.way()[-2:]
    assert last == [("decision", "continue"), ("write", "live")]


def test_what_is_no_answer_is_refused_on_the_thread(site: Site, run, course: Course):
    begun(site, run)
    deciding(course)
    bus = site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    for body in ("go on", '{"answer": "perhaps"}', "[]"):
        with refused("result_refused"):
            bus.done(claimed.thread.id, str(claimed.lease.token), body=body)
    bus.done(claimed.thread.id, str(claimed.lease.token), body='{"answer": "continue"}')
    course.lead()

    assert course.way()[1:] == [("decision", "continue"), ("write", "live")]


def test_change_role_without_a_mailbox_on_the_thread_is_asked_again(
    site: Site, run, course: Course
):
    begun(site, run)
    deciding(course)
    bus = site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    bus.done(claimed.thread.id, str(claimed.lease.token), body='{"answer": "change_role"}')
    course.lead()

    assert course.way()[1:] == [("decision", "void"), ("decision", "live")]
    assert site.states(run) == {"a": "blocked"}


def test_one_who_fails_each_decision_is_asked_later_each_time(site: Site, run, course: Course):
    begun(site, run)
    deciding(course)
    bus = site.office.bus("boss")
    asked = []
    for _ in range(4):
        claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
        bus.fail(claimed.thread.id, str(claimed.lease.token), body="no idea either")
        course.lead()
        asked.append(course.way()[-1])
        site.clock.advance(8)
        course.lead()

    # At once, then after two seconds, after four, after eight.
    live, void = ("decision", "live"), ("decision", "void")
    assert asked == [live, void, void, void]
    assert course.way()[1:] == [void, void, void, void, live]


# -- clocks ------------------------------------------------------------------------------------


def test_the_run_clock_goes_over_all_visits(site: Site, run, course: Course):
    begun(site, run, limits=Limits(run_seconds=100))
    bus, token = course.claim()
    site.clock.advance(60)
    (course.worktree / "a.txt").write_text("bad\n")
    bus.renew(course.attempt.thread_id, token)
    bus.done(course.attempt.thread_id, token, body="done")
    course.lead()
    site.clock.advance(1000)  # nobody works on it
    course.lead()
    assert course.way()[-1] == ("mend", "live")
    course.claim()
    site.clock.advance(30)
    course.lead()
    assert course.attempt.state == "running"
    site.clock.advance(11)
    course.lead()

    assert course.attempt.state == "ending"
    assert "run clock" in str(course.attempt.reason)
    ended(course)
    assert course.attempt.state == "timed_out"
    assert course.way()[-1] == ("mend", "cancelled")


def test_no_clock_of_work_runs_while_somebody_decides(site: Site, run, course: Course):
    limits = Limits(run_seconds=100, queue_seconds=100, silent_seconds=100, block_seconds=100)
    begun(site, run, limits=limits)
    deciding(course)
    site.clock.advance(10_000)
    course.lead()

    assert site.states(run) == {"a": "blocked"}
    assert course.attempt.deciding


def test_the_queue_clock_is_of_each_visit(site: Site, run, course: Course):
    begun(site, run, limits=Limits(queue_seconds=100))
    site.clock.advance(60)
    course.work(a_txt="bad\n")
    site.clock.advance(60)
    course.lead()
    assert course.attempt.state == "offered"
    site.clock.advance(60)
    ended(course)

    assert course.attempt.state == "timed_out"


def test_a_stage_whose_workers_were_lost_is_entered_again_when_its_back_off_is_over(
    site: Site, run, course: Course
):
    begun(site, run)
    for number in range(3):
        course.claim(f"w{number}")
        site.clock.advance(400)
        course.lead()
    assert course.way() == [("write", "lost")]

    look = timing.due(site.scheduler.desk, run)
    assert look.due_wall_ms == site.clock.now().wall_ms + 2000
    site.clock.advance(2)
    course.lead()
    assert course.way() == [("write", "lost"), ("write", "live")]
    course.work(a_txt="good\n")
    assert site.states(run) == {"a": "succeeded"}


# -- what changes meanwhile ----------------------------------------------------------------------


def test_a_run_goes_by_the_text_that_it_began_with(site: Site, run, course: Course):
    begun(site, run)
    # Somebody has changed the file meanwhile, and adds another task by its name.
    add(site, run, "b", agent("other"))
    course.work(a_txt="bad\n")
    site.dispatch(run)

    assert course.way()[1:] == [("look", "failed"), ("mend", "live")]
    assert Course(site, run, "b").way() == [("write", "live")]


def test_a_base_that_moves_on_does_not_matter(site: Site, run, course: Course):
    begun(site, run)
    commit(site.repository, "b.txt", "other\n")
    course.work(a_txt="bad\n")
    commit(site.repository, "c.txt", "other\n")
    course.work(a_txt="good\n")

    assert site.states(run) == {"a": "succeeded"}
    site.scheduler.integrate(run)
    branch = f"orch/{run.name}/integration"
    assert git(site.repository, "show", f"{branch}:a.txt") == "good"


def test_one_who_says_prose_for_a_verdict_is_told_and_may_say_it_again(site: Site):
    stages = (
        agent("write", on_success="review"),
        agent("review", writes=False, reviews=True, role="reviewer", on_failure="write"),
    )
    run = site.open_run(config=Config(roles={"reviewer": Role("reviewers")}, finds=()))
    course = Course(site, run)
    begun(site, run, *stages)
    course.work(a_txt="one\n")
    bus, token = course.claim("rev")
    with refused("result_refused"):
        bus.done(course.attempt.thread_id, token, body="looks good to me")
    said = {"verdict": "approve", "summary": "so"}
    bus.done(course.attempt.thread_id, token, body=json.dumps(said))
    course.lead()

    assert course.way() == [("write", "succeeded"), ("review", "approve")]
    assert site.states(run) == {"a": "succeeded"}
