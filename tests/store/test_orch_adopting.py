"""Late work is refused, kept, and can be adopted: then it is verified as any other work."""

import functools
import os
import shutil
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import adopt, judge, late
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.runs.config import Config
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.runs import Site, branches, commit, git, lock_files, only_for, worktree_paths


@pytest.fixture
def run(site: Site):
    return site.open_run()


def late_head(site: Site, attempt) -> str:
    """Where the late work of an attempt is kept; "" when there is none."""
    refs = git(site.repository, "for-each-ref", "--format=%(objectname)", late_ref(attempt))
    return refs.strip()


def late_ref(attempt) -> str:
    return f"refs/orch/late/{attempt.id}"


def kinds(site: Site, run) -> list[str]:
    """Every event of the run."""
    with site.scheduler.database.snapshot() as snapshot:
        rows = snapshot.all("SELECT kind FROM event WHERE run_id = ? ORDER BY seq", (run.id,))
        return [row[0] for row in rows]


def failed(site: Site, run, key: str = "a", *, commits: bool = True, **options):
    """A task whose only attempt has failed, with a commit; the dispatched item."""
    site.add(run, key, max_attempts=1, **options)
    item = site.dispatch(run)[key]
    if commits:
        commit(item["worktree"], f"{key}.txt", "text")
    site.fail(item)
    site.scheduler.reconcile(run)
    assert site.task(run, key).state == "failed"
    return item


# -- what came too late ----------------------------------------------------------------------


def test_a_silent_workers_late_report_is_refused_and_its_commits_are_kept(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    tokens = []
    for _ in range(3):  # three deliveries, each to a worker that says nothing for too long
        tokens.append(site.claim(item, lease_seconds=10))
        site.clock.advance(20)
        site.scheduler.reconcile(run)
    attempt = site.attempts(run, "a")[-1]
    assert attempt.state == "lost"
    head = commit(item["worktree"], "late.txt", "late")

    for token in tokens:
        with refused("lease_lost") as failure:
            site.worker.done(item["thread"], token, body="here it is")
        assert failure.value.exit_code == 7
    done = site.scheduler.reconcile(run)

    assert done.late == 1
    assert late_head(site, attempt) == head
    assert site.attempts(run, "a")[-1].state == "lost"
    assert attempt.branch in branches(site.repository)
    details = site.attempts(run, "a")[-1].as_json()["details"]
    assert details["late"] == {"head": head, "commits": 1, "ref": late_ref(attempt)}


def test_each_new_late_head_is_told_once(site: Site, run):
    item = failed(site, run, commits=False)
    assert kinds(site, run).count("late_work_kept") == 0

    for number in (1, 2):
        head = commit(item["worktree"], f"late{number}.txt", "late")
        assert site.scheduler.reconcile(run).late == 1
        assert late_head(site, site.attempts(run, "a")[-1]) == head
        cursor = site.scheduler.status(run).next_cursor
        assert site.scheduler.reconcile(run).late == 0
        assert site.leader().reconcile(run).late == 0
        assert site.scheduler.status(run).next_cursor == cursor
        assert kinds(site, run).count("late_work_kept") == number
    assert site.scheduler.doctor(verify=True).problems == 0


def test_no_git_is_started_where_nothing_came_late(site: Site, run, monkeypatch):
    failed(site, run)
    item = failed(site, run, "b")
    git(item["worktree"], "checkout", "-q", "--detach")
    git(site.repository, "pack-refs", "--all")
    site.scheduler.reconcile(run)

    def started(*arguments: object, **options: object) -> None:
        raise AssertionError(f"git was started: {arguments}")

    monkeypatch.setattr("inbox_orch.orch.git.heads.git", started)
    assert late.keep_late_work(site.leader().desk, run) == 0


@pytest.mark.parametrize("code", ["disk_full", "git_failed", "read_only"])
def test_late_work_that_git_cannot_keep_now_holds_up_no_other_and_is_kept_later(
    site: Site, run, monkeypatch: pytest.MonkeyPatch, code: str
):
    ended = {key: failed(site, run, key, commits=False) for key in ("a", "b")}
    late = {key: commit(item["worktree"], "late.txt", key) for key, item in ended.items()}
    first, second = (site.attempts(run, key)[0] for key in ("a", "b"))
    keep = Repository.keep

    def refuse(repository: Repository, ref: str, head: str) -> None:
        if ref == late_ref(first):
            raise InboxOrchError(code, "not now")
        keep(repository, ref, head)

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "keep", refuse)
        assert site.scheduler.reconcile(run).late == 1
    assert (late_head(site, first), late_head(site, second)) == ("", late["b"])

    assert site.scheduler.reconcile(run).late == 1
    assert late_head(site, first) == late["a"]


