"""What a worker says is done is looked at: accepted, rejected with the reason, or lost."""

import functools
import json
import os
import shutil
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import fold, verify
from support.buses import refused
from support.runs import Site, commit, git, make_repository, only_for

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def item(site: Site, run):
    """A dispatched attempt at task `a`."""
    site.add(run, "a")
    return site.dispatch(run)["a"]


def decided(site: Site, run, key: str = "a"):
    """The newest attempt after reconciling twice; the second time changes nothing."""
    site.scheduler.reconcile(run)
    events = site.scheduler.status(run).next_cursor
    again = site.scheduler.reconcile(run)
    assert (again.folded, again.verified, again.finished_intents) == (0, 0, 0)
    assert site.scheduler.status(run).next_cursor == events
    return site.attempts(run, key)[-1]


def test_a_clean_worktree_with_a_commit_is_accepted(site: Site, run, item):
    head = site.deliver(item, "a.txt")

    attempt = decided(site, run)

    assert (attempt.state, attempt.head_commit, attempt.commits_ahead) == ("succeeded", head, 1)
    assert site.task(run, "a").accepted_head == head
    assert site.standing(run, "a").state == "succeeded"
    assert git(site.repository, "rev-parse", f"refs/orch/heads/{attempt.id}") == head


def test_no_commit_is_rejected_as_empty(site: Site, run, item):
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.reason == "empty: no commit on top of the base"
    assert site.standing(run, "a").state == "backing_off"


def test_a_file_whose_name_differs_in_letters_alone_has_to_be_committed_as_well(
    site: Site, run, item
):
    git(site.repository, "config", "core.ignoreCase", "true")
    commit(item["worktree"], "a.txt", "text\n")
    Path(item["worktree"], "A.TXT").write_text("another file\n")
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, attempt.reason) == ("rejected", "dirty: not committed: A.TXT")


def test_no_commit_is_accepted_where_that_is_allowed(site: Site, run):
    site.add(run, "a", allow_empty=True)
    site.done(site.dispatch(run)["a"])

    assert decided(site, run).state == "succeeded"


@pytest.mark.parametrize("config", [None, "status.showUntrackedFiles=no"])
def test_what_is_not_committed_is_rejected_with_the_files(site: Site, run, item, config):
    if config:
        git(site.repository, "config", *config.split("="))
    commit(item["worktree"], "a.txt", "text")
    Path(item["worktree"], "new.txt").write_text("forgotten")
    Path(item["worktree"], "README.md").write_text("changed")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.as_json()["details"]["dirty_paths"] == ["README.md", "new.txt"]
    assert attempt.reason == "dirty: not committed: README.md, new.txt"


def test_a_forgotten_path_that_is_not_utf8_is_told_escaped(site: Site, run, item):
    commit(item["worktree"], "a.txt", "text")
    Path(item["worktree"], b"caf\xe9.txt".decode("utf-8", "surrogateescape")).write_text("x")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.as_json()["details"]["dirty_paths"] == ["caf\\xe9.txt"]
    assert attempt.reason == "dirty: not committed: caf\\xe9.txt"


def test_dirt_in_a_submodule_is_dirt(site: Site, run):
    library = site.folder / "library"
    git(site.folder, "init", "-q", str(library))
    commit(library, "lib.txt", "lib")
    allow = ("-c", "protocol.file.allow=always")
    git(site.repository, *allow, "submodule", "--quiet", "add", str(library), "lib")
    git(site.repository, "commit", "-q", "-m", "Add a submodule")
    git(site.repository, "config", "diff.ignoreSubmodules", "all")
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    git(item["worktree"], *allow, "submodule", "--quiet", "update", "--init")
    commit(item["worktree"], "a.txt", "text")
    Path(item["worktree"], "lib", "lib.txt").write_text("changed")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.reason == "dirty: not committed: lib"


@pytest.fixture
def with_library(site: Site, run) -> tuple[dict, Path, Path]:
    """An attempt whose worktree has a submodule checked out: (attempt, its folder, its remote)."""
    source = make_repository(site.folder / "source")
    library = site.folder / "library.git"
    git(site.folder, "clone", "-q", "--bare", str(source), str(library))
    git(site.repository, *ALLOW, "submodule", "--quiet", "add", str(library), "lib")
    git(site.repository, "commit", "-q", "-m", "Add a submodule")
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    git(item["worktree"], *ALLOW, "submodule", "--quiet", "update", "--init")
    return item, Path(item["worktree"], "lib"), library


def hand_in_the_submodule(site: Site, item: dict, lib: Path) -> None:
    commit(lib, "own.txt", "only here\n")
    git(item["worktree"], "commit", "-q", "-a", "-m", "Take the library's newest")
    site.done(item)


