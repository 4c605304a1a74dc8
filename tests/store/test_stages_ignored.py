"""Ignored files that gates see and no commit has: told of where workers have made them."""

import pytest

from inbox_orch.orch.attempts.rows import details_of
from inbox_orch.orch.cli.parts.visits import visit_blocks
from inbox_orch.orch.cli.report import _for_a_pipe as for_a_pipe
from inbox_orch.orch.cli.report import _for_people as for_people
from inbox_orch.orch.pictures.page import page
from inbox_orch.orch.runs.config import Config, Setup
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages import unseen
from inbox_orch.orch.stages.caches import is_cache
from inbox_orch.shared.shell.blocks import plain
from support.runs import Site, commit
from support.stages import Course, add, agent, gates, review

STAGES = (
    agent("write", on_success="look"),
    gates("look", run="test -e gen.py && echo x >>made.dat", on_failure="mend"),
    agent("mend", max_visits=2, on_success="look"),
)


def begun(site: Site, ignored: str, **config) -> Course:
    commit(site.repository, ".gitignore", ignored)
    run = site.open_run(config=Config(finds=(), **config))
    add(site, run, "a", *STAGES)
    site.dispatch(run)
    return Course(site, run)


def said(course: Course) -> str | None:
    assert course.site.states(course.run) == {"a": "succeeded"}
    return details_of(course.attempt).ignored


def test_a_gate_that_passes_with_what_a_worker_has_left_out_is_told_of(site: Site, monkeypatch):
    notices: list[str] = []
    monkeypatch.setattr(site.scheduler.desk.database, "notice", notices.append)
    course = begun(site, "gen.py\nlib/\n__pycache__/\nmade.dat\n")
    (course.worktree / "lib").mkdir()
    for name in ("gen.py", "lib/x.py", "__pycache__/a.pyc"):
        path = course.worktree / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("1")
    course.work(a_txt="one\n")

    assert said(course) == (
        "2 ignored files were there when gates ran, and not in the commit: gen.py, lib/"
    )
    assert any("task a: 2 ignored files were there" in line for line in notices)
    shown = site.scheduler.show_task(course.run, "a")
    (block,) = visit_blocks("a/1", shown.attempts[0], shown.visits[shown.attempts[0].id])
    assert "ignored\t2 ignored files were there when gates ran" in plain(block)
    report = site.scheduler.report(course.run, most=9)
    assert f"a/1: {said(course)}\n" in [plain(each) for each in for_people(report)]
    assert "ignored a/1\t2 ignored files" in "".join(map(plain, for_a_pipe(report)))
    assert "a/1: 2 ignored files" in page(report)


def test_who_reviews_is_told_of_it_too(site: Site):
    commit(site.repository, ".gitignore", "gen.py\nmade.dat\n")
    config = Config(finds=(), roles={"reviewer": Role("reviewers")})
    run = site.open_run(config=config)
    look = STAGES[1]._replace(on_success="judge")
    add(site, run, "a", STAGES[0], look, STAGES[2], review("judge", on_failure="mend"))
    site.dispatch(run)
    course = Course(site, run)
    (course.worktree / "gen.py").write_text("1")
    course.work(a_txt="one\n")
    assert "1 ignored file was there when gates ran, and not in the commit: gen.py." in (
        course.text()
    )


def test_what_set_up_has_made_and_what_gates_make_is_not_told(site: Site):
    setup = Setup("echo 1 >gen.py; mkdir lib; echo 1 >lib/x.py")
    course = begun(site, "gen.py\nlib/\nmade.dat\n", setup=setup)
    course.work(a_txt="one\n")
    assert said(course) is None


def test_what_a_gate_has_made_before_a_repair_is_not_the_worker_s(site: Site):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="echo x >>made.dat; ! grep bad a.txt", on_failure="mend"),
        agent("mend", max_visits=2, on_success="look"),
    )
    commit(site.repository, ".gitignore", "made.dat\n")
    run = site.open_run(config=Config(finds=()))
    add(site, run, "a", *stages)
    site.dispatch(run)
    course = Course(site, run)
    course.work(a_txt="bad\n")
    course.work(a_txt="good\n")
    assert said(course) is None


def test_what_set_up_has_made_and_a_worker_has_changed_is_told(site: Site):
    course = begun(site, "gen.py\nmade.dat\n", setup=Setup("echo 1 >gen.py"))
    (course.worktree / "gen.py").write_text("another\n")
    course.work(a_txt="one\n")
    assert "1 ignored file was there when gates ran" in str(said(course))


def test_a_leader_that_goes_on_with_a_visit_does_not_look_again(site: Site, tmp_path):
    """By then the gates of the one that is gone may have made some."""
    course = begun(site, "made.dat\n")
    course.work(a_txt="one\n")
    (begun_by_another,) = (v for v in course.visits() if v.stage == "look")
    assert begun_by_another.found["ignored"] == []
    assert unseen.before(begun_by_another, (), str(tmp_path / "nowhere")) == {"ignored": []}


@pytest.mark.parametrize(
    "path, cache",
    [
        *[("src/__pycache__/", True), ("node_modules/", True), ("a/b.pyc", True)],
        *[("x.egg-info/", True), ("pkg.egg-info/SOURCES.txt", True), (".coverage.host.1", True)],
        *[("gen.py", False), ("data/", False), (".env", False), ("rebuild/x", False)],
    ],
)
def test_caches_are_known_by_their_names(path: str, cache: bool):
    assert is_cache(path) is cache