def test_late_work_on_another_branch_or_none_is_kept(site: Site, run):
    item = failed(site, run, commits=False)
    git(item["worktree"], "switch", "-q", "-c", "elsewhere")
    first = commit(item["worktree"], "one.txt", "one")
    site.scheduler.reconcile(run)
    attempt = site.attempts(run, "a")[-1]
    assert late_head(site, attempt) == first

    git(item["worktree"], "checkout", "-q", "--detach")
    second = commit(item["worktree"], "two.txt", "two")
    git(site.repository, "branch", "-q", "-D", "elsewhere")
    site.scheduler.reconcile(run)
    assert late_head(site, attempt) == second


def test_going_back_is_no_late_work(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "one.txt", "one")
    site.deliver(item, "two.txt")
    site.scheduler.reconcile(run)
    git(item["worktree"], "reset", "-q", "--hard", "HEAD~1")

    assert site.scheduler.reconcile(run).late == 0
    assert late_head(site, site.attempts(run, "a")[-1]) == ""


def test_a_damaged_worktree_does_not_keep_others_late_work_from_being_kept(site: Site, run):
    first, second = failed(site, run, commits=False), failed(site, run, "b", commits=False)
    Path(first["worktree"], ".git").write_text("gitdir: /nowhere\n")
    commit(second["worktree"], "late.txt", "late")

    assert site.scheduler.reconcile(run).late == 1


# -- adopting --------------------------------------------------------------------------------


def test_an_adopted_attempt_is_its_tasks_accepted_work(site: Site, run):
    item = failed(site, run)
    site.add(run, "next", depends_on=["a"])
    head = git(item["worktree"], "rev-parse", "HEAD")
    assert site.standing(run, "next").state == "unreachable"

    adopted = site.scheduler.adopt(run, "a")

    task = site.task(run, "a")
    assert (task.state, task.accepted_head) == ("succeeded", head)
    assert task.accepted_attempt == item["id"] == adopted["attempt"]["id"]
    assert adopted["source"] == "worktree"
    attempt = site.attempts(run, "a")[-1]
    assert (attempt.state, attempt.head_commit, attempt.commits_ahead) == ("failed", head, 1)
    assert git(site.repository, "rev-parse", f"refs/orch/heads/{attempt.id}") == head
    assert site.standing(run, "next").state == "ready"
    assert site.dispatch(run)["next"]["base_commit"] == head
    assert site.scheduler.doctor(verify=True).problems == 0


def test_late_work_is_adopted_when_its_worktree_is_gone(site: Site, run):
    item = failed(site, run)
    head = git(item["worktree"], "rev-parse", "HEAD")
    git(site.repository, "worktree", "remove", "-f", "-f", item["worktree"])
    git(site.repository, "branch", "-q", "-D", item["branch"])

    adopted = site.scheduler.adopt(run, "a")

    assert (adopted["source"], site.task(run, "a").accepted_head) == ("late", head)


def test_a_task_that_backs_off_is_adopted_and_has_no_further_attempt(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "a.txt", "text")
    site.fail(item)
    site.scheduler.reconcile(run)
    assert site.standing(run, "a").state == "backing_off"

    site.scheduler.adopt(run, "a")

    site.clock.advance(3600)
    assert site.dispatch(run) == {}
    assert site.scheduler.reconcile(run).outcome == "succeeded"


def test_rejected_work_is_adopted_once_it_has_been_put_right(site: Site, run):
    site.add(run, "a", checks=["test -f wanted.txt"])
    item = site.dispatch(run)["a"]
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    assert site.attempts(run, "a")[-1].state == "rejected"
    with refused("work_rejected") as failure:
        site.scheduler.adopt(run, "a")
    assert failure.value.exit_code == 11
    assert failure.value.data["checks"][0]["exit_status"] == 1
    assert site.task(run, "a").state == "pending"

    head = commit(item["worktree"], "wanted.txt", "text")
    site.scheduler.adopt(run, "a")

    assert site.task(run, "a").accepted_head == head
    assert site.open_intents(run) == []