@pytest.mark.parametrize("deinit", [False, True])
def test_a_submodule_commit_that_nobody_else_has_is_rejected(
    site: Site, run, with_library, deinit: bool
):
    item, lib, _ = with_library
    commit(lib, "own.txt", "only here\n")
    git(item["worktree"], "commit", "-q", "-a", "-m", "Take the library's newest")
    if deinit:
        git(item["worktree"], "submodule", "--quiet", "deinit", "--force", "lib")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert str(attempt.reason).startswith("submodule: lib: push its commit")
    assert json.loads(str(attempt.details))["unpushed_submodules"] == ["lib"]
    site.clock.advance(600)
    again = site.dispatch(run)["a"]
    assert "submodule: lib" in site.worker.show(again["thread"], full=True).messages[0].body
    (kept,) = (i for i in site.scheduler.cleanup(run, force=True).items if i.attempt.number == 1)
    assert (kept.action, kept.reasons[0].code) == ("kept", "submodule_commits")


def test_a_submodule_commit_that_was_pushed_is_accepted_also_later(site: Site, run, with_library):
    item, lib, library = with_library
    hand_in_the_submodule(site, item, lib)
    assert decided(site, run).state == "rejected"

    git(lib, "push", "-q", "origin", "HEAD:refs/heads/next")
    site.scheduler.adopt(run, "a")

    assert site.states(run) == {"a": "succeeded"}
    tip = git(library, "rev-parse", "next")
    assert git(site.repository, "rev-parse", f"{site.task(run, 'a').accepted_head}:lib") == tip


def test_another_commit_of_a_submodule_that_its_remote_has_is_accepted(
    site: Site, run, with_library
):
    item, lib, library = with_library
    clone = site.folder / "clone"
    git(site.folder, "clone", "-q", str(library), str(clone))
    tip = commit(clone, "new.txt", "of the library's own people\n")
    git(clone, "push", "-q", "origin", "HEAD")
    git(lib, "fetch", "-q", "origin")
    git(lib, "checkout", "-q", tip)
    git(item["worktree"], "commit", "-q", "-a", "-m", "Take the library's newest")
    site.done(item)

    assert decided(site, run).state == "succeeded"


def test_a_submodule_that_was_never_fetched_is_no_objection(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    entry = f"160000,{item['base_commit']},elsewhere"
    Path(item["worktree"], "elsewhere").mkdir()
    git(item["worktree"], "update-index", "--add", "--cacheinfo", entry)
    declared = '[submodule "elsewhere"]\n\tpath = elsewhere\n\turl = ../elsewhere\n'
    Path(item["worktree"], ".gitmodules").write_text(declared)
    git(item["worktree"], "add", ".gitmodules")
    git(item["worktree"], "commit", "-q", "-m", "Name a commit of another repository")
    site.done(item)

    assert decided(site, run).state == "succeeded"


def test_a_repository_that_was_added_as_if_it_were_a_file_is_rejected(site: Site, run, item):
    inner = Path(item["worktree"], "inner")
    inner.mkdir()
    git(inner, "init", "-q")
    commit(inner, "own.txt", "only here\n")
    git(item["worktree"], "add", "inner")
    git(item["worktree"], "commit", "-q", "-m", "Add a folder")
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, str(attempt.reason).split(":")[1]) == ("rejected", " inner")


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("gone", [False, True], ids=["edited", "deleted"])
def test_an_edit_that_git_was_told_not_to_see_is_dirt(site: Site, run, item, mark, gone):
    commit(item["worktree"], "a.txt", "text")
    git(item["worktree"], "update-index", mark, "README.md")
    readme = Path(item["worktree"], "README.md")
    if gone:
        readme.unlink()
    else:
        readme.write_text("hidden")
    assert git(item["worktree"], "status", "--porcelain") == "", "this is how it hides"
    site.done(item)

    attempt = decided(site, run)

    assert attempt.reason == "dirty: not committed: README.md"
    flags = git(item["worktree"], "ls-files", "-v", "README.md")
    assert flags[0] in "hS", "the worktree's own index stays as it is"


def test_an_edit_that_git_was_told_not_to_see_is_dirt_also_right_after_the_index(
    site: Site, run, item
):
    """Of the same size and time, so that only its content tells."""
    commit(item["worktree"], "a.txt", "text")
    git(item["worktree"], "config", "core.trustctime", "false")
    readme = Path(item["worktree"], "README.md")
    os.utime(readme, (10**9, 10**9))
    git(item["worktree"], "update-index", "--refresh")
    git(item["worktree"], "update-index", "--assume-unchanged", "README.md")
    before = readme.stat()
    readme.write_bytes(b"x" * before.st_size)
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    for path in (readme, Path(index)):
        os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    site.done(item)

    attempt = decided(site, run)

    assert attempt.reason == "dirty: not committed: README.md"


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
def test_a_mark_without_an_edit_is_no_dirt(site: Site, run, item, mark):
    git(item["worktree"], "update-index", mark, "README.md")
    os.utime(Path(item["worktree"], "README.md"))
    site.deliver(item, "a.txt")

    assert decided(site, run).state == "succeeded"


