"""`orch integrate` killed at every step: `reconcile`, or the next call, makes it whole.

Afterwards every accepted piece is merged once, each conflict has gone back to its task once, no
intent is open, and git works.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.domain.integration import branch_of
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.services.scheduler import Scheduler
from support import killing
from support.commands import command_path
from support.runs import Site, git, lock_files, worktree_paths

REAL_GIT = shutil.which("git")


class Scene:
    """A run with accepted work: `a` and `c` merge, `b` conflicts with `a`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository = folder / "project"
        self.database = self.repository / ".inbox" / "bus.db"

    def prepare(self) -> None:
        """Everything up to the integration; nothing stays open."""
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "a", "b", "c")
        for key, item in site.dispatch(run).items():
            site.deliver(item, "c.txt" if key == "c" else "same", f"{key}\n")
        site.scheduler.reconcile(run)
        assert set(site.states(run).values()) == {"succeeded"}
        git(self.repository, "branch", "release")
        site.close()

    def copy_from(self, prepared: Path) -> None:
        """The prepared scene in its own place again. A copy has another identity."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(prepared, self.folder, symlinks=True)
        identity = Repository(str(self.repository)).identity()
        connection = sqlite3.connect(self.database)
        with connection:
            connection.execute("UPDATE run SET repository_identity = ?", (identity,))
        connection.close()

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
        assert lock_files(self.repository / ".git") == [], "a lock is left"
        assert scheduler.doctor(verify=True).problems == 0


def kill_everywhere(folder: str) -> None:
    """The body of the test, in a process of its own, because it takes functions apart."""
    made = Scene(Path(folder, "here"))
    made.folder.mkdir()
    made.prepare()
    aside = Path(folder, "aside")
    shutil.move(made.folder, aside)
    step, killed = 1, True
    while killed:
        made.copy_from(aside)
        killed = killing.killed_before(step, made.integrate)
        try:
            made.check()
        except BaseException as error:
            error.add_note(f"killed before step {step}")
            raise
        step += killing.KILL_EVERY
    sys.stdout.write(str(step))


def test_an_integration_killed_at_any_step_is_made_whole(tmp_path: Path):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
        " from test_orch_integrate_kills import kill_everywhere; kill_everywhere(sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 100, f"too few steps: {done.stdout}"


WRAPPER = """#!/bin/sh
printf . >>'{folder}/count'
number=$(($(wc -c <'{folder}/count')))
[ {number} -eq "$number" ] && [ {moment} = before ] && kill -9 "$PPID"
'{git}' "$@"
status=$?
[ {number} -eq "$number" ] && [ {moment} = after ] && kill -9 "$PPID"
exit $status
"""


def integrate_with(scene: Scene, folder: Path, number: int, moment: str):
    """`orch integrate` with a git whose call of this number kills its caller."""
    folder.mkdir(exist_ok=True)
    (folder / "count").unlink(missing_ok=True)
    wrapper = folder / "git"
    wrapper.write_text(WRAPPER.format(folder=folder, git=REAL_GIT, number=number, moment=moment))
    wrapper.chmod(0o755)
    return subprocess.run(
        [command_path("orch"), "integrate", "--onto", "release", "--json"],
        cwd=scene.repository,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> tuple[Path, Scene]:
    """A scene, put aside; it can only be played in the place where it was made."""
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Tester")
            patch.setenv(f"GIT_{role}_EMAIL", "tester@example.invalid")
        folder = tmp_path_factory.mktemp("scene")
        scene = Scene(folder / "here")
        scene.folder.mkdir()
        scene.prepare()
        shutil.move(scene.folder, folder / "aside")
        return folder / "aside", scene


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_integration_killed_between_two_calls_of_git_is_made_whole(
    prepared: tuple[Path, Scene], tmp_path: Path, moment: str
):
    aside, scene = prepared
    number = 0
    while True:
        number += 1
        scene.copy_from(aside)
        done = integrate_with(scene, tmp_path / "bin", number, moment)
        scene.check()
        if done.returncode != -signal.SIGKILL:
            assert done.returncode == 11, done
            break
    assert number > 10


def test_several_at_once_merge_everything_once(prepared: tuple[Path, Scene]):
    aside, scene = prepared
    scene.copy_from(aside)
    line = [command_path("orch"), "integrate", "--onto", "release", "--json"]
    running = [
        subprocess.Popen(line, cwd=scene.repository, stdout=subprocess.PIPE) for _ in range(6)
    ]
    answers = [json.loads(process.communicate(timeout=120)[0]) for process in running]

    assert {process.returncode for process in running} <= {0, 11}
    conflicts = [item for answer in answers for item in answer["data"]["items"] if item["offered"]]
    assert len(conflicts) == 1, "one of them has opened the attempt"
    scene.check()
