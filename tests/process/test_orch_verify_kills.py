"""A verification and an adoption killed at any step: the next leader comes to the same end.

Afterwards each task has its accepted work, no intent is open, and nothing is left of what was
only made for looking.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.services.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.commands import PATIENCE_SECONDS
from support.runs import Site, branches, commit, git, lock_files, worktree_paths


class Scene:
    """A submitted attempt with checks, and a failed one whose worktree is gone."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.aside = folder / "here", folder / "aside"
        self.repository, self.worktrees = self.folder / "project", self.folder / "worktrees"
        self.database = self.repository / ".inbox" / "bus.db"

    def prepare(self) -> None:
        """Everything up to the verification; nothing stays open."""
        self.folder.mkdir()
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
        shutil.move(self.folder, self.aside)

    def put_back(self) -> None:
        """As it was prepared, in its own place. A copy has another identity."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.aside, self.folder, symlinks=True)
        identity = Repository(str(self.repository)).identity()
        connection = sqlite3.connect(self.database)
        with connection:
            connection.execute("UPDATE run SET repository_identity = ?", (identity,))
        connection.close()

    def check(self) -> None:
        """The next leader does the same, and all is well."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            adopt(scheduler)
            with scheduler.database.snapshot() as connection:
                left = connection.execute("SELECT kind, data FROM intent WHERE closed_at IS NULL")
                assert [tuple(row) for row in left] == []
                rows = connection.execute("SELECT key, state, work_failures FROM task ORDER BY key")
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


def kill_everywhere(folder: str, name: str) -> None:
    """The body of the test, in a process of its own, because it takes functions apart."""
    scene = Scene(Path(folder))
    scene.prepare()
    act = partial(play, scene, {"verify": verify, "adopt": adopt}[name])
    step, killed = 1, True
    while killed:
        scene.put_back()
        killed = killing.killed_before(step, act)
        try:
            scene.check()
        except BaseException as error:
            error.add_note(f"killed before step {step}")
            raise
        step += killing.KILL_EVERY
    sys.stdout.write(str(step))


@pytest.mark.parametrize("act", ["verify", "adopt"])
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, act: str):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        " from test_orch_verify_kills import kill_everywhere; kill_everywhere(*sys.argv[1:])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path), act],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20 * PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10 * killing.KILL_EVERY