def test_what_a_sparse_checkout_leaves_out_is_no_dirt(site: Site, run, item):
    commit(item["worktree"], "kept/a.txt", "text")
    commit(item["worktree"], "left/b.txt", "text")
    git(item["worktree"], "sparse-checkout", "set", "kept")
    assert not Path(item["worktree"], "left").exists()
    site.done(item)

    assert decided(site, run).state == "succeeded"


@pytest.mark.parametrize("move", [("checkout", "-q", "--detach"), ("switch", "-q", "-c", "mine")])
def test_head_counts_wherever_the_worker_has_gone(site: Site, run, item, move):
    git(item["worktree"], *move)
    head = site.deliver(item, "a.txt")

    attempt = decided(site, run)

    assert (attempt.state, attempt.head_commit) == ("succeeded", head)


def test_a_head_that_does_not_build_on_the_base_is_rejected(site: Site, run):
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "base.txt", "base")
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    git(item["worktree"], "reset", "-q", "--hard", old)
    site.deliver(item, "a.txt")

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.reason == "base: HEAD does not build on the base commit"


def test_a_head_that_names_no_commit_is_rejected_and_holds_nothing_up(site: Site, run, item):
    git(item["worktree"], "checkout", "-q", "--orphan", "nowhere")
    git(item["worktree"], "rm", "-r", "-q", "--cached", ".")
    Path(item["worktree"], "README.md").unlink()
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, attempt.reason) == ("rejected", "base: HEAD names no commit")


def test_a_damaged_index_is_rejected_and_holds_nothing_up(site: Site, run, item):
    site.add(run, "b")
    other = site.dispatch(run)["b"]
    commit(item["worktree"], "a.txt", "text")
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    Path(index).write_bytes(b"no index at all")
    site.done(item)
    site.deliver(other, "b.txt")

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.reason is not None
    assert attempt.reason.startswith("unreadable: git status failed")
    assert site.states(run)["b"] == "succeeded"


def test_a_worktree_that_is_gone_is_lost_and_counts_as_infrastructure(site: Site, run, item):
    commit(item["worktree"], "a.txt", "text")
    site.done(item)
    shutil.rmtree(item["worktree"])

    attempt = decided(site, run)

    assert attempt.state == "lost"
    task = site.task(run, "a")
    assert (task.work_failures, task.infra_failures) == (0, 1)


def test_the_commits_of_a_lost_worktree_are_kept(site: Site, run, item):
    head = commit(item["worktree"], "a.txt", "text")
    site.done(item)
    shutil.rmtree(item["worktree"])

    attempt = decided(site, run)

    late = f"refs/orch/late/{attempt.id}"
    assert attempt.reason == (
        f"the worktree {item['worktree']} is gone; its commits are kept at {late}"
    )
    assert git(site.repository, "rev-parse", late) == head


def test_a_lost_worktree_without_a_commit_leaves_no_ref(site: Site, run, item):
    site.done(item)
    shutil.rmtree(item["worktree"])

    assert decided(site, run).reason == f"the worktree {item['worktree']} is gone"
    assert git(site.repository, "for-each-ref", "refs/orch/late") == ""


def submitted_but_out_of_sight(site: Site, run, sentence: str) -> None:
    """Task `a` waits, and whoever looks at the run is told why."""
    done = site.scheduler.reconcile(run)
    assert (done.verified, site.attempts(run, "a")[-1].state) == (0, "submitted")
    status = site.scheduler.status(run)
    with refused("timeout") as failure:
        site.scheduler.wait(run, until="run", wait_seconds=0)
    told = (done.obstacle, status.obstacle, failure.value.hint, failure.value.data["obstacle"])
    assert [sentence in str(text) for text in told] == [True] * 4, told


def test_submitted_work_waits_for_worktrees_that_are_not_mounted(site: Site, run, item):
    site.deliver(item, "a.txt")
    away = site.folder / "away"
    site.worktrees.rename(away)
    submitted_but_out_of_sight(site, run, "is not there")

    site.worktrees.mkdir()  # the empty folder on which they are mounted
    submitted_but_out_of_sight(site, run, "is not there")
    doctor = {c.name: c.status for c in site.scheduler.doctor().checks}
    assert doctor["worktrees"] == "problem"

    site.worktrees.rmdir()
    away.rename(site.worktrees)
    assert decided(site, run).state == "succeeded"
    assert site.scheduler.status(run).obstacle is None


