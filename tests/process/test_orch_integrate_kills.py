"""`orch integrate` killed at every step: `reconcile`, or the next call, makes it whole.

Afterwards every accepted piece is merged once, each conflict has gone back to its task once, no
intent is open, and git works.
"""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.domain.integration import branch_of
from inbox_orch.orch.services.scheduler import Scheduler
from support.commands import command_path
from support.processes import until
from support.runs import Site, git, lock_files, worktree_paths
from support.scenes import Scene, apart, kill_everywhere, killed_by_git
from support.timing import PATIENCE_SECONDS


class Integration(Scene):
    """A run with accepted work: `a` and `c` merge, `b` conflicts with `a`."""

    def make(self) -> None:
        """Everything up to the integration."""
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "a", "b", "c")
        for key, item in site.dispatch(run).items():
            site.deliver(item, "c.txt" if key == "c" else "same", f"{key}\n")
        site.scheduler.reconcile(run)
        assert set(site.states(run).values()) == {"succeeded"}
        git(self.repository, "branch", "release")
        site.close()

    def integrate(self) -> None:
        """In this process."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.integrate(scheduler.run(None), onto="release")

    def check(self) -> None:
        """Reconcile, judge; integrate again, judge."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            assert scheduler.reconcile(run).finished_intents == 0
            self.judge(scheduler)
            scheduler.integrate(run, onto="release")
            scheduler.reconcile(run)
            self.judge(scheduler)
            states = {r.standing.task.key: r.standing.state for r in scheduler.status(run).rows}
            assert (states["a"], states["c"]) == ("succeeded", "succeeded")
            assert states["b"] in ("ready", "active", "backing_off")
            tip = git(self.repository, "rev-parse", branch_of(run))
        assert git(self.repository, "rev-parse", "release") == tip
        files = git(self.repository, "ls-tree", "-r", "--name-only", tip).split()
        assert set(files) == {"README.md", "same", "c.txt"}
        assert git(self.repository, "rev-list", "--count", "--merges", tip) == "2"
        assert git(self.repository, "status", "--porcelain") == ""
        git(self.repository, "fsck", "--strict")

    def judge(self, scheduler: Scheduler) -> None:
        """What must hold at every moment at which nobody is at work."""
        with scheduler.database.snapshot() as connection:
            intents = connection.execute("SELECT count(*) FROM intent WHERE closed_at IS NULL")
            assert intents.fetchone()[0] == 0, "an intent is open"
            told = connection.execute(
                "SELECT kind, attempt_id FROM event"
                " WHERE kind IN ('attempt_integrated', 'attempt_conflict')"
            ).fetchall()
            tries = connection.execute("SELECT attempts FROM task WHERE key = 'b'").fetchone()[0]
            paths = {
                row[0]
                for row in connection.execute(
                    "SELECT worktree_path FROM attempt WHERE state <> 'provision_failed'"
                )
            }
        assert len(told) == len(set(map(tuple, told))), "told twice"
        assert tries <= 2, "one conflict, one new attempt"
        assert worktree_paths(self.repository) == paths
        # The git whose leader was killed `before` it does its work outlives him, and works on.
        until(lambda: lock_files(self.repository / ".git") == [])
        assert scheduler.doctor(verify=True).problems == 0


def kill_at_every_step(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Integration(Path(folder))
    kill_everywhere(scene, scene.integrate)


def test_an_integration_killed_at_any_step_is_made_whole(tmp_path: Path):
    steps = int(apart(kill_at_every_step, tmp_path))
    assert steps > 100, f"too few steps: {steps}"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Integration:
    """The scene, put aside."""
    scene = Integration(tmp_path_factory.mktemp("scene"))
    scene.prepare()
    return scene


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_integration_killed_between_two_calls_of_git_is_made_whole(
    prepared: Integration, tmp_path: Path, moment: str
):
    number = 0
    while True:
        number += 1
        prepared.put_back()
        done = killed_by_git(
            prepared, tmp_path / "bin", number, moment, "integrate", "--onto", "release"
        )
        prepared.check()
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 11, done
            break
    assert number > 10


def test_several_at_once_merge_everything_once(prepared: Integration):
    prepared.put_back()
    line = [command_path("orch"), "integrate", "--onto", "release", "--json"]
    running = [
        subprocess.Popen(line, cwd=prepared.repository, stdout=subprocess.PIPE) for _ in range(6)
    ]
    answers = [json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0]) for process in running]

    assert {process.returncode for process in running} <= {0, 11}
    opened = [item["id"] for answer in answers for item in answer["data"]["dispatched"]]
    offered = {item["offered"] for answer in answers for item in answer["data"]["items"]} - {None}
    assert len(opened) == 1, "one of them has opened the attempt"
    assert offered == set(opened), "which those that come later name as well"
    prepared.check()
