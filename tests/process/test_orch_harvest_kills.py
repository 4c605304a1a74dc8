"""A leader killed while it commits what a worker left, alone or with its git, at any step; and
several at once: all of it is committed once, and nothing is lost or left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support.commands import command_path, run
from support.deaths import KILLED, PREPARED, Death, locks
from support.disks import small_disk
from support.processes import until
from support.runs import Site, commit, git, lock_files
from support.scenes import REAL_GIT, Scene, apart
from support.sweeps import sweep
from support.timing import PATIENCE_SECONDS

LEFT = {"README.md": "changed\n", "new.txt": "new\n", "a b/c": "c\n"}


def leave(site: Site, item) -> None:
    """A worker that has committed one file, and leaves others."""
    commit(item["worktree"], "own.txt", "own\n")
    for name, content in LEFT.items():
        path = Path(item["worktree"], name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


class Harvesting(Scene):
    """A submitted attempt and a failed one, each with something that was left."""

    with_user = True

    def make(self) -> None:
        """Everything up to the harvest."""
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "done")
        site.add(run, "late", max_attempts=1)
        for key, item in site.dispatch(run, harvest=True).items():
            leave(site, item)
            if key == "late":
                site.fail(item)
        site.scheduler.reconcile(run)
        with site.scheduler.database.snapshot() as snapshot:
            task = site.scheduler.desk.task(snapshot, run, "done")
        (attempt,) = site.attempts(run, task.key)
        site.done({"thread": attempt.thread_id, "mailbox": attempt.mailbox})
        site.close()

    def check(self) -> None:
        """The next leader does the same, and all is well."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            adopt(scheduler)
            assert scheduler.doctor(verify=True).problems == 0
            for row in scheduler.status(run).rows:
                judge(self.repository, scheduler, row.standing.task)
        until(lambda: lock_files(self.repository / ".git", self.worktrees) == [])
        git(self.repository, "fsck", "--strict")


def judge(repository: Path, scheduler: Scheduler, task) -> None:
    """One commit of the worker's, one that was made for it, and nothing left."""
    assert task.state == "succeeded"
    run = scheduler.run(None)
    (attempt,) = scheduler.show_task(run, task.key).attempts
    assert git(repository, "rev-parse", str(attempt.branch)) == attempt.head_commit
    subjects = git(repository, "log", "--format=%s", f"{attempt.base_commit}..{attempt.branch}")
    assert subjects.split("\n") == [f"Do {task.key}", "Write own.txt"]
    for name, content in LEFT.items():
        assert git(repository, "show", f"{attempt.head_commit}:{name}") == content.rstrip("\n")
    assert git(str(attempt.worktree_path), "status", "--porcelain") == ""
    harvested = json.loads(str(attempt.details))["harvested"]
    assert harvested == {"commit": attempt.head_commit, "files": 3}


def adopt(scheduler: Scheduler) -> None:
    """What came late, unless that was done before the kill."""
    try:
        scheduler.adopt(scheduler.run(None), "late")
    except InboxOrchError as error:
        if error.code != "invalid_state":
            raise


def act(scene: Scene) -> None:
    """What a leader does, in this process."""
    with Bus.open(scene.database) as bus:
        scheduler = Scheduler(bus)
        scheduler.reconcile(scheduler.run(None))
        adopt(scheduler)


def killed(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Harvesting(Path(folder))
    sweep(scene, lambda: act(scene), 8, name="harvest")


def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path):
    apart(killed, tmp_path)


@pytest.fixture
def prepared(tmp_path: Path) -> Harvesting:
    scene = Harvesting(tmp_path / "scene")
    scene.folder.parent.mkdir()
    scene.prepare()
    return scene


def test_several_at_once_commit_it_once(prepared: Harvesting):
    prepared.put_back()
    line = [command_path("orch"), "reconcile", "--json"]
    running = [
        subprocess.Popen(line, cwd=prepared.repository, stdout=subprocess.PIPE) for _ in range(5)
    ]
    answers = [json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0]) for process in running]

    assert [process.returncode for process in running] == [0] * 5
    assert sum(answer["data"]["verified"] for answer in answers) == 1
    prepared.check()


# -- together with its git -------------------------------------------------------------------


def left_by(site: Site):
    """An attempt that is done, with something left; its run."""
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, harvest=True)["a"]
    leave(site, item)
    site.done(item)
    return run


def is_committed_once(site: Site, run) -> None:
    assert locks(site.repository) == []
    judge(site.repository, site.scheduler, site.task(run, "a"))
    git(site.repository, "fsck", "--strict")


@pytest.mark.parametrize("again", ["reconcile", "dispatch"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_branch_that_was_being_moved_is_moved(
    site: Site, tmp_path: Path, again: str, alone: bool
):
    run_here = left_by(site)
    death = Death(tmp_path / "death", alone=alone).at(PREPARED, "prepared*refs/heads/orch/*/a/1")

    ended = death.of(site.repository, "reconcile")
    assert alone or ended == KILLED
    assert alone or any(name.endswith("/a/1.lock") for name in locks(site.repository))
    assert site.attempts(run_here, "a")[0].state == "submitted"
    assert run(again, folder=site.repository, program="orch").code == 0

    is_committed_once(site, run_here)


@pytest.mark.parametrize("again", ["reconcile", "dispatch"])
def test_an_index_that_was_being_written_is_written(site: Site, tmp_path: Path, again: str):
    run_here = left_by(site)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(
        f"#!{sys.executable}\n"
        "import os, signal, subprocess, sys\n"
        'if "--index-info" in sys.argv:\n'
        '    asking = ["rev-parse", "--path-format=absolute", "--git-path", "index.lock"]\n'
        f'    told = subprocess.check_output([{str(REAL_GIT)!r}, "-C", sys.argv[2], *asking])\n'
        '    with open(told.rstrip(), "wb") as lock:\n'
        '        lock.write(b"DIRC, and the rest is missing")\n'
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f'os.execv({str(REAL_GIT)!r}, ["git", *sys.argv[1:]])\n'
    )
    (folder / "git").chmod(0o755)
    leader = subprocess.run(
        [command_path("orch"), "reconcile"],
        cwd=site.repository,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )

    assert leader.returncode == KILLED
    assert any(name.endswith("index.lock") for name in locks(site.repository))
    assert run(again, folder=site.repository, program="orch").code == 0
    is_committed_once(site, run_here)


def test_a_full_disk_loses_nothing(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        site = Site(disk.path)
        run_here = left_by(site)
        with disk.full():
            done = run("reconcile", "--json", folder=site.repository, program="orch")
            assert done.value["error"]["code"] == "disk_full"
        assert site.attempts(run_here, "a")[0].state == "submitted"
        (attempt,) = site.attempts(run_here, "a")
        assert {name: Path(str(attempt.worktree_path), name).read_text() for name in LEFT} == LEFT

        assert run("reconcile", folder=site.repository, program="orch").code == 0
        is_committed_once(site, run_here)
        site.close()
