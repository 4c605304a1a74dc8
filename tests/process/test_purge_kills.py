"""A purge killed at any step: the same again takes out the rest; nothing is lost or dangling."""

import random
import signal
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.purge.scrub import MASK
from inbox_orch.orch.runs.config import Config
from support import killing
from support.lengths import LONG
from support.runs import Site, commit, git, lock_files
from support.scenes import Scene, apart, kill_everywhere, killed_by_git

SECRET = "s3cr3t-k3y-0f-ours"


class Leaked(Scene):
    """A secret in a message with a file, in a commit that was refused, and in what was salvaged."""

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run(config=Config(policy={"forbid_paths": ["*.key"]}))
        site.add(run, "a", body=f"Use {SECRET}", max_attempts=1)
        item = site.dispatch(run)["a"]
        token = site.claim(item)
        commit(item["worktree"], "a.key", f"{SECRET}\n")
        Path(item["worktree"], "left.txt").write_text(f"left {SECRET}\n")
        (self.folder / "note").write_text(SECRET)
        site.worker.done(item["thread"], token, body=SECRET, attach=[str(self.folder / "note")])
        site.scheduler.reconcile(run)
        site.scheduler.cleanup(run, force=True)
        assert site.task(run, "a").state == "failed"
        (self.folder / "value").write_text(f"{SECRET}\n")
        site.close()

    def act(self) -> None:
        with Bus.open(self.database) as bus:
            Scheduler(bus).purge([SECRET], yes=True)

    def check(self) -> None:
        self.act()
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            assert scheduler.doctor(verify=True).problems == 0
            assert not bus.doctor(verify=True).problems
            run = scheduler.run(None)
            (attempt,) = scheduler.show_task(run, "a").attempts
            with scheduler.database.snapshot() as snapshot:
                ids = snapshot.all("SELECT base, head, tree FROM patch")
        chain = f"refs/orch/attempts/{attempt.id}"
        # What the ledger names is kept by the refs, and what they keep is whole.
        for row in ids:
            git(self.repository, "merge-base", "--is-ancestor", row[1], chain)
            assert git(self.repository, "show", f"{row[2]}:a.key") == MASK
        salvage = f"refs/orch/salvage/{attempt.id}"
        assert git(self.repository, "show", f"{salvage}:left.txt") == f"left {MASK}"
        assert git(self.repository, "for-each-ref", "refs/orch/purged") == ""
        git(self.repository, "fsck", "--strict")
        names = git(self.repository, "rev-list", "--objects", "--all", "--no-object-names").split()
        lines = "".join(f"{name}\n" for name in names)
        reading = ["git", "-C", self.repository, "cat-file", "--batch"]
        kept = subprocess.run(reading, input=lines.encode(), capture_output=True, check=True)
        assert len(names) > 10
        assert SECRET.encode() not in kept.stdout
        folder = self.database.parent
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert not [path for path in files if SECRET.encode() in path.read_bytes()]
        assert lock_files(self.repository / ".git") == []


def at_every_step(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Leaked(Path(folder))
    every = 1 if killing.KILL_EVERY == 1 else 7 * killing.KILL_EVERY
    kill_everywhere(scene, scene.act, every=every)


def test_a_purge_killed_at_any_step_is_finished_by_the_next(tmp_path: Path):
    steps = int(apart(at_every_step, tmp_path))
    assert steps > 5 * killing.KILL_EVERY, f"too few steps: {steps}"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Leaked:
    scene = Leaked(tmp_path_factory.mktemp("scene"))
    scene.prepare()
    return scene


def test_whichever_git_it_dies_with(prepared: Leaked, tmp_path: Path):
    chance = random.Random(20261130)
    line = ("purge", "--yes", "--from", str(prepared.folder / "value"))
    for _ in range(60 if LONG else 4):
        prepared.put_back()
        number, moment = chance.randrange(1, 25), chance.choice(("before", "after"))
        ended = killed_by_git(prepared, tmp_path / "git", number, moment, *line)
        assert ended.returncode == -signal.SIGKILL
        prepared.check()
