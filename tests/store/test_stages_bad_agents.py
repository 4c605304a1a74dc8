"""What agents of a stage may do to their worktree, and what becomes of it: the next stage, a
decision, or the end of the attempt; never a run that stands still, nor work that was not judged."""

import itertools
import shutil
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import harvesting
from inbox_orch.orch.git import harvest, rewriting, snapshots
from inbox_orch.orch.stages.decide import Answered
from support.runs import Site, commit, git
from support.stages import Course, add, agent, gates

WRITE_AGAIN = agent("write", max_visits=3, on_failure="write")


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def course(site: Site, run):
    return Course(site, run)


def begun(site: Site, run, *stages, **options):
    add(site, run, "a", *(stages or (WRITE_AGAIN,)), **options)
    site.dispatch(run)


def is_written_again(site: Site, run, course: Course, reason: str):
    """The first visit did not count, for that reason; the next worker finds all as it was."""
    assert course.way() == [("write", "failed"), ("write", "live")]
    assert reason in str(course.visits()[1].reason)
    assert git(course.worktree, "status", "--porcelain") == ""
    assert git(course.worktree, "rev-parse", "HEAD") == course.attempt.base_commit
    branch = git(course.worktree, "symbolic-ref", "HEAD")
    assert branch == f"refs/heads/{course.attempt.branch}"
    course.work(a_txt="one\n")
    assert site.states(run) == {"a": "succeeded"}
    assert git(site.repository, "show", f"{course.attempt.head_commit}:a.txt") == "one"
    assert site.scheduler.doctor(verify=True).problems == 0


def test_what_is_undone_is_no_change(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -s bad a.txt", on_failure="mend"),
        agent("mend", max_visits=2, on_success="look"),
    )
    begun(site, run, *stages)
    course.work(a_txt="bad\n")
    bus, token = course.claim()
    (course.worktree / "a.txt").unlink()
    bus.done(course.attempt.thread_id, token, body="undone")
    course.lead()

    assert course.way()[2:] == [("mend", "failed"), ("decision", "live")]
    assert "as it was at the beginning" in str(course.visits()[3].reason)


def test_one_that_alternates_stops_as_oscillating(site: Site, run, course: Course):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -s bad a.txt", on_failure="mend"),
        agent("mend", max_visits=6, on_success="look"),
    )
    begun(site, run, *stages)
    for content in ("bad one\n", "bad two\n", "bad one\n"):
        course.work(a_txt=content)

    assert course.visits()[-1].found["cause"] == "oscillating"
    assert site.states(run) == {"a": "blocked"}


def test_a_merge_in_progress_is_ended(site: Site, run, course: Course):
    begun(site, run)
    worktree = course.worktree
    git(worktree, "checkout", "--quiet", "-b", "other")
    commit(worktree, "README.md", "theirs\n")
    git(worktree, "checkout", "--quiet", str(course.attempt.branch))
    commit(worktree, "README.md", "ours\n")
    git(worktree, "merge", "other", status=1)
    course.work()

    is_written_again(site, run, course, "merge")


def test_a_detached_head_is_put_back(site: Site, run, course: Course):
    begun(site, run)
    git(course.worktree, "checkout", "--quiet", "--detach")
    course.work(a_txt="loose\n")

    is_written_again(site, run, course, "detached")


def test_a_reviewer_that_takes_head_elsewhere_costs_no_worker_a_visit(site: Site, run):
    stages = (
        agent("write", on_success="read"),
        agent("read", writes=False, on_success="more"),
        agent("more"),
    )
    course = Course(site, run)
    begun(site, run, *stages)
    course.work(a_txt="one\n")
    git(course.worktree, "checkout", "--quiet", "--detach")
    course.work()
    course.work(a_txt="two\n")

    assert course.way() == [(name, "succeeded") for name in ("write", "read", "more")]
    assert site.states(run) == {"a": "succeeded"}


class Died(BaseException):
    """As if the leader were killed."""


def test_a_leader_that_dies_once_all_is_put_back_does_not_change_how_it_ended(
    site: Site, run, course: Course, monkeypatch: pytest.MonkeyPatch
):
    stages = (
        agent("write", on_success="look"),
        gates("look", run="! grep -s bad a.txt", on_failure="mend"),
        agent("mend", max_visits=3, on_success="look", on_failure="mend"),
    )
    begun(site, run, *stages)
    course.work(a_txt="bad\n")
    git(course.worktree, "checkout", "--quiet", "--detach")
    genuine = snapshots.restore

    def dies(*given):
        genuine(*given)
        raise Died

    monkeypatch.setattr(snapshots, "restore", dies)
    with pytest.raises(Died):
        course.work(a_txt="good\n")
    monkeypatch.setattr(snapshots, "restore", genuine)
    course.lead()

    assert course.way()[2:] == [("mend", "failed"), ("mend", "live")]
    assert "detached" in str(course.visits()[3].reason)
    assert course.visits()[3].found["put_back"] == ["a.txt"]


def test_a_branch_that_was_deleted_is_there_again(site: Site, run, course: Course):
    begun(site, run)
    git(course.worktree, "update-ref", "-d", "HEAD")
    course.work(a_txt="loose\n")

    is_written_again(site, run, course, "HEAD names no commit")


