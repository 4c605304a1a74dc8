"""A branch of the user's comes forward to what was integrated, and nothing of theirs is lost."""

from pathlib import Path

import pytest

from inbox_orch.orch.git import integrating
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.runs import Site, commit, git, lock_files


@pytest.fixture
def run(site: Site):
    """A run with accepted work that adds `new.txt`."""
    made = site.open_run()
    site.add(made, "a")
    site.deliver(site.dispatch(made)["a"], "new.txt", "new\n")
    site.scheduler.reconcile(made)
    return made


def head_of(folder: Path, revision: str = "HEAD") -> str:
    return git(folder, "rev-parse", revision)


def accept_more(site: Site, run, key: str, name: str) -> None:
    site.add(run, key)
    site.deliver(site.dispatch(run, key)[key], name)
    site.scheduler.reconcile(run)


def test_a_branch_that_nobody_has_checked_out_comes_forward(site: Site, run):
    git(site.repository, "branch", "release")

    done = site.scheduler.integrate(run, onto="release")

    assert done.onto is not None
    assert (done.onto["state"], done.onto["commit"]) == ("fast_forwarded", done.tip)
    assert head_of(site.repository, "release") == done.tip
    assert not (site.repository / "new.txt").exists()
    assert site.scheduler.integrate(run, onto="release").onto["state"] == "up_to_date"


def test_a_branch_that_is_checked_out_clean_comes_forward_with_its_files(site: Site, run):
    (site.repository / "untracked.txt").write_text("mine\n")

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert (done.onto["state"], done.onto["worktree"]) == ("fast_forwarded", str(site.repository))
    assert head_of(site.repository) == done.tip
    assert (site.repository / "new.txt").read_text() == "new\n"
    assert (site.repository / "untracked.txt").read_text() == "mine\n"
    assert git(site.repository, "status", "--porcelain") == "?? untracked.txt"


def test_a_branch_with_changes_in_its_working_tree_is_left_to_its_owner(site: Site, run):
    before = head_of(site.repository)
    (site.repository / "README.md").write_text("changed\n")

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert done.onto["state"] == "checked_out"
    assert "README.md" in done.onto["reason"]
    assert head_of(site.repository) == before
    assert (site.repository / "README.md").read_text() == "changed\n"

    git(site.repository, "stash", "--quiet")
    git(site.folder, *done.onto["command"].split()[1:])
    assert head_of(site.repository) == done.tip
    git(site.repository, "stash", "pop", "--quiet")


@pytest.mark.parametrize("ignored", [False, True], ids=["untracked", "ignored"])
def test_a_file_that_would_be_overwritten_stops_the_merge_back_and_loses_nothing(
    site: Site, run, ignored: bool
):
    if ignored:
        (site.repository / ".git" / "info" / "exclude").write_text("new.txt\n")
    precious = site.repository / "new.txt"
    precious.write_text("the only copy\n")
    before = head_of(site.repository)
    attempt = site.attempts(run, "a")[0]

    done = site.scheduler.integrate(run, onto="main")
    again = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert done.onto["state"] == "refused"
    assert "new.txt" in done.onto["reason"]
    assert again.onto == done.onto
    assert precious.read_text() == "the only copy\n"
    assert head_of(site.repository) == before
    # The work is whole, and nobody is asked to do it again.
    assert head_of(site.repository, str(attempt.branch)) == attempt.head_commit
    assert Path(str(attempt.worktree_path), "new.txt").read_text() == "new\n"
    assert site.states(run) == {"a": "succeeded"}
    assert len(site.attempts(run, "a")) == 1
    assert lock_files(site.repository / ".git") == []


