"""What gates of a stage may do, and what becomes of the attempt: it is judged, or somebody asked;
never a leader that hangs or fails again and again, nor work that a gate has written."""

from pathlib import Path

from inbox_orch.orch.attempts import judge
from inbox_orch.orch.runs.config import Config
from support.runs import Site, git
from support.stages import Course, add, agent, gates

GIT = "git -c user.name=gate -c user.email=gate@example.org"
LOOK = (
    agent("write", on_success="look"),
    gates("look", on_failure="mend"),
    agent("mend", max_visits=2, on_success="look"),
)


def begun(site: Site, *given: dict, stages=LOOK) -> Course:
    """With these gates, which have been tried on the base."""
    run = site.open_run(config=Config(gates=given, finds=()))
    add(site, run, "a", *stages)
    site.dispatch(run)
    course = Course(site, run)
    course.lead()
    return course


def states(course: Course):
    return course.site.states(course.run)["a"]


def told(course: Course) -> str:
    return course.site.scheduler.bus.messages(course.attempt.thread_id)[0].body or ""


def handed_in(course: Course, content: str) -> None:
    """The worker is done, and no leader has looked yet."""
    bus, token = course.claim()
    (course.worktree / "a.txt").write_text(content)
    bus.done(course.attempt.thread_id, token, body="done")


def waited_for_one_gate(course: Course) -> None:
    """A wait that is over while its first gate runs."""
    course.site.scheduler.reconcile(course.run, checks=False)
    ends = course.site.clock.now().monotonic_ms + 1000
    for _ in judge.checking(course.site.scheduler.desk, course.run, ends, staged=True):
        course.site.clock.advance(2)


def proofs(course: Course) -> dict[str, tuple[bool, str]]:
    found = course.visits()[0].found["proofs"]
    return {each["gate"]: (each["usable"], each["sentence"]) for each in found}


def test_a_command_that_is_missing_judges_nothing_and_that_is_said(site: Site):
    course = begun(site, {"name": "lint", "run": ["no-such-linter", "."]})
    ((usable, sentence),) = proofs(course).values()
    assert not usable
    assert "no-such-linter" in sentence
    course.work(a_txt="one\n")

    assert course.way() == [("write", "succeeded"), ("look", "skipped")]
    assert states(course) == "succeeded"
    assert "no gate could judge it" in str(course.attempt.details)


def test_a_missing_command_that_was_asked_for_by_name_is_somebodys_to_decide(site: Site):
    stages = (LOOK[0], gates("look", gates=("lint",), on_failure="mend"), LOOK[2])
    course = begun(site, {"name": "lint", "run": ["no-such-linter"]}, stages=stages)
    course.work(a_txt="one\n")

    assert course.way()[1:] == [("look", "error"), ("decision", "live")]
    assert course.visits()[-1].found["cause"] == "error"


def test_one_that_hangs_on_the_change_alone_has_found_a_failure(site: Site):
    hangs = {"name": "tests", "run": "! [ -e a.txt ] || exec sleep 60", "timeout_seconds": 0.3}
    course = begun(site, hangs)
    course.work(a_txt="one\n")

    assert course.way()[1:] == [("look", "failed"), ("mend", "live")]
    assert "tests:timed-out" in (
        course.site.scheduler.bus.messages(course.attempt.thread_id)[0].body or ""
    )


def test_what_a_gate_writes_and_deletes_is_put_back(site: Site):
    harms = "echo x >new.txt; echo y >>README.md; [ -e a.txt ] && rm a.txt; git add -A; true"
    course = begun(site, {"name": "lint", "run": harms})
    course.work(a_txt="one\n")

    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]
    head = str(course.attempt.head_commit)
    assert git(site.repository, "ls-tree", "--name-only", head).split() == ["README.md", "a.txt"]
    assert (
        git(site.repository, "diff", "--name-only", str(course.attempt.base_commit), head)
        == "a.txt"
    )


def test_what_a_gate_commits_has_no_part_in_what_is_accepted(site: Site):
    commits = f"if [ -e a.txt ]; then echo x >b.txt; git add -A; {GIT} commit -qm gate; fi"
    course = begun(site, {"name": "lint", "run": commits})
    course.work(a_txt="one\n")

    assert states(course) == "succeeded"
    head = str(course.attempt.head_commit)
    assert git(site.repository, "ls-tree", "--name-only", head).split() == ["README.md", "a.txt"]


