"""A verification and an adoption killed at any step: the next leader comes to the same end.

Afterwards each task has its accepted work, no intent is open, and nothing is left of what was
only made for looking.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site, branches, commit, git, lock_files, worktree_paths
from support.scenes import Scene, apart, kill_everywhere


class Verification(Scene):
    """A submitted attempt with checks, and a failed one whose worktree is gone."""

    def make(self) -> None:
        """Everything up to the verification."""
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "done", checks=["echo dirt >dirt.txt", "test -s done.txt"])
        site.deliver(site.dispatch(run)["done"], "done.txt")
        site.add(run, "late", checks=["test -s late.txt"], max_attempts=1)
        item = site.dispatch(run)["late"]
        commit(item["worktree"], "late.txt", "text")
        site.fail(item)
        site.scheduler.reconcile(run, checks=False)
        git(site.repository, "worktree", "remove", "-f", "-f", item["worktree"])
        site.close()

    def check(self) -> None:
        """The next leader does the same, and all is well."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            adopt(scheduler)
            with scheduler.database.snapshot() as snapshot:
                left = snapshot.all("SELECT kind, data FROM intent WHERE closed_at IS NULL")
                assert [tuple(row) for row in left] == []
                rows = snapshot.all("SELECT key, state, work_failures FROM task ORDER BY key")
                assert [tuple(row) for row in rows] == [
                    ("done", "succeeded", 0),
                    ("late", "succeeded", 1),
                ]
            assert scheduler.doctor(verify=True).problems == 0
            heads = git(self.repository, "for-each-ref", "refs/orch/heads").splitlines()
            assert len(heads) == 2
        assert len(branches(self.repository)) == 2, "none of a temporary worktree"
        assert {Path(path).name for path in worktree_paths(self.repository)} == {"done-1"}
        assert os.listdir(next(self.worktrees.glob("a-run-*"))) == ["done-1"]
        assert lock_files(self.repository / ".git", self.worktrees) == []
        git(self.repository, "fsck", "--strict")


def verify(scheduler: Scheduler) -> None:
    """What is submitted."""
    scheduler.reconcile(scheduler.run(None))


def adopt(scheduler: Scheduler) -> None:
    """What came late, unless that was done before the kill."""
    try:
        scheduler.adopt(scheduler.run(None), "late")
    except InboxOrchError as error:
        if error.code != "invalid_state":
            raise


def play(scene: Scene, act: Callable[[Scheduler], None]) -> None:
    """What a leader does, in this process."""
    with Bus.open(scene.database) as bus:
        act(Scheduler(bus))


def kill_at_every_step(folder: str, name: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Verification(Path(folder))
    act = partial(play, scene, {"verify": verify, "adopt": adopt}[name])
    kill_everywhere(scene, act)


@pytest.mark.parametrize("act", ["verify", "adopt"])
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, act: str):
    steps = int(apart(kill_at_every_step, tmp_path, act))
    assert steps > 370, f"too few steps: {steps}"