@pytest.mark.parametrize("code", ["disk_full", "git_failed", "read_only"])
def test_a_branch_that_git_cannot_move_now_is_told_and_comes_forward_later(
    site: Site, run, monkeypatch: pytest.MonkeyPatch, code: str
):
    before = head_of(site.repository)
    real = integrating.git

    def refuse(folder: str, *arguments: str, **options):
        if "--ff-only" in arguments:
            raise InboxOrchError(code, "not now")
        return real(folder, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(integrating, "git", refuse)
        done = site.scheduler.integrate(run, onto="main")
    assert done.onto is not None
    assert (done.onto["state"], done.onto["reason"]) == ("refused", "not now")
    assert (done.moved, head_of(site.repository)) == (True, before)

    again = site.scheduler.integrate(run, onto="main")
    assert again.onto is not None
    assert (again.onto["state"], head_of(site.repository)) == ("fast_forwarded", done.tip)


@pytest.mark.parametrize("checked_out", ["main", "other"])
def test_another_name_of_a_branch_that_is_checked_out_moves_nothing_behind_its_owner(
    site: Site, run, checked_out: str
):
    git(site.repository, "symbolic-ref", "refs/heads/other", "refs/heads/main")
    git(site.repository, "symbolic-ref", "HEAD", f"refs/heads/{checked_out}")
    before = head_of(site.repository)
    (site.repository / "mine.txt").write_text("mine\n")
    git(site.repository, "add", "mine.txt")

    done = site.scheduler.integrate(run, onto="other")
    assert done.onto is not None
    assert (done.onto["state"], done.onto["branch"]) == ("checked_out", "main")
    assert head_of(site.repository) == before
    assert git(site.repository, "status", "--porcelain") == "A  mine.txt"

    git(site.repository, "commit", "--quiet", "--message", "Mine")
    done = site.scheduler.integrate(run, onto="other")
    assert done.onto is not None
    assert (done.onto["state"], head_of(site.repository)) == ("fast_forwarded", done.tip)
    assert (site.repository / "new.txt").exists()
    assert git(site.repository, "symbolic-ref", "refs/heads/other") == "refs/heads/main"


@pytest.mark.parametrize("name", ["main", "a=b.c"])
@pytest.mark.parametrize("options", ["--squash", "-s ours --no-ff", "--no-commit --no-ff"])
def test_what_a_branch_says_of_its_merges_does_not_count(site: Site, run, name: str, options: str):
    if name != "main":
        git(site.repository, "switch", "--quiet", "-c", name)
    git(site.repository, "config", f"branch.{name}.mergeOptions", options)

    done = site.scheduler.integrate(run, onto=name)

    assert done.onto is not None
    assert (done.onto["state"], head_of(site.repository, name)) == ("fast_forwarded", done.tip)
    assert git(site.repository, "status", "--porcelain") == ""
    assert (site.repository / "new.txt").exists()


def test_a_merge_that_does_not_move_the_branch_is_told(site: Site, run, monkeypatch):
    before = head_of(site.repository)
    real = integrating.git

    def squash(folder: str, *arguments: str, **options):
        if "--ff-only" in arguments:
            arguments = ("merge", "--squash", arguments[-1])
        return real(folder, *arguments, **options)

    monkeypatch.setattr(integrating, "git", squash)
    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert (done.onto["state"], head_of(site.repository)) == ("refused", before)
    assert done.onto["reason"] == "git has not moved the branch there"


def test_a_branch_checked_out_in_a_linked_worktree_comes_forward_there(site: Site, run):
    tree = site.folder / "linked"
    git(site.repository, "worktree", "add", "--quiet", "-b", "release", str(tree))

    done = site.scheduler.integrate(run, onto="release", within=str(tree))

    assert done.onto is not None
    assert (done.onto["state"], done.onto["worktree"]) == ("fast_forwarded", str(tree))
    assert head_of(tree) == done.tip
    assert (tree / "new.txt").exists()
    assert not (site.repository / "new.txt").exists()


def begin(operation: str, tree: Path) -> None:
    """Leave the working tree, which has `main`, in the middle of something."""
    if operation == "bisect":
        git(tree, "bisect", "start", "HEAD", "HEAD~1", status=0)
        git(tree, "checkout", "--quiet", "--detach")
        return
    git(tree, "branch", "other", "HEAD~1")
    git(tree, "switch", "--quiet", "other")
    commit(tree, "README.md", "other\n")
    git(tree, "switch", "--quiet", "main")
    if operation == "merge":
        git(tree, "merge", "--no-commit", "other", status=1)
        git(tree, "checkout", "--quiet", "--ours", "README.md")
        git(tree, "add", "README.md")
    else:
        git(tree, "rebase", "other", status=1)


@pytest.mark.parametrize("operation", ["merge", "rebase", "bisect"])
def test_a_branch_in_the_middle_of_something_is_not_moved(site: Site, run, operation: str):
    commit(site.repository, "README.md", "main\n")
    before = head_of(site.repository, "main")
    begin(operation, site.repository)

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert done.onto["state"] in ("checked_out", "refused")
    assert head_of(site.repository, "main") == before


def test_a_branch_whose_working_tree_has_gone_away_is_not_moved(site: Site, run):
    tree = site.folder / "linked"
    git(site.repository, "worktree", "add", "--quiet", "-b", "release", str(tree))
    tree.rename(site.folder / "elsewhere")

    done = site.scheduler.integrate(run, onto="release")

    assert done.onto is not None
    assert (done.onto["state"], done.onto["worktree"]) == ("checked_out", str(tree))


def test_a_branch_that_went_on_by_itself_is_merged_in_first(site: Site, run):
    site.scheduler.integrate(run)
    mine = commit(site.repository, "mine.txt", "mine\n")
    accept_more(site, run, "b", "b.txt")

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert done.onto["state"] == "fast_forwarded"
    assert head_of(site.repository, "main") == done.tip == head_of(site.repository, branch_of(run))
    git(site.repository, "merge-base", "--is-ancestor", mine, str(done.tip))
    assert {"mine.txt", "new.txt", "b.txt"} <= {p.name for p in site.repository.iterdir()}
    subjects = git(site.repository, "log", "--merges", "--format=%s").split("\n")
    assert sorted(subjects) == ["Bring in main", "Integrate a: Do a", "Integrate b: Do b"]


def test_a_branch_that_conflicts_with_what_was_integrated_stays_and_says_where(site: Site, run):
    site.scheduler.integrate(run)
    mine = commit(site.repository, "new.txt", "mine\n")

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert (done.onto["state"], done.onto["paths"]) == ("conflict", ["new.txt"])
    assert head_of(site.repository) == mine
    assert site.attempts(run, "a")[0].conflict is None


def test_a_branch_of_orch_s_own_and_one_that_is_not_there_are_refused(site: Site, run):
    with refused("usage"):
        site.scheduler.integrate(run, onto=branch_of(run))
    git(site.repository, "symbolic-ref", "refs/heads/ours", f"refs/heads/{branch_of(run)}")
    git(site.repository, "symbolic-ref", "refs/heads/remote", "refs/remotes/origin/main")
    git(site.repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    for name in ("nowhere", "", "HEAD", "origin/main", "refs/tags/x", "main~0", "remote", "ours"):
        with refused("not_found"):
            site.scheduler.integrate(run, onto=name)
    assert git(site.repository, "for-each-ref", f"refs/heads/{branch_of(run)}") == ""


@pytest.mark.parametrize("place", ["bare", "submodule"])
def test_it_works_in_a_repository_of_another_kind(site: Site, tmp_path: Path, place: str):
    if place == "bare":
        repository = tmp_path / "bare.git"
        git(tmp_path, "clone", "--quiet", "--bare", str(site.repository), str(repository))
    else:
        whole = tmp_path / "whole"
        git(tmp_path, "init", "--quiet", str(whole))
        allowed = ("-c", "protocol.file.allow=always")
        git(whole, *allowed, "submodule", "--quiet", "add", str(site.repository), "part")
        repository = whole / "part"
    run = site.open_run(repository)
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "new.txt")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run, onto="main")

    assert done.onto is not None
    assert done.onto["state"] == "fast_forwarded"
    assert head_of(repository, "main") == done.tip
    if place == "submodule":
        assert (repository / "new.txt").exists()
        assert git(repository, "status", "--porcelain") == ""
    git(repository, "fsck", "--strict")
