"""Approvals and decisions of a blueprint: what is asked, of which tree, and what of no answer."""

import pytest

from inbox_orch.orch.attempts import timing
from inbox_orch.orch.leader.drive import Drive
from inbox_orch.orch.runs.config import Config, NoAnswer
from inbox_orch.orch.stages.decide import Answered
from support.buses import refused
from support.runs import Site, commit, git
from support.stages import Course, add, agent, gates


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def decided(site: Site, run, answer: str, hint: str = ""):
    site.scheduler.answer(run, "a", body=hint, decided=Answered(answer, hint, None))
    site.scheduler.reconcile(run)


# -- approvals -----------------------------------------------------------------------------


def test_before_a_stage_somebody_approves(site: Site, run, course: Course):
    add(site, run, "a", agent("write", approval="before"))
    site.dispatch(run)
    course.lead()
    assert course.way() == [("decision", "live")]
    decided(site, run, "approve")

    course.work(a_txt="one\n")
    assert course.way() == [("decision", "approve"), ("write", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}


def test_a_refusal_before_a_stage_goes_the_way_of_a_failure(site: Site, run, course: Course):
    stages = (
        agent("plan", on_success="write"),
        agent("write", approval="before", on_failure="plan", max_visits=2),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="one\n")
    decided(site, run, "refuse", "not like this")

    assert course.way()[1:] == [("decision", "refuse"), ("plan", "live")]
    assert "not like this" in course.text()


def test_after_a_stage_somebody_approves_what_came_of_it(site: Site, run, course: Course):
    add(site, run, "a", agent("write", approval="after"))
    site.dispatch(run)
    course.work(a_txt="one\n")
    assert course.visits()[-1].found["cause"] == "approval"
    assert site.states(run) == {"a": "blocked"}
    decided(site, run, "approve")

    assert course.way() == [("write", "succeeded"), ("decision", "approve")]
    assert site.states(run) == {"a": "succeeded"}


def test_what_is_refused_after_a_stage_is_done_again(site: Site, run, course: Course):
    add(site, run, "a", agent("write", approval="after", on_failure="write", max_visits=3))
    site.dispatch(run)
    course.work(a_txt="one\n")
    decided(site, run, "refuse", "two, please")

    assert "two, please" in course.text()
    course.work(a_txt="two\n")
    decided(site, run, "approve")
    assert site.states(run) == {"a": "succeeded"}


# -- another tree --------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["accept", "approve"])
def test_what_was_changed_since_is_asked_for_anew(site: Site, run, course: Course, answer):
    stages = [agent("write", approval="after")]
    if answer == "accept":
        stages = [
            agent("write", on_success="look"),
            gates("look", run="! grep -q bad a.txt", on_failure="pause"),
        ]
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    (course.worktree / "a.txt").write_text("changed by hand\n")
    decided(site, run, answer)

    assert course.way()[-2:] == [("decision", answer), ("decision", "live")]
    last = course.visits()[-1]
    assert f"a.txt was changed before `{answer}`" in str(last.reason)
    assert last.tree_before == git(course.worktree, "rev-parse", "HEAD^{tree}")
    decided(site, run, answer)
    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:a.txt") == "changed by hand"


def test_what_was_changed_before_a_gate_is_asked_for_anew(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="true", approval="before"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="one\n")
    commit(course.worktree, "b.txt", "late\n")
    decided(site, run, "approve")

    assert course.way()[1:] == [("decision", "approve"), ("decision", "live")]


# -- nobody answers ------------------------------------------------------------------------


def undecided(site: Site, **config) -> tuple:
    run = site.open_run(title="Later", config=Config(**config))
    course = Course(site, run)
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")
    return run, course


ABANDONED = NoAnswer("abandon", 60)


def test_what_nobody_decides_is_abandoned_in_time(site: Site):
    run, course = undecided(site, decisions=ABANDONED)
    site.clock.advance(59)
    course.lead()
    assert site.states(run) == {"a": "blocked"}
    site.clock.advance(1)
    course.lead()

    assert site.states(run) == {"a": "failed"}
    assert "nobody has decided within 60 s" in str(site.task(run, "a").reason)


def test_an_agent_that_dies_with_a_decision_leaves_it_open(site: Site, run, course: Course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")
    bus = site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    site.clock.advance(24 * 3600)
    course.lead()

    assert course.visits()[-1].live and site.states(run) == {"a": "blocked"}
    again = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    with refused("lease_lost"):
        bus.done(claimed.thread.id, str(claimed.lease.token), body='{"answer": "abandon"}')
    bus.done(again.thread.id, str(again.lease.token), body='{"answer": "continue"}')
    course.lead()
    assert course.way()[-1] == ("write", "live")


def test_a_drive_waits_for_the_time_to_decide_and_ends_then(site: Site):
    run, course = undecided(site)
    wanted = Drive(unanswered=ABANDONED, wait_seconds=0)
    assert ending(site, run, wanted) == "timeout"
    due = timing.due(site.scheduler.desk, run, ABANDONED).due_wall_ms
    assert due == course.visits()[-1].created_at + 60_000
    site.clock.advance(60)

    assert ending(site, run, wanted) == "run_unsuccessful"
    assert site.states(run) == {"a": "failed"}


def ending(site: Site, run, wanted: Drive) -> str | None:
    *_, last = site.scheduler.drive(run, wanted)
    assert last.ending is not None and last.ending.failure is not None
    return last.ending.failure.code


def test_without_such_a_time_a_drive_ends_with_the_decision(site: Site):
    run, _ = undecided(site)

    assert ending(site, run, Drive(wait_seconds=600)) == "needs_decision"
    assert timing.due(site.scheduler.desk, run).due_wall_ms is None


def test_a_stage_whose_workers_were_lost_is_entered_again_by_itself(site: Site, run, course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    for _ in range(3):
        course.claim()
        site.clock.advance(24 * 3600)
        course.lead()
    assert course.way() == [("write", "lost")]

    assert timing.due(site.scheduler.desk, run).due_wall_ms == course.visits()[-1].ended_at + 2000
    site.clock.advance(2)
    course.lead()
    assert course.way() == [("write", "lost"), ("write", "live")]
