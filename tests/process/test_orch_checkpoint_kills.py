"""`orch checkpoint make` and `restore` killed at any step, alone or in a call of git: the next
command comes to the end of it, and no state of the worktree is lost."""

import random
import shutil
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support.disks import filled, small_disk
from support.lengths import LONG
from support.processes import until
from support.runs import Site, git, lock_files
from support.scenes import Scene, apart, kill_everywhere, killed_by_git

KEPT = {"one.txt": b"one\r\n", "new/two.txt": b"two\n", "README.md": b"kept\n"}
MEDDLED = {"one.txt": b"meddled\n", "more/x.txt": b"more\n", "README.md": b"kept\n"}


class Meddled(Scene):
    """An attempt that has ended, in whose worktree somebody has meddled since its checkpoint."""

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
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.checkpoint_make(*scheduler.attempt_named("a", None), "as I have made it")
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
        assert git(self.repository, "status", "--porcelain") == ""
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


def at_many_steps(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Meddled(Path(folder))
    assert kill_everywhere(scene, scene.act) == {True, False}


def test_what_is_killed_at_any_step_comes_to_the_end(tmp_path: Path):
    assert int(apart(at_many_steps, tmp_path)) > 100


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Meddled:
    scene = Meddled(tmp_path_factory.mktemp("scene"))
    scene.prepare()
    return scene


def test_whichever_call_of_git_it_dies_in(prepared: Meddled, tmp_path: Path):
    chance = random.Random(20261130)
    for _ in range(50 if LONG else 6):
        prepared.put_back()
        number, moment = chance.randrange(1, 60), chance.choice(("before", "after"))
        line = ("checkpoint", "restore", "a/1/1")
        killed_by_git(prepared, tmp_path / "git", number, moment, *line)
        try:
            prepared.check()
        except BaseException as error:
            error.add_note(f"{moment} call {number}")
            raise


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
