"""An attempt goes through the stages of its blueprint, whoever leads."""

import pytest

from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from support.buses import refused
from support.runs import Site, git
from support.stages import Course, add, agent, gates
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def test_the_work_of_two_stages_is_accepted(site: Site, run, course: Course):
    add(site, run, "a", agent("write", on_success="polish"), agent("polish"))
    site.dispatch(run)
    course.work(a_txt="one\n")
    course.work(a_txt="two\n")

    assert course.way() == [("write", "succeeded"), ("polish", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:a.txt") == "two"


def test_a_visit_that_changed_nothing_does_not_count(site: Site, run, course: Course):
    add(site, run, "a", agent("write", max_visits=3, on_failure="write"))
    site.dispatch(run)
    course.work()
    course.work(a_txt="one\n")

    assert course.way() == [("write", "failed"), ("write", "succeeded")]
    assert course.visits()[1].reason == "it changed nothing"
    assert site.states(run) == {"a": "succeeded"}


def test_what_a_failed_visit_did_is_taken_back(site: Site, run, course: Course):
    add(site, run, "a", agent("write", max_visits=3, on_failure="write"))
    site.dispatch(run)
    (course.worktree / "half.txt").write_text("half\n")
    git(course.worktree, "add", "--all")
    git(course.worktree, "commit", "--quiet", "--message", "Half")
    course.fail()

    assert not (course.worktree / "half.txt").exists()
    assert git(course.worktree, "rev-parse", "HEAD") == course.attempt.base_commit
    assert git(course.worktree, "status", "--porcelain") == ""


def test_without_a_way_to_go_somebody_is_asked(site: Site, run, course: Course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")

    assert course.way() == [("write", "failed"), ("decision", "live")]
    assert site.states(run) == {"a": "blocked"}
    assert course.attempt.deciding


def test_what_a_gate_finds_is_mended(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -q bad a.txt", on_failure="mend"),
        agent("mend", max_visits=2, on_success="look"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    course.work(a_txt="good\n")

    assert course.way() == [
        ("write", "succeeded"),
        ("look", "failed"),
        ("mend", "succeeded"),
        ("look", "succeeded"),
    ]
    assert site.states(run) == {"a": "succeeded"}


def test_who_comes_after_a_repair_in_vain_is_told_what_was_to_be_mended(site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -n bad a.txt", on_failure="mend"),
        agent("mend", max_visits=3, on_success="look", on_failure="mend"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    course.fail("no idea")
    course.fail("none either")

    told = site.scheduler.bus.messages(course.attempt.thread_id)[0].body or ""
    assert course.way()[-1] == ("mend", "live")
    assert "What the gates found:" in told and "1:bad" in told
    assert told.count("did not count") == 1
    assert "The last try at mend did not count" in told and "none either" in told


def test_what_gets_no_better_is_somebodys_to_decide(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -q bad a.txt", on_failure="mend"),
        agent("mend", max_visits=5, on_success="look"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    course.work(a_txt="bad still\n")
    course.work(a_txt="bad as ever\n")

    assert [stage for stage, _ in course.way()] == [
        *("write", "look", "mend", "look", "mend", "look", "decision")
    ]
    assert course.visits()[-1].found["cause"] == "stalled"
    assert site.states(run) == {"a": "blocked"}


def decided(site: Site, run, answer: str, hint: str = "", mailbox: str | None = None):
    site.scheduler.answer(run, "a", body=hint, decided=Answered(answer, hint, mailbox))
    site.scheduler.reconcile(run)


def test_after_continue_the_repair_is_told_what_was_tried_against_the_same(site, run, course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -q bad a.txt", on_failure="mend"),
        agent("mend", max_visits=5, on_success="look"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    course.work("w2", a_txt="bad still\n", body="turned it\nround")
    assert "did not help" not in course.text(), "nobody has decided"
    course.work("w3", a_txt="bad as ever\n")
    decided(site, run, "continue", "look at the fixture first")

    said = course.text()
    assert (
        "These failures were there before the decision, and what was tried did not help:\n"
        "- write, by w1: it said: done; 1 failure after it, among them look:exit\n"
        "- mend, by w2: it said: turned it round; 1 failure after it, among them look:exit\n"
        "- mend (2), by w3: it said: done; 1 failure after it, among them look:exit\n"
    ) in said
    assert said.index("did not help") < said.index("look at the fixture first")
    assert said.index("look at the fixture first") < said.index("What the gates found:")


def test_after_continue_the_stage_is_entered_anew_and_told_the_hint(site: Site, run, course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")
    decided(site, run, "continue", "look in b.txt")

    said = site.scheduler.bus.messages(course.attempt.thread_id)[0].body or ""
    assert "What was decided: continue. look in b.txt" in said
    course.work(a_txt="one\n")
    assert course.way() == [("write", "failed"), ("decision", "continue"), ("write", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}


def test_abandon_ends_the_task(site: Site, run, course):
    add(site, run, "a", agent("write"), max_attempts=3)
    site.dispatch(run)
    course.fail("no idea")
    decided(site, run, "abandon", "not worth it")

    assert site.states(run) == {"a": "failed"}
    assert "abandoned at write: not worth it" in str(site.task(run, "a").reason)


def test_accept_takes_the_work_as_it_is_and_that_is_said(site: Site, run, course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -q bad a.txt", on_failure="pause"),
    )
    add(site, run, "a", *stages)
    site.dispatch(run)
    course.work(a_txt="bad\n")
    decided(site, run, "accept")

    assert site.states(run) == {"a": "succeeded"}
    assert "accepted by leader as it was" in str(course.attempt.details)


def test_an_agent_decides_by_claiming_the_thread(site: Site, run, course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")
    bus = site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    bus.done(
        claimed.thread.id, str(claimed.lease.token), body='{"answer": "continue", "hint": "again"}'
    )
    site.scheduler.reconcile(run)

    assert course.way()[1:] == [("decision", "continue"), ("write", "live")]


def test_an_agent_that_holds_a_decision_learns_that_somebody_else_has_settled_it(
    site: Site, run, course
):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")
    bus = site.office.bus("boss")
    claimed = bus.claim(course.attempt.thread_id, mailboxes=["operator"])
    decided(site, run, "continue")

    with refused("cancelled"):
        bus.done(claimed.thread.id, str(claimed.lease.token), body='{"answer": "abandon"}')
    assert course.way()[1:] == [("decision", "continue"), ("write", "live")]


def test_a_decision_is_among_the_open_questions(site: Site, run, course):
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    course.fail("no idea")

    (question,) = site.scheduler.questions(run)
    assert question.options == ("continue", "change_role", "accept", "split", "abandon")
    assert question.as_json()["decision"]["cause"] == "pause"
    with refused("usage"):
        site.scheduler.answer(run, "a", body="what?")
    with refused("usage"):
        site.scheduler.answer(run, "a", body="", decided=Answered("approve"))


def test_gates_of_two_attempts_run_side_by_side(site: Site, run):
    """Each waits for the other: one after the other they would never end."""
    place = site.folder
    both = f"touch {place}/$ORCH_TASK.here && until test -e {place}/a.here -a -e {place}/b.here"
    stages = (
        agent("write", on_success="look"),
        gates("look", run=f"{both}; do sleep 0.02; done", timeout_seconds=60, on_failure="fail"),
    )
    for key in ("a", "b"):
        add(site, run, key, *stages)
    site.dispatch(run)
    for key in ("a", "b"):
        one = Course(site, run, key)
        bus, token = one.claim()
        (one.worktree / "x.txt").write_text(key)
        bus.done(one.attempt.thread_id, token, body="done")

    waited = site.scheduler.wait(run, until="run", wait_seconds=PATIENCE_SECONDS)

    assert waited.outcome == "succeeded"


def test_a_formatter_that_may_keep_what_it_writes_has_it_committed(site: Site):
    keeps = Gate("format", "echo tidy > a.txt", writes="keep")
    run = site.open_run(config=Config(gates=(keeps.as_json(),), finds=()))
    course = Course(site, run)
    stages = (agent("write", on_success="tidy"), gates("tidy", on_failure="fail"))
    add(site, run, "a", *stages)
    site.dispatch(run)
    site.scheduler.reconcile(run)
    course.work(a_txt="untidy")
    site.scheduler.reconcile(run)

    assert course.way() == [("write", "succeeded"), ("tidy", "succeeded")]
    head = course.attempt.head_commit
    assert git(site.repository, "show", f"{head}:a.txt") == "tidy"