def test_checks_of_work_whose_worktree_is_gone_run_in_a_temporary_one(site: Site, run):
    command = "test -f a.txt && git symbolic-ref -q HEAD; test $? = 1 && pwd && echo x >made.txt"
    item = failed(site, run, checks=[command])
    git(site.repository, "worktree", "remove", "-f", "-f", item["worktree"])
    before = branches(site.repository), worktree_paths(site.repository)

    adopted = site.scheduler.adopt(run, "a")

    assert adopted["checked"] is True
    assert (branches(site.repository), worktree_paths(site.repository)) == before
    assert lock_files(site.repository / ".git", site.worktrees) == []
    assert os.listdir(site.worktrees / run.name) == []
    (check,) = adopted["attempt"]["details"]["checks"]
    with site.worker.artifacts.open(check["artifact_sha256"]) as file:
        assert file.read().decode().strip() == item["worktree"] + ".adopt"


def test_a_failed_check_leaves_everything_as_it_was(site: Site, run):
    item = failed(site, run, checks=["exit 1"])
    git(site.repository, "worktree", "remove", "-f", "-f", item["worktree"])
    before = site.task(run, "a")

    with refused("work_rejected"):
        site.scheduler.adopt(run, "a")

    assert site.task(run, "a") == before
    assert worktree_paths(site.repository) == set()
    assert site.open_intents(run) == []
    assert site.scheduler.adopt(run, "a", checks=False)["checked"] is False


def test_a_dirty_worktree_is_not_adopted(site: Site, run):
    item = failed(site, run)
    Path(item["worktree"], "new.txt").write_text("forgotten")

    with refused("work_rejected") as failure:
        site.scheduler.adopt(run, "a")

    assert failure.value.data["dirty_paths"] == ["new.txt"]


def test_what_was_copied_into_the_worktree_is_no_dirt_of_the_workers(site: Site):
    (site.repository / ".env").write_text("COLOUR=blue\n")
    run = site.open_run(config=Config(copy=(".env",)), base="main")
    item = failed_by_commit_of_one_file(site, run)
    assert git(item["worktree"], "status", "--porcelain") == "?? .env"

    site.scheduler.adopt(run, "a")

    assert site.task(run, "a").state == "succeeded"


def failed_by_commit_of_one_file(site: Site, run):
    """As `failed`, but for files that the worker has not made."""
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    Path(item["worktree"], "a.txt").write_text("text")
    git(item["worktree"], "add", "a.txt")
    git(item["worktree"], "commit", "-q", "-m", "Only this")
    site.fail(item)
    site.scheduler.reconcile(run)
    return item


def test_an_attempt_without_a_commit_is_not_adopted_unless_that_is_allowed(site: Site, run):
    failed(site, run, commits=False)
    failed(site, run, "b", commits=False, allow_empty=True)

    with refused("work_rejected") as failure:
        site.scheduler.adopt(run, "a")
    site.scheduler.adopt(run, "b")

    assert failure.value.data["reason"] == "empty: no commit on top of the base"
    assert site.task(run, "b").state == "succeeded"


def test_nothing_is_adopted_beside_a_live_attempt(site: Site, run):
    site.add(run, "a")
    first = site.dispatch(run)["a"]
    commit(first["worktree"], "a.txt", "text")
    site.fail(first)
    site.scheduler.reconcile(run)
    site.clock.advance(300)
    site.dispatch(run)

    with refused("live_attempt") as failure:
        site.scheduler.adopt(run, "a", number=1)

    assert failure.value.exit_code == 9
    assert site.task(run, "a").state == "active"


def test_an_attempt_that_begins_while_the_checks_run_is_not_overtaken(site: Site, run, monkeypatch):
    command = (
        f"touch '{site.folder}/began'; while ! test -e '{site.folder}/go'; do sleep 0.05; done"
    )
    site.add(run, "a", checks=[command])
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "a.txt", "text")
    site.fail(item)
    site.scheduler.reconcile(run)
    site.clock.advance(300)
    other = site.leader()
    original = functools.partial(judge.run_checks, other.desk)

    def interrupted(*arguments, **options):
        site.dispatch(run)
        return original(*arguments, **options)

    only_for(monkeypatch, other, judge, "run_checks", interrupted)

    with refused("busy"):
        other.adopt(run, "a")

    assert site.task(run, "a").state == "active"
    assert site.open_intents(run) == []


