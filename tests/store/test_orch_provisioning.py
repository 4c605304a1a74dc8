"""A worktree that cannot be made leaves nothing behind, and takes nothing of anybody else's."""

import contextlib
import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.git import worktrees
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.gate import Gate
from support.runs import Site, branches, git, lock_files, refs_beside_base, worktree_paths
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def run(site: Site):
    run = site.open_run()
    site.add(run, "a")
    return run


def place_of(site: Site, run, key: str = "a", number: int = 1) -> Path:
    return site.worktrees / run.folder_of(key, number)


def assert_nothing_is_left(site: Site, run, *, worktrees: set[str] = frozenset()) -> None:
    assert site.open_intents(run) == []
    assert worktree_paths(site.repository) == worktrees
    assert branches(site.repository) == set()
    assert lock_files(site.repository / ".git", site.worktrees) == []
    assert refs_beside_base(site, run) == set()


def assert_the_next_try_succeeds(site: Site, run) -> None:
    site.clock.advance(600)
    item = site.dispatch(run)["a"]
    assert (item["state"], item["number"]) == ("offered", 2)
    assert git(item["worktree"], "status", "--porcelain") == ""


def test_somebodys_folder_in_the_place_is_left_alone(site: Site, run):
    place = place_of(site, run)
    place.mkdir(parents=True)
    (place / "precious.txt").write_text("precious")

    done = site.scheduler.dispatch(run)

    assert done.degraded
    assert done.items[0]["reason"] == f"{place} is there already, and is not ours"
    assert (place / "precious.txt").read_text() == "precious"
    assert_nothing_is_left(site, run)
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 0, 1)
    assert_the_next_try_succeeds(site, run)


def test_somebodys_worktree_in_the_place_is_left_alone(site: Site, run):
    place = place_of(site, run)
    git(site.repository, "worktree", "add", "-q", "--detach", str(place))

    assert site.scheduler.dispatch(run).degraded
    assert (place / "README.md").exists()
    assert_nothing_is_left(site, run, worktrees={str(place)})


@pytest.mark.parametrize("kind", ["file", "link"])
def test_somebodys_file_in_the_place_is_left_alone(site: Site, run, kind: str):
    place = place_of(site, run)
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.write_text("precious")
    else:
        place.symlink_to(site.repository)

    assert site.scheduler.dispatch(run).degraded
    assert os.path.lexists(place)
    assert (site.repository / "README.md").exists()
    assert_nothing_is_left(site, run)


def test_a_file_where_the_worktrees_should_be_is_a_failure_with_its_name(site: Site, run):
    site.worktrees.write_text("a file")

    done = site.scheduler.dispatch(run)

    assert done.degraded
    assert str(site.worktrees) in done.items[0]["reason"]
    assert_nothing_is_left(site, run)
    site.worktrees.unlink()
    assert_the_next_try_succeeds(site, run)


def test_no_hook_of_the_users_runs_on_our_account(site: Site, run):
    hooks = site.repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch '{site.folder}/ran-{name}'\nexit 3\n")
        hook.chmod(0o755)

    item = site.dispatch(run)["a"]

    assert item["state"] == "offered", item["reason"]
    assert list(site.folder.glob("ran-*")) == []


def test_files_that_cannot_be_checked_out_leave_nothing(site: Site, run):
    (site.repository / ".gitattributes").write_text("README.md filter=broken\n")
    git(site.repository, "add", "--all")
    git(site.repository, "commit", "-q", "-m", "Filter")
    git(site.repository, "config", "filter.broken.smudge", "false")
    git(site.repository, "config", "filter.broken.clean", "cat")
    git(site.repository, "config", "filter.broken.required", "true")

    done = site.scheduler.dispatch(run)

    assert done.degraded
    assert done.items[0]["reason"].startswith("git reset failed")
    assert_nothing_is_left(site, run)
    assert list((site.worktrees / run.name).iterdir()) == []
    git(site.repository, "config", "filter.broken.smudge", "cat")
    assert_the_next_try_succeeds(site, run)


def test_a_lock_that_cannot_be_removed_hides_no_error_and_is_not_held_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    repository = site.scheduler.desk.repository(site.open_run())
    place = worktrees.Place(str(site.worktrees / "a"), "orch/run/t/a/1", "0" * 40, "reason")

    def refuse(path: str) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        with pytest.raises(InboxOrchError, match="first"), worktrees.alone(repository, place):
            raise InboxOrchError("disk_full", "first")
    (lock,) = lock_files(site.repository / ".git")
    gate = Gate(lock)
    gate.acquire(0)
    gate.release()


def test_a_branch_that_is_there_already_is_left_alone(site: Site, run):
    branch = f"orch/{run.name}/t/a/1"
    git(site.repository, "branch", branch)
    (site.repository / "more.txt").write_text("more")
    git(site.repository, "add", "--all")
    git(site.repository, "commit", "-q", "-m", "More")
    tip = git(site.repository, "rev-parse", branch)

    assert site.scheduler.dispatch(run).degraded
    assert git(site.repository, "rev-parse", branch) == tip
    assert worktree_paths(site.repository) == set()
    assert_the_next_try_succeeds(site, run)


