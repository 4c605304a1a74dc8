"""Refs are asked of git: in which files they are depends on the repository's format of refs."""

import os
import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.git import administration, condition, salvage
from inbox_orch.orch.git.repository import Repository
from support.buses import refused
from support.runs import Site, commit, git

KNOWN = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")


@pytest.fixture(params=["files", "reftable"])
def repository(site: Site, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A repository with one commit, its refs in this format."""
    folder = tmp_path / request.param
    told = ("init", "--quiet", "--initial-branch=main", f"--ref-format={request.param}")
    made = subprocess.run(["git", *told, str(folder)], capture_output=True)
    if made.returncode != 0 and request.param == "reftable":
        pytest.skip("this git knows no reftable")
    if made.returncode != 0:
        git(tmp_path, *(word for word in told if not word.startswith("--ref")), str(folder))
    commit(folder, "README.md", "text\n")
    return folder


@pytest.fixture
def ended(site: Site, repository: Path):
    """A run with one attempt that has failed, and its worktree."""
    run = site.open_run(repository, base="main")
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    site.fail(item)
    site.scheduler.reconcile(run)
    return run, Path(item["worktree"])


def hidden_commits(worktree: Path) -> dict[str, str]:
    """Commits that only the worktree's own refs and its reflog keep."""
    made = {"amended": commit(worktree, "one.txt", "one\n")}
    git(worktree, "commit", "--quiet", "--amend", "--message", "Other")
    made["named"] = git(worktree, "rev-parse", "HEAD")
    git(worktree, "update-ref", "refs/worktree/mine", "HEAD")
    git(worktree, "reset", "--quiet", "--hard", "HEAD~1")
    return made


def test_clean_up_keeps_commits_that_only_the_worktrees_own_refs_have(
    site: Site, repository: Path, ended
):
    run, worktree = ended
    made = hidden_commits(worktree)

    (item,) = site.scheduler.cleanup(run, force=True).items
    assert item.action == "removed"
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "--quiet", "--prune=now")

    for name, lost in made.items():
        assert git(repository, "cat-file", "-t", lost) == "commit", name


def test_what_keeps_a_commit_is_asked_of_git(site: Site, ended, monkeypatch: pytest.MonkeyPatch):
    """No file of the admin folder is read for it."""
    _, worktree = ended
    made = hidden_commits(worktree)
    monkeypatch.setattr(salvage, "_named_in", lambda admin: iter(()))
    common = git(worktree, "rev-parse", "--path-format=absolute", "--git-common-dir")
    repository = Repository(str(Path(common).parent))

    found = condition.look(str(worktree), common)
    kept = salvage.lone_commits(repository, str(worktree), found, {})

    assert set(kept) == set(made.values())


@pytest.mark.parametrize("verb", ["cherry-pick", "revert"])
def test_clean_up_sees_what_is_half_done(site: Site, repository: Path, ended, verb: str):
    run, worktree = ended
    change = commit(worktree, "README.md", "mine\n")
    commit(worktree, "README.md", "again\n")
    git(worktree, *KNOWN, verb, "--no-edit" if verb == "revert" else "-x", change, status=1)

    (item,) = site.scheduler.cleanup(run).items

    assert "in_progress" in {reason.code for reason in item.reasons}


def test_clean_up_sees_that_a_ref_was_made_while_it_looked(
    site: Site, repository: Path, ended, monkeypatch: pytest.MonkeyPatch
):
    run, worktree = ended
    real = salvage.snapshot

    def meanwhile(*arguments, **options):
        made = real(*arguments, **options)
        commit(worktree, "late.txt", "late\n")
        git(worktree, "reset", "--quiet", "--hard", "HEAD~1")
        return made

    monkeypatch.setattr(salvage, "snapshot", meanwhile)
    (item,) = site.scheduler.cleanup(run, force=True).items

    assert item.action == "kept"
    assert "changing" in {reason.code for reason in item.reasons}


