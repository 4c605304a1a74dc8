"""Dispatches, clean-ups and fetches at once, round after round, and nobody fails.

A short form of each runs always; `INBOX_ORCH_LONG=1` makes it more at once, 20 or 25 rounds long.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from support.commands import command_path
from support.lengths import LONG
from support.processes import start_json
from support.runs import Site, add_task, branches, commit, git, lock_files, run_init, worktree_paths
from support.timing import PATIENCE_SECONDS
from support.warm import Forked

AT_ONCE = 24 if LONG else 16
CROWD = 8
FETCHERS = 3


@pytest.fixture
def crowd(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A repository with several remotes, for commands, which go by the real clock."""
    site.close()
    # How long writers queue on a loaded machine is not what is tried here.
    monkeypatch.setenv("INBOX_BUSY_TIMEOUT", "120")
    for name in ("origin", *(f"r{number}" for number in range(FETCHERS))):
        git(site.folder, "clone", "-q", "--bare", str(site.repository), f"{name}.git")
        git(site.repository, "remote", "add", name, str(site.folder / f"{name}.git"))
        git(site.repository, "fetch", "-q", name)
    return site


def open_run(site: Site, *keys: str) -> str:
    """A run with these tasks; its name."""
    with Bus.open(site.office.path) as bus:
        scheduler = Scheduler(bus)
        answer = run_init(
            scheduler,
            title="A run",
            repository=str(site.repository),
            worktree_root=str(site.worktrees),
        )
        name: str = answer.data["run"]["name"]
        for key in keys:
            add_task(scheduler, scheduler.run(name), key_name=key, title="T")
        return name


def orch(site: Site, *line: str) -> Forked:
    """A command that has begun."""
    command = command_path("orch")
    return start_json(command, *line, cwd=site.repository, stderr=subprocess.PIPE)


def fetch(site: Site, remote: str) -> "subprocess.Popen[bytes]":
    """The same of git, which waits for our lock as we do."""
    lock = str(site.repository / ".git" / "inbox-orch.lock")
    return subprocess.Popen(
        ["flock", lock, "git", "fetch", "-q", remote],
        cwd=site.repository,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def all_end_well(processes: Sequence["Forked | subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        out, error = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0, (process.args, out, error)


def config_of(site: Site) -> bytes:
    return (site.repository / ".git" / "config").read_bytes()


@pytest.mark.parametrize("at_once", [1, AT_ONCE], ids=["one_command", "many_commands"])
def test_many_attempts_at_once_from_a_remote_branch(crowd: Site, at_once: int):
    config, made = config_of(crowd), 0
    for _ in range(20 if LONG else 1):
        keys = [f"t{number}" for number in range(AT_ONCE)]
        run = open_run(crowd, *keys)
        line = ("dispatch", "--run", run, "--base", "origin/main")
        named = [(key,) for key in keys] if at_once > 1 else [()]
        all_end_well([orch(crowd, *line, *which) for which in named])
        made += AT_ONCE
        assert len(branches(crowd.repository)) == made
        assert len(worktree_paths(crowd.repository)) == made
        assert lock_files(crowd.repository / ".git") == []
    assert config_of(crowd) == config
    git(crowd.repository, "fsck", "--strict")


def end_all(site: Site, runs: Sequence[str]) -> None:
    """Every attempt of these runs fails for good, and leaves nothing in its worktree."""
    with Bus.open(site.office.path, agent="w1") as bus:
        scheduler = Scheduler(bus)
        for name in runs:
            run = scheduler.run(name)
            for row in scheduler.status(run).rows:
                assert row.attempt is not None
                claimed = bus.claim(row.attempt.thread_id, mailboxes=["workers"])
                bus.fail(claimed.thread.id, claimed.lease.token, body="no", fatal=True)
            scheduler.reconcile(run)


@pytest.mark.skipif(shutil.which("flock") is None, reason="the fetches take our lock with flock(1)")
def test_dispatches_cleanups_and_fetches_at_once(crowd: Site, tmp_path: Path):
    config = config_of(crowd)
    ended: list[str] = []
    for number in range(25 if LONG else 2):
        begun = [open_run(crowd, "a") for _ in range(CROWD)]
        tip = advance_remotes(crowd, tmp_path / f"clone{number}")
        all_end_well(
            [
                *(orch(crowd, "dispatch", "--run", run, "--base", "origin/main") for run in begun),
                *(orch(crowd, "cleanup", "--run", run) for run in ended),
                *(fetch(crowd, f"r{i}") for i in range(FETCHERS)),
            ]
        )
        assert git(crowd.repository, "rev-parse", "r0/main") == tip
        assert len(worktree_paths(crowd.repository)) == CROWD
        assert lock_files(crowd.repository / ".git") == []
        end_all(crowd, begun)
        ended = begun
    assert config_of(crowd) == config
    git(crowd.repository, "fsck", "--strict")


def advance_remotes(site: Site, clone: Path) -> str:
    """A new commit on each of the remotes that are fetched; its id."""
    git(site.folder, "clone", "-q", str(site.folder / "r0.git"), str(clone))
    tip = commit(clone, f"{clone.name}.txt", clone.name)
    for number in range(FETCHERS):
        git(clone, "push", "-q", str(site.folder / f"r{number}.git"), "main")
    return tip