def test_submitted_work_waits_when_more_than_three_worktrees_are_missing(site: Site, run, item):
    site.add(run, "b", "c", "d", "e")
    others = site.dispatch(run)
    site.deliver(item, "a.txt")
    site.deliver(others["b"], "b.txt")
    for gone in (item, others["c"], others["d"], others["e"]):
        os.rename(gone["worktree"], gone["worktree"] + ".away")

    assert site.scheduler.reconcile(run).verified == 1, "the one that is there is looked at"
    assert site.states(run)["b"] == "succeeded"
    submitted_but_out_of_sight(site, run, "4 worktrees in")

    os.rename(others["e"]["worktree"] + ".away", others["e"]["worktree"])
    assert decided(site, run).state == "lost"


def test_submitted_work_waits_for_a_repository_that_is_gone(site: Site, run, item):
    site.deliver(item, "a.txt")
    away = site.folder / "away"
    site.repository.joinpath(".git").rename(away)
    submitted_but_out_of_sight(site, run, "is not the repository of run")

    away.rename(site.repository / ".git")
    assert decided(site, run).state == "succeeded"


def test_a_worktree_without_its_git_file_never_answers_for_the_repository_above(tmp_path: Path):
    site = Site(tmp_path)
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    commit(outer, "outer.txt", "outer")
    site.worktrees = outer / "worktrees"
    run = site.open_run()
    site.add(run, "a", allow_empty=True)
    item = site.dispatch(run)["a"]
    git(outer, "add", "--all")
    git(outer, "commit", "-q", "-m", "Everything is committed here")
    os.unlink(Path(item["worktree"], ".git"))
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "lost"
    assert attempt.head_commit is None
    site.close()


def test_a_folder_of_another_repository_in_the_place_is_lost(site: Site, run, item):
    shutil.rmtree(item["worktree"])
    git(site.folder, "clone", "-q", str(site.repository), item["worktree"])
    commit(item["worktree"], "a.txt", "text")
    site.done(item)

    assert decided(site, run).state == "lost"


def test_a_task_without_a_worktree_is_accepted_as_it_is(site: Site, run):
    site.add(run, "report", worktree=False)
    item = site.dispatch(run)["report"]
    assert (item["worktree"], item["branch"], item["base_commit"]) == (None, None, None)
    site.done(item)

    assert decided(site, run, "report").state == "succeeded"


def test_what_was_accepted_stays_when_the_worker_goes_on(site: Site, run, item):
    head = site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    git(item["worktree"], "reset", "-q", "--hard", item["base_commit"])
    commit(item["worktree"], "late.txt", "late")

    attempt = decided(site, run)

    assert attempt.head_commit == head
    assert git(site.repository, "cat-file", "-t", head) == "commit"
    assert git(site.repository, "for-each-ref", "--contains", head, "refs/orch/heads")


# -- two leaders -----------------------------------------------------------------------------


def amend(folder: str, content: str) -> str:
    """The last commit with another content; its id."""
    Path(folder, "a.txt").write_text(content)
    git(folder, "commit", "--quiet", "--amend", "--all", "--no-edit")
    return git(folder, "rev-parse", "HEAD")


def test_what_is_kept_is_what_was_accepted_also_when_a_slower_leader_saw_less(
    site: Site, run, item, monkeypatch
):
    site.deliver(item, "a.txt")
    slow = site.leader()
    look = functools.partial(verify._verdict, slow.desk)
    accepted = []

    def look_and_be_late(*arguments):
        verdict = look(*arguments)
        accepted.append(amend(item["worktree"], "better"))
        site.scheduler.reconcile(run)
        return verdict

    only_for(monkeypatch, slow, verify, "_verdict", look_and_be_late)
    fold.fold(slow.desk, run)
    assert verify.verify(slow.desk, run) == 0

    (attempt,) = site.attempts(run, "a")
    assert [attempt.head_commit] == accepted
    assert git(site.repository, "rev-parse", f"refs/orch/heads/{attempt.id}") == accepted[0]


def test_what_was_cancelled_while_a_leader_looked_stays_cancelled(
    site: Site, run, item, monkeypatch
):
    site.deliver(item, "a.txt")
    slow = site.leader()
    look = functools.partial(verify._verdict, slow.desk)

    def look_and_be_late(*arguments):
        verdict = look(*arguments)
        site.scheduler.cancel(run, ["a"])
        return verdict

    only_for(monkeypatch, slow, verify, "_verdict", look_and_be_late)
    fold.fold(slow.desk, run)
    assert verify.verify(slow.desk, run) == 0

    assert [a.state for a in site.attempts(run, "a")] == ["cancelled"]
    assert site.task(run, "a").state == "cancelled"
    assert git(site.repository, "for-each-ref", "refs/orch/heads/") == ""