@pytest.mark.parametrize("state", ["checked out", "being rebased"])
def test_clean_up_leaves_a_branch_that_a_working_tree_has(site: Site, repository: Path, state: str):
    run = site.open_run(repository, base="main")
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "a.txt", "a\n")
    git(item["worktree"], "switch", "--quiet", "--detach")
    site.done(item)
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run, onto="main")
    mine = site.folder / "mine"
    git(repository, "worktree", "add", "--quiet", str(mine), item["branch"])
    if state == "being rebased":
        git(mine, "-c", "sequence.editor=echo break >", "rebase", "--quiet", "-i", "HEAD~1")
        assert git(mine, "branch", "--show-current") == ""

    (cleaned,) = site.scheduler.cleanup(run).items

    assert cleaned.action == "removed"
    assert item["branch"] not in {d.ref.removeprefix("refs/heads/") for d in cleaned.deleted_refs}
    assert git(repository, "rev-parse", "--verify", f"refs/heads/{item['branch']}")


def test_late_commits_are_seen_and_kept(site: Site, repository: Path, ended):
    run, worktree = ended
    head = commit(worktree, "late.txt", "late\n")

    site.scheduler.reconcile(run)

    attempt = site.attempts(run, "a")[0]
    assert git(repository, "rev-parse", f"refs/orch/late/{attempt.id}") == head


def test_clean_up_takes_away_worktrees_with_relative_links(site: Site):
    """As git makes them with `worktree.useRelativePaths`."""
    run = site.open_run(base="main")
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.deliver(item, "a.txt")
    worktree, admin = Path(item["worktree"]), administration.folder_of(item["worktree"])
    assert admin is not None

    (worktree / ".git").write_text(f"gitdir: {os.path.relpath(admin, worktree)}\n")
    Path(admin, "gitdir").write_text(f"{os.path.relpath(worktree / '.git', admin)}\n")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run, onto="main")

    (cleaned,) = site.scheduler.cleanup(run).items

    assert cleaned.action == "removed"


# -- names -----------------------------------------------------------------------------------


def test_a_branch_goes_before_a_tag_of_the_same_name(site: Site):
    old = git(site.repository, "rev-parse", "HEAD")
    git(site.repository, "tag", "main")
    middle = commit(site.repository, "middle.txt", "middle\n")
    new = commit(site.repository, "new.txt", "new\n")

    assert site.open_run(base="main").base_commit == new
    assert site.open_run(base="main~1").base_commit == middle
    assert site.open_run(base="main@{0}").base_commit == new
    assert site.open_run(base="tags/main").base_commit == old
    assert site.open_run(base="refs/tags/main").base_commit == old
    run = site.open_run()
    site.add(run, "a")
    assert site.dispatch(run, base="main")["a"]["base_commit"] == new


def test_work_is_looked_for_in_the_branch_that_a_run_is_based_on(site: Site):
    git(site.repository, "tag", "main")
    run = site.open_run(base="main")
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    git(site.repository, "merge", "--quiet", site.attempts(run, "a")[0].head_commit)
    git(site.repository, "switch", "--quiet", "--detach", "HEAD~1")

    (item,) = site.scheduler.cleanup(run).items

    assert (item.action, item.merged_into) == ("removed", "refs/heads/main")


def test_head_is_head_also_where_a_branch_is_called_so(site: Site):
    git(site.repository, "update-ref", "refs/heads/HEAD", "HEAD")
    head = commit(site.repository, "new.txt", "new\n")

    assert site.open_run(base="HEAD").base_commit == head
    assert site.open_run(base="@").base_commit == head
    assert site.open_run(base="HEAD~0").base_commit == head


@pytest.mark.parametrize(
    "revision", ["^main", "main..", "..main", "main..main", "HEAD^!", "HEAD^@", "HEAD:", "HEAD^-"]
)
def test_a_revision_that_is_no_single_commit_is_refused(site: Site, revision: str):
    commit(site.repository, "new.txt", "new\n")

    with refused("usage"):
        site.open_run(base=revision)
    run = site.open_run()
    site.add(run, "a")
    with refused("usage"):
        site.dispatch(run, base=revision)
