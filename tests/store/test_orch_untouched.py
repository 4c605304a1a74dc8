"""What git shows as modified in every new worktree is not taken for the worker's dirt."""

from pathlib import Path

import pytest

from support.runs import Site, commit, git


@pytest.fixture
def windows(site: Site) -> Site:
    """A file that is committed with line ends that its attributes forbid, below a folder."""
    path = site.repository / "deep" / "win.txt"
    path.parent.mkdir()
    path.write_bytes(b"one\r\ntwo\r\n")
    git(site.repository, "add", ".")
    git(site.repository, "commit", "--quiet", "--message", "Line ends")
    commit(site.repository, ".gitattributes", "*.txt text eol=lf\n")
    # `commit` has taken what it was told to for all files: have the old line ends again.
    blob = git(site.repository, "rev-parse", "HEAD~1:deep/win.txt")
    git(site.repository, "update-index", "--cacheinfo", f"100644,{blob},deep/win.txt")
    git(site.repository, "commit", "--quiet", "--amend", "--no-edit")
    path.write_bytes(b"one\r\ntwo\r\n")
    return site


def test_a_file_that_is_shown_as_modified_from_the_start_is_no_dirt(windows: Site):
    run = windows.open_run(base="main")
    windows.add(run, "a")
    item = windows.dispatch(run)["a"]
    Path(item["worktree"], "deep", "win.txt").touch()
    (Path(item["worktree"]) / "new").write_text("new\n")
    git(item["worktree"], "add", "new")
    git(item["worktree"], "commit", "--quiet", "--message", "New")
    assert git(item["worktree"], "status", "--porcelain") == " M deep/win.txt"
    windows.done(item)
    windows.scheduler.reconcile(run)

    assert windows.states(run) == {"a": "succeeded"}
    windows.scheduler.integrate(run, onto="main")
    [cleaned] = windows.scheduler.cleanup(run, task_names=["a"]).items
    assert (cleaned.action, cleaned.salvage) == ("removed", None)


def test_an_edit_of_such_a_file_is_dirt(windows: Site):
    run = windows.open_run(base="main")
    windows.add(run, "a")
    item = windows.dispatch(run)["a"]
    (Path(item["worktree"]) / "new").write_text("new\n")
    git(item["worktree"], "add", "new")
    git(item["worktree"], "commit", "--quiet", "--message", "New")
    Path(item["worktree"], "deep", "win.txt").write_bytes(b"one\r\nTWO\r\n")
    windows.done(item)
    windows.scheduler.reconcile(run)

    [attempt] = windows.attempts(run, "a")
    assert (attempt.state, attempt.reason) == ("rejected", "dirty: not committed: deep/win.txt")


def test_a_checkout_with_such_a_file_is_dispatched_from_and_comes_forward(windows: Site):
    (windows.repository / "deep" / "win.txt").touch()
    assert git(windows.repository, "status", "--porcelain") == " M deep/win.txt"
    run = windows.open_run()
    windows.add(run, "a")
    item = windows.dispatch(run)["a"]
    (Path(item["worktree"]) / "new").write_text("new\n")
    git(item["worktree"], "add", "new")
    git(item["worktree"], "commit", "--quiet", "--message", "New")
    windows.done(item)
    windows.scheduler.reconcile(run)

    done = windows.scheduler.integrate(run, onto="main", within=str(windows.repository))

    assert done.onto is not None
    assert done.onto["state"] == "fast_forwarded"
    assert (windows.repository / "new").exists()
