"""`orch integrate` killed at every step: `reconcile`, or the next call, makes it whole.

Afterwards every accepted piece is merged once, each conflict has gone back to its task once, no
intent is open, and git works.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.leader.scheduler import Scheduler
from support.commands import command_path
from support.lengths import LONG
from support.processes import until, until_idle
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
        with scheduler.database.snapshot() as snapshot:
            intents = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
            assert intents[0][0] == 0, "an intent is open"
            told = snapshot.all(
                "SELECT kind, attempt_id FROM event"
                " WHERE kind IN ('attempt_integrated', 'attempt_conflict')"
            )
            tries = snapshot.one("SELECT attempts FROM task WHERE key = 'b'")[0]
            paths = {
                row[0]
                for row in snapshot.stream(
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


class Held:
    """`orch integrate` whose git stands still just before it moves a branch, until it is let go."""

    def __init__(self, scene: Integration, folder: Path, tree: Path | None) -> None:
        """`tree` has the branch checked out."""
        folder.mkdir()
        self.scene, self._tree = scene, tree
        fifo = folder / "go"
        os.mkfifo(fifo)
        # Open at both ends, so that nobody waits for a git that is not there.
        self._go = os.open(fifo, os.O_RDWR)
        program, begun = folder / "git", folder / "begun"
        program.write_text(
            "#!/bin/sh\n"
            'case " $* " in *" update-ref "*/integration*|*" merge "*)\n'
            f"    [ -e '{begun}' ] || {{ touch '{begun}'; read -r go <'{fifo}'; }};;\n"
            "esac\n"
            f"exec '{shutil.which('git')}' \"$@\"\n"
        )
        program.chmod(0o700)
        self.process = subprocess.Popen(
            [command_path("orch"), "integrate", "--json"],
            cwd=scene.repository,
            env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        until(begun.exists)

    def let_go(self) -> None:
        """Git does its work."""
        os.write(self._go, b"go\n")

    def close(self) -> None:
        """Nobody is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        os.close(self._go)

    def check(self) -> None:
        """Everything is whole, or the working tree that came forward is."""
        if self._tree is None:
            self.scene.check()
        else:
            assert git(self._tree, "status", "--porcelain") == ""
            names = sorted(path.name for path in self._tree.iterdir())
            assert names == [".git", "README.md", "c.txt", "same"]

    def brought_in(self) -> list[str]:
        """The tasks that were told to have come in; nothing is left open."""
        with Bus.open(self.scene.database) as bus, bus.database.snapshot() as snapshot:
            begun = snapshot.all("SELECT 1 FROM intent WHERE closed_at IS NULL")
            rows = snapshot.all(
                "SELECT task.key FROM event JOIN attempt ON attempt.id = event.attempt_id"
                " JOIN task ON task.id = attempt.task_id"
                " WHERE event.kind = 'attempt_integrated' ORDER BY task.key"
            )
        assert begun == []
        return [row[0] for row in rows]


@pytest.fixture(params=["nowhere", "checked out"])
def held(request, prepared: Integration, tmp_path: Path):
    """With the branch of the integration checked out nowhere, or in a working tree."""
    prepared.put_back()
    tree = None if request.param == "nowhere" else tmp_path / "tree"
    if tree is not None:
        with Bus.open(prepared.database) as bus:
            branch = branch_of(Scheduler(bus).run(None))
        git(prepared.repository, "worktree", "add", "--quiet", "-b", branch, str(tree))
    held = Held(prepared, tmp_path / "bin", tree)
    yield held
    held.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_branch_is_moved_is_answered_when_that_is_done(held: Held, number: int):
    """To the whole group, as a terminal sends it: git goes on all the same."""
    os.killpg(held.process.pid, number)
    held.let_go()
    out, error = held.process.communicate(timeout=PATIENCE_SECONDS)

    assert held.process.returncode == 128 + number
    assert (json.loads(out)["ok"], error) == (False, b"")
    assert held.brought_in() == ["a", "c"]
    held.check()


def test_whoever_comes_after_a_killed_leader_waits_for_his_git(held: Held):
    held.process.kill()
    held.process.wait()
    line = [command_path("orch"), "reconcile", "--json"]
    with subprocess.Popen(line, cwd=held.scene.repository, stdout=subprocess.PIPE) as after:
        try:
            until_idle(after.pid)
            assert after.poll() is None
        finally:
            held.let_go()
        assert json.loads(after.communicate(timeout=PATIENCE_SECONDS)[0])["ok"]

    assert held.brought_in() == ["a", "c"]
    held.check()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_integration_killed_between_two_calls_of_git_is_made_whole(
    prepared: Integration, tmp_path: Path, moment: str
):
    # In the long form each one; otherwise the other moment meets the others.
    stride = 1 if LONG else 2
    number = 1 if moment == "before" else stride
    while True:
        prepared.put_back()
        done = killed_by_git(
            prepared, tmp_path / "bin", number, moment, "integrate", "--onto", "release"
        )
        prepared.check()
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 11, done
            break
        number += stride
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