def test_the_newest_attempt_with_commits_is_taken(site: Site, run):
    site.add(run, "a")
    for number in (1, 2, 3):
        item = site.dispatch(run)["a"]
        if number < 3:
            head = commit(item["worktree"], f"{number}.txt", "text")
        site.fail(item)
        site.scheduler.reconcile(run)
        site.clock.advance(300)

    adopted = site.scheduler.adopt(run, "a")

    assert (adopted["attempt"]["number"], adopted["attempt"]["head_commit"]) == (2, head)
    with refused("invalid_state"):
        site.scheduler.adopt(run, "a", number=1)


def test_what_was_never_there_cannot_be_adopted(site: Site, run):
    site.add(run, "a")
    site.add(run, "notes", worktree=False)
    with refused("not_found"):
        site.scheduler.adopt(run, "a")
    with refused("not_found"):
        site.scheduler.adopt(run, "b")
    with refused("invalid_state"):
        site.scheduler.adopt(run, "notes")


def test_a_worktree_that_was_lost_is_never_taken_for_done(site: Site, run):
    """Not even while the rest of its folder is still there."""
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    head = commit(item["worktree"], "a.txt", "text")
    os.unlink(Path(item["worktree"], ".git"))
    site.done(item)
    site.scheduler.reconcile(run)
    attempt = site.attempts(run, "a")[-1]
    assert (attempt.state, late_head(site, attempt)) == ("lost", head)
    shutil.rmtree(item["worktree"])

    adopted = site.scheduler.adopt(run, "a")

    assert adopted["attempt"]["head_commit"] == head


def test_what_is_kept_is_what_was_adopted_also_when_another_leader_was_quicker(
    site: Site, run, monkeypatch
):
    item = failed(site, run)
    slow = site.leader()
    check = adopt._require_sound
    adopted = []

    def check_and_be_late(*arguments):
        check(*arguments)
        monkeypatch.undo()  # the quicker one is not late itself
        Path(item["worktree"], "a.txt").write_text("better")
        git(item["worktree"], "commit", "--quiet", "--amend", "--all", "--no-edit")
        adopted.append(site.scheduler.adopt(run, "a")["attempt"]["head_commit"])

    monkeypatch.setattr(adopt, "_require_sound", check_and_be_late)
    with refused("invalid_state"):
        slow.adopt(run, "a")

    (attempt,) = site.attempts(run, "a")
    assert site.task(run, "a").accepted_head == adopted[0]
    assert git(site.repository, "rev-parse", f"refs/orch/heads/{attempt.id}") == adopted[0]


def before_its_checks(monkeypatch, scheduler, happening) -> None:
    """Let something happen when an adoption is written down, and before its first check."""
    run_checks = functools.partial(judge.run_checks, scheduler.desk)

    def happen_first(*arguments, **options):
        happening()
        return run_checks(*arguments, **options)

    only_for(monkeypatch, scheduler, judge, "run_checks", happen_first)


def test_what_somebody_is_adopting_nobody_else_adopts(site: Site, run, monkeypatch):
    failed(site, run, checks=["true"])
    first = site.leader()

    def adopt_too():
        with refused("busy"):
            site.scheduler.adopt(run, "a")

    before_its_checks(monkeypatch, first, adopt_too)

    assert first.adopt(run, "a")["checked"] is True
    assert site.open_intents(run) == []


def test_an_adoption_gives_up_when_the_task_is_at_work_again(site: Site, run, monkeypatch):
    failed(site, run, checks=["true"])
    first = site.leader()

    def work_on():
        site.scheduler.retry(run, ["a"])
        site.dispatch(run, "a")

    before_its_checks(monkeypatch, first, work_on)
    with refused("busy"):
        first.adopt(run, "a")

    assert site.states(run) == {"a": "active"}
    assert [a.state for a in site.attempts(run, "a")] == ["failed", "offered"]
