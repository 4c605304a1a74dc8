"""`orch checkpoint make` and `restore` killed at any step, and at any call of git: the next command
comes to the end of it, no state of the worktree is lost, and what is the user's is as it was.
KILL_EVERY=1 kills at every step."""

import shutil
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.disks import filled, small_disk
from support.processes import until
from support.runs import Site, git, lock_files
from support.scenes import Scene, apart
from support.sweeps import sweep

KEPT = {"one.txt": b"one\r\n", "new/two.txt": b"two\n", "README.md": b"kept\n"}
MEDDLED = {"one.txt": b"meddled\n", "more/x.txt": b"more\n", "README.md": b"kept\n"}


class Meddled(Scene):
    """An attempt that has ended, in whose worktree somebody has meddled since its checkpoint."""

    with_user = True

    @property
    def worktree(self) -> Path:
        return next(path for path in self.worktrees.rglob("a-1*") if (path / ".git").exists())

    def write(self, contents: dict[str, bytes]) -> None:
        for name, content in contents.items():
            path = self.worktree / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "a")
        site.fail(site.dispatch(run)["a"], fatal=True)
        site.scheduler.reconcile(run)
        self.write(KEPT)
        site.scheduler.checkpoint_make(*site.scheduler.attempt_named("a", None))
        shutil.rmtree(self.worktree / "new")
        self.write(MEDDLED)
        git(self.worktree, "add", "--all")
        git(self.worktree, "commit", "--quiet", "-m", "meddled")
        site.close()

    def act(self) -> None:
        """Keep what lies there, and go back."""
        self.make_one()
        self.go_back()

    def make_one(self) -> None:
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.checkpoint_make(*scheduler.attempt_named("a", None), "as I have made it")

    def go_back(self) -> None:
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run, checkpoint = scheduler.checkpoint_named("a/1/1", None)
            scheduler.checkpoint_restore(run, checkpoint)

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.worktree)): path.read_bytes()
            for path in self.worktree.rglob("*")
            if path.is_file() and path.name != ".git"
        }

    def check(self) -> bool:
        """Whether it had gone back."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            back = self.judged(scheduler)
            self.act()
            assert self.judged(scheduler)
            assert self.keeps(scheduler, MEDDLED)
        return back

    def judged(self, scheduler: Scheduler) -> bool:
        found = self.files()
        assert found in (KEPT, MEDDLED), "a half of each"
        with scheduler.database.snapshot() as snapshot:
            intents = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
        assert intents[0][0] == 0, "an intent is open"
        said = git(self.worktree, "status", "--porcelain", "-uall")
        assert (said == "") == (found == MEDDLED)
        assert git(self.worktree, "symbolic-ref", "HEAD").startswith("refs/heads/orch/")
        git(self.repository, "fsck", "--strict")
        until(lambda: lock_files(self.repository / ".git") == [])
        assert scheduler.doctor(verify=True).problems == 0
        return found == KEPT

    def keeps(self, scheduler: Scheduler, wanted: dict[str, bytes]) -> bool:
        """Whether some checkpoint has these files, byte for byte."""
        found = scheduler.checkpoint_list(scheduler.run(None))
        names = [git(self.repository, "ls-tree", "-r", "--name-only", f.tree) for f in found]
        return any(
            set(listed.split("\n")) == wanted.keys()
            and all(
                git(self.repository, "show", f"{each.tree}:{name}") == content.decode().rstrip("\n")
                for name, content in wanted.items()
            )
            for each, listed in zip(found, names, strict=True)
        )


def killed(folder: str, *names: str) -> None:
    """The body of the test, in a process of its own."""
    for name in names:
        place = Path(folder, name)
        place.mkdir()
        scene = Meddled(place)
        sweep(scene, scene.make_one if name == "checkpoint" else scene.go_back, 6, name=name)


EACH = [("checkpoint",), ("restore",)]


@pytest.mark.parametrize("names", EACH if killing.KILL_EVERY == 1 else [("checkpoint", "restore")])
def test_what_is_killed_at_any_step_comes_to_the_end(tmp_path: Path, names: tuple[str, ...]):
    apart(killed, tmp_path, *names)


def test_a_full_disk_loses_nothing_and_the_next_command_comes_to_the_end(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        scene = Meddled(Path(disk.path))
        scene.folder.mkdir()
        scene.make()
        with disk.full(), filled(scene.folder / "filler"):
            with pytest.raises(InboxOrchError) as caught:
                scene.act()
            assert caught.value.code == "disk_full"
            assert scene.files() == MEDDLED
        scene.check()
