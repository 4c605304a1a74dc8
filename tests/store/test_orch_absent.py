"""Worktrees that are not where they were made: what is said of them is true, and helps."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site, git, worktree_paths


def ended(site: Site, run, *keys: str) -> dict[str, Path]:
    """Tasks whose only attempt has failed; the worktrees by key."""
    site.add(run, *keys, max_attempts=1)
    items = site.dispatch(run, *keys)
    for item in items.values():
        site.fail(item)
    site.scheduler.reconcile(run)
    return {key: Path(item["worktree"]) for key, item in items.items()}


def refusal(site: Site, run, *keys: str, **options) -> InboxOrchError:
    with pytest.raises(InboxOrchError) as failure:
        site.scheduler.cleanup(run, task_names=keys, **options)
    return failure.value


def lock_anew(site: Site, worktree: Path) -> None:
    """Let its user lock a worktree."""
    git(site.repository, "worktree", "unlock", str(worktree))
    git(site.repository, "worktree", "lock", "--reason", "on my disk", str(worktree))


def test_a_worktree_that_somebody_has_locked_and_moved_away_is_kept_also_with_force(site: Site):
    run = site.open_run()
    tree = ended(site, run, "a")["a"]
    lock_anew(site, tree)
    (tree / "unsaved").write_text("only here")
    away = tree.rename(site.folder / "away")

    error = refusal(site, run, "a", force=True)

    assert (error.code, error.details["reasons"]) == ("unsafe_removal", ["foreign_lock"])
    assert "on my disk" in error.message
    away.rename(tree)
    assert (tree / "unsaved").read_text() == "only here"
    assert git(tree, "status", "--porcelain") == "?? unsaved"


@pytest.mark.parametrize("locked", ["ours", "theirs", "unlocked"])
def test_the_way_out_that_is_named_for_a_worktree_that_is_gone_for_good_works(
    site: Site, locked: str
):
    run = site.open_run()
    trees = ended(site, run, "a", "b")
    if locked == "theirs":
        lock_anew(site, trees["a"])
    elif locked == "unlocked":
        git(site.repository, "worktree", "unlock", str(trees["a"]))
    for tree in trees.values():
        subprocess.run(["rm", "-rf", str(tree)], check=True)

    told = re.search(r"gone for good: (git .*?-f -f \S+)", refusal(site, run, "a").message)
    assert told is not None
    subprocess.run(shlex.split(told[1].rstrip(".")), cwd="/", check=True)

    [cleaned] = site.scheduler.cleanup(run, task_names=["a"]).items
    assert cleaned.action == "removed"
    assert len(worktree_paths(site.repository)) == 1, "the other one may come back"


def test_a_worktree_that_git_has_moved_is_said_to_be_where_it_is(site: Site):
    run = site.open_run()
    tree = ended(site, run, "a")["a"]
    new = site.folder / "new"
    git(site.repository, "worktree", "move", "-f", "-f", str(tree), str(new))

    assert f"git has it at {new}" in refusal(site, run, "a", force=True).message


def test_a_worktree_whose_admin_folder_is_gone_is_said_to_be_unknown_to_git(site: Site):
    run = site.open_run()
    tree = ended(site, run, "a")["a"]
    entry = git(tree, "rev-parse", "--git-dir")
    subprocess.run(["rm", "-rf", entry], check=True)

    assert f"{entry} is gone" in refusal(site, run, "a", force=True).message