def test_the_third_failure_to_provision_fails_the_task(site: Site):
    run = site.open_run()
    site.worktrees.write_text("a file")
    site.add(run, "a")
    for _ in range(3):
        site.scheduler.dispatch(run)
        site.clock.advance(600)

    assert site.states(run) == {"a": "failed"}
    assert site.task(run, "a").infra_failures == 3


def test_one_that_fails_does_not_keep_the_others(site: Site, run):
    site.add(run, "b")
    place = place_of(site, run)
    place.mkdir(parents=True)
    (place / "precious.txt").write_text("precious")

    done = site.scheduler.dispatch(run)

    states = {item["key"]: item["state"] for item in done.items}
    assert states == {"a": "provision_failed", "b": "offered"}


def git_that_fails(folder: Path, command: str, words: str, times: int) -> str:
    """A PATH on which git's command fails so many times, as another tool's work makes it."""
    made = folder / "bin"
    made.mkdir()
    wrapper = made / "git"
    wrapper.write_text(
        f"""#!/bin/sh
case " $* " in *" {command} "*)
    echo >>"{made}/calls"
    if [ "$(wc -l <"{made}/calls")" -le {times} ]; then
        # As git does: the branch is there already when it fails.
        {shutil.which("git")} "$@" >/dev/null 2>&1
        echo "fatal: {words}" >&2
        exit 128
    fi ;;
esac
exec {shutil.which("git")} "$@"
"""
    )
    wrapper.chmod(0o755)
    return f"{made}{os.pathsep}{os.environ['PATH']}"


TRANSIENT = [
    "failed to read .git/worktrees/x/commondir: Success",
    "could not lock config file .git/config: File exists",
    "Invalid path '.git/worktrees/x'",
    "did not send all necessary objects",
]


@pytest.mark.parametrize("words", TRANSIENT)
def test_a_passing_disturbance_by_another_tool_is_tried_again(
    site: Site, run, monkeypatch, words: str
):
    monkeypatch.setenv("PATH", git_that_fails(site.folder, "worktree add", words, 3))

    item = site.dispatch(run)["a"]

    assert (item["state"], item["number"]) == ("offered", 1), item["reason"]
    assert branches(site.repository) == {item["branch"]}
    assert worktree_paths(site.repository) == {item["worktree"]}


def test_a_reading_command_is_tried_again_too(site: Site, run, monkeypatch):
    monkeypatch.setenv("PATH", git_that_fails(site.folder, "rev-parse", TRANSIENT[0], 3))

    assert site.dispatch(run)["a"]["state"] == "offered"


def test_a_disturbance_that_stays_is_a_failure_that_leaves_nothing(site: Site, run, monkeypatch):
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", git_that_fails(site.folder, "worktree add", TRANSIENT[0], 99))

    assert site.scheduler.dispatch(run).degraded
    monkeypatch.setenv("PATH", path)
    assert_nothing_is_left(site, run)
    assert len((site.folder / "bin" / "calls").read_text().splitlines()) == 6


def test_any_other_failure_is_not_tried_again(site: Site, run, monkeypatch):
    monkeypatch.setenv("PATH", git_that_fails(site.folder, "worktree add", "no such thing", 99))

    assert site.scheduler.dispatch(run).degraded
    assert len((site.folder / "bin" / "calls").read_text().splitlines()) == 1


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_full_disk_leaves_nothing(site: Site, run):
    site.worktrees.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(site.worktrees)]
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        (site.repository / "large.bin").write_bytes(os.urandom(1 << 20))
        git(site.repository, "add", "--all")
        git(site.repository, "commit", "-q", "-m", "Large")
        done = site.scheduler.dispatch(run)
        assert done.degraded
        assert done.items[0]["reason"].startswith("no space left in ")
        assert done.items[0]["details"]["code"] == "disk_full"
        assert_nothing_is_left(site, run)
        assert list((site.worktrees / run.name).iterdir()) == []
        fill(site.worktrees / "ballast")
        site.clock.advance(600)
        again = site.scheduler.dispatch(run)
        assert again.items[0]["details"]["code"] == "disk_full"
        assert_nothing_is_left(site, run)
    finally:
        subprocess.run(["umount", str(site.worktrees)], check=True)
    site.clock.advance(600)
    assert site.dispatch(run)["a"]["state"] == "offered"


def test_a_lock_that_somebody_holds_is_never_passed_by(site: Site, run, monkeypatch):
    monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.3)
    gate = Gate(str(site.repository / ".git" / "inbox-orch.lock"))
    gate.acquire(1)

    done = site.scheduler.dispatch(run)

    assert done.degraded
    assert done.items[0]["details"]["code"] == "busy"
    assert "another process has been changing" in done.items[0]["reason"]
    assert branches(site.repository) == set()
    assert worktree_paths(site.repository) == set()
    assert len(site.open_intents(run)) == 1, "to be looked at again"
    monkeypatch.setattr(worktrees, "LOCK_SECONDS", PATIENCE_SECONDS)
    gate.release()
    site.scheduler.reconcile(run)
    assert_nothing_is_left(site, run)
    assert_the_next_try_succeeds(site, run)