def test_a_gate_that_takes_head_elsewhere_costs_no_worker_a_visit(site: Site):
    moves = "if [ -e a.txt ]; then git checkout -q --detach; ! grep -q bad a.txt; fi"
    course = begun(site, {"name": "lint", "run": moves})
    course.work(a_txt="bad\n")
    course.work(a_txt="good\n")

    ways = [
        ("write", "succeeded"),
        ("look", "failed"),
        ("mend", "succeeded"),
        ("look", "succeeded"),
    ]
    assert course.way() == ways
    assert states(course) == "succeeded"


def test_a_gate_that_removes_the_worktree_ends_the_attempt(site: Site):
    course = begun(site, {"name": "lint", "run": '[ ! -e a.txt ] || rm -rf "$PWD"'})
    course.work(a_txt="one\n")
    course.lead()

    assert [a.state for a in site.attempts(course.run, "a")] == ["lost"]
    assert states(course) == "backing_off"


def test_a_gate_that_breaks_the_index_is_somebodys_to_look_at(site: Site):
    breaks = '[ ! -e a.txt ] || echo broken >"$(git rev-parse --git-dir)/index"'
    course = begun(site, {"name": "lint", "run": breaks})
    course.work(a_txt="one\n")

    assert course.way()[1:] == [("look", "error"), ("decision", "live")]


def test_one_that_answers_differently_each_time_is_flaky_and_no_failure(site: Site, tmp_path: Path):
    flag = tmp_path / "flag"
    flaky = f"[ ! -e a.txt ] || [ -e '{flag}' ] || {{ touch '{flag}'; exit 1; }}"
    course = begun(site, {"name": "tests", "run": flaky})
    course.work(a_txt="one\n")

    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]
    assert "flaky" in str(course.visits()[-1].result)


def test_one_that_judges_nothing_is_none(site: Site):
    empty = {"name": "tests", "run": ["true"], "reads": "junit"}
    course = begun(site, empty)
    ((usable, _),) = proofs(course).values()
    assert not usable


def test_each_gate_may_be_longer_than_a_wait(site: Site):
    slow = "[ ! -e a.txt ] || sleep 0.6"
    course = begun(site, *({"name": n, "run": slow} for n in ("one", "two", "three")))
    handed_in(course, "one\n")
    for _ in range(3):
        waited_for_one_gate(course)

    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]
    assert states(course) == "succeeded"


def test_what_one_gate_writes_and_keeps_is_what_the_next_one_judges(site: Site):
    formats = {"name": "format", "run": "[ ! -e a.txt ] || echo good >a.txt", "writes": "keep"}
    course = begun(site, formats, {"name": "lint", "run": "! grep -qs bad a.txt"})
    course.work(a_txt="bad\n")

    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]
    assert git(site.repository, "show", f"{course.attempt.head_commit}:a.txt") == "good"


def test_what_a_gate_has_kept_stays_when_another_leader_goes_on(site: Site):
    formats = "[ ! -e a.txt ] || { sleep 0.6; echo good >a.txt; }"
    gate = {"name": "format", "run": formats, "writes": "keep"}
    course = begun(site, gate, {"name": "lint", "run": "! grep -qs bad a.txt"})
    handed_in(course, "bad\n")
    waited_for_one_gate(course)
    assert course.way() == [("write", "succeeded"), ("look", "live")]
    course.lead()

    assert course.way() == [("write", "succeeded"), ("look", "succeeded")]
    assert git(site.repository, "show", f"{course.attempt.head_commit}:a.txt") == "good"


def test_deleted_tests_are_told_and_refused_where_that_is_asked(site: Site):
    case = '<testcase classname="c" name="%s"/>'
    report = (
        f"printf '<testsuite>' >{{report}}; for t in t_*; do printf '{case}' $t >>{{report}};"
        " done; printf '</testsuite>' >>{report}"
    )
    for name in ("t_one", "t_two"):
        (site.repository / name).write_text("x\n")
    git(site.repository, "add", "-A")
    git(site.repository, "commit", "-qm", "Tests")
    gate = {"name": "tests", "run": report, "reads": "junit", "min_tests": "base"}
    course = begun(site, gate)
    (course.worktree / "t_two").unlink()
    course.work(a_txt="one\n")

    assert course.way()[1:] == [("look", "failed"), ("mend", "live")]
    assert "1 test ran, 2 at the base" in told(course)
