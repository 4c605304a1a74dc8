"""An attempt goes through the stages of its blueprint, whoever leads."""

import pytest

from support.runs import Site, git
from support.stages import Course, add, agent, gates


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