def test_work_on_another_base_does_not_count(site: Site, run, course: Course):
    begun(site, run)
    worktree = course.worktree
    git(worktree, "checkout", "--quiet", "--orphan", "anew")
    commit(worktree, "a.txt", "from nothing\n")
    git(worktree, "branch", "--quiet", "-M", "anew", str(course.attempt.branch))
    course.work()

    is_written_again(site, run, course, "does not build on the base")


def is_asked(site: Site, run, course: Course, reason: str):
    """What nobody can keep is somebody's to decide, and whoever goes on is told of it."""
    assert course.way() == [("write", "error"), ("decision", "live")]
    assert reason in str(course.visits()[1].reason)
    site.scheduler.answer(run, "a", body="", decided=Answered("continue"))
    course.lead()
    text = site.scheduler.bus.messages(course.attempt.thread_id)[0].body or ""
    assert reason in text


def is_accepted(site: Site, run, course: Course):
    course.work(a_txt="two\n")
    assert site.states(run) == {"a": "succeeded"}
    assert git(site.repository, "show", f"{course.attempt.head_commit}:a.txt") == "two"


def test_a_repository_within_is_for_somebody_to_take_out(site: Site, run, course: Course):
    begun(site, run)
    inner = course.worktree / "inner"
    inner.mkdir()
    git(inner, "init", "--quiet")
    commit(inner, "b.txt", "inner\n")
    course.work(a_txt="one\n")

    is_asked(site, run, course, "inner is a repository of its own")
    shutil.rmtree(inner)
    is_accepted(site, run, course)


def test_an_index_lock_that_is_left_is_for_somebody_to_take_away(site: Site, run, course: Course):
    begun(site, run)
    lock = Path(git(course.worktree, "rev-parse", "--absolute-git-dir"), "index.lock")
    lock.touch()
    course.work(a_txt="one\n")

    is_asked(site, run, course, "index.lock is there")
    lock.unlink()
    is_accepted(site, run, course)


def gone(path: Path):
    shutil.rmtree(path)


def without_git(path: Path):
    (path / ".git").unlink()


def with_another_git(path: Path):
    (path / ".git").unlink()
    git(path, "init", "--quiet")


@pytest.mark.parametrize("harm", [gone, without_git, with_another_git])
def test_what_is_no_worktree_of_ours_any_more_ends_the_attempt(
    site: Site, run, course: Course, harm
):
    begun(site, run)
    commit(course.worktree, "a.txt", "one\n")
    bus, token = course.claim()
    harm(course.worktree)
    bus.done(course.attempt.thread_id, token, body="done")
    course.lead()

    (first,) = site.attempts(run, "a")
    assert (first.state, site.states(run)) == ("lost", {"a": "backing_off"})
    kept = f"refs/orch/late/{first.id}"
    assert git(site.repository, "show", f"{kept}:a.txt") == "one"
    site.clock.advance(60)
    site.dispatch(run)
    course.work(a_txt="two\n")
    assert site.states(run) == {"a": "succeeded"}


def other_files(path: Path):
    (path / ".git").write_text("gitdir: nowhere\n")


def no_index(path: Path):
    Path(git(path, "rev-parse", "--absolute-git-dir"), "index").write_text("no index at all")


def no_head(path: Path):
    Path(git(path, "rev-parse", "--absolute-git-dir"), "HEAD").write_text("no head\n")


@pytest.mark.parametrize("harm", [other_files, no_index, no_head])
def test_what_git_makes_no_sense_of_is_somebodys_to_look_at(site: Site, run, course: Course, harm):
    begun(site, run)
    bus, token = course.claim()
    harm(course.worktree)
    bus.done(course.attempt.thread_id, token, body="done")
    course.lead()

    assert course.way() == [("write", "error"), ("decision", "live")]
    assert course.visits()[1].reason
    site.scheduler.answer(run, "a", body="", decided=Answered("abandon"))
    course.lead()
    assert site.states(run) == {"a": "failed"}


def test_what_is_written_on_in_the_background_is_somebodys_to_end(
    site: Site, run, course: Course, monkeypatch: pytest.MonkeyPatch
):
    """A process that writes on comes at any moment; here at those that count: once what was left
    is committed, and once files are put back."""
    begun(site, run)
    written, numbers = course.worktree / "log.txt", itertools.count()

    def then_it_writes(genuine):
        def called(*given, **named):
            done = genuine(*given, **named)
            written.write_text("line\n" * next(numbers))
            return done

        return called

    with monkeypatch.context() as patched:
        for module, name in ((harvest, "commit_left"), (rewriting, "carry_out")):
            patched.setattr(module, name, then_it_writes(getattr(module, name)))
        course.work(a_txt="one\n")

    is_asked(site, run, course, "log.txt was changed in")
    is_accepted(site, run, course)
    assert next(numbers) == harvesting.ROUNDS + 1


def test_what_git_throws_away_in_between_is_not_missed(site: Site, run, course: Course):
    more = agent("more", on_failure="more", max_visits=3)
    begun(site, run, agent("write", on_success="more"), more)
    course.work(a_txt="one\n")
    git(site.repository, "reflog", "expire", "--expire=all", "--expire-unreachable=all", "--all")
    git(site.repository, "gc", "--prune=now", "--quiet")
    (course.worktree / "b.txt").write_text("b\n")
    course.fail()
    git(site.repository, "gc", "--prune=now", "--quiet")
    course.work(a_txt="two\n")
    assert course.way() == [("write", "succeeded"), ("more", "failed"), ("more", "succeeded")]
    assert site.states(run) == {"a": "succeeded"}
    assert site.scheduler.doctor(verify=True).problems == 0
