"""A leader killed while it keeps a snapshot or goes back to one, at any step and any call of git,
alone or with its git: the same again comes to the end, and nothing is lost or left behind."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.orch.git import mending, snapshots, worktrees
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.git.worktrees import Place
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.deaths import PREPARED, Death, locks, nobody_marks
from support.disks import small_disk
from support.processes import until
from support.runs import commit, git, make_repository
from support.scenes import REAL_GIT, apart

REF = snapshots.ref_of("01A")
KEPT = {"one.txt": "on disk\n", "new/file.txt": "new\n", "README.md": "kept\n"}
SPOILED = {"one.txt": "spoiled\n", "more/x.txt": "more\n", "README.md": "kept\n"}


class Scene:
    """A worktree that was spoiled since its snapshot; put back into its own place each time."""

    def __init__(self, folder: Path) -> None:
        self.here, self.aside = folder / "here", folder / "aside"
        self.folder, self.worktree = self.here / "project", self.here / "work"
        self.repository = Repository(str(self.folder))
        self.here.mkdir(parents=True)
        make_repository(self.folder)
        git(self.folder, "worktree", "add", "--quiet", "-b", "work", str(self.worktree))
        commit(self.worktree, "one.txt", "one\n")
        self.write("one.txt", "staged\n")
        git(self.worktree, "add", "one.txt")
        for name, content in KEPT.items():
            self.write(name, content)
        self.kept = self.keep(None)
        self.said = git(self.worktree, "status", "--porcelain", "-uall")
        git(self.worktree, "add", "--all")
        git(self.worktree, "commit", "--quiet", "-m", "spoiled")
        shutil.rmtree(self.worktree / "new")
        for name, content in SPOILED.items():
            self.write(name, content)
        self.head = git(self.worktree, "rev-parse", "HEAD")
        self.standing = self.of_others()
        shutil.copytree(self.here, self.aside, symlinks=True)

    def again(self) -> None:
        """As it was prepared."""
        shutil.rmtree(self.here)
        shutil.copytree(self.aside, self.here, symlinks=True)

    def write(self, name: str, content: str) -> None:
        path = self.worktree / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)

    def keep(self, parent: str | None) -> snapshots.Snapshot:
        at = str(self.worktree)
        return snapshots.snapshot(self.repository, at, [], REF, "A stage ended", parent)

    def act(self) -> None:
        """Keep what is there, undo it in part, and go back."""
        self.keep(self.kept.commit)
        place = Place("work", str(self.worktree), self.kept.commit, "a reason")
        with worktrees.alone(self.repository, place) as hold:
            snapshots.put_back(self.repository, str(self.worktree), self.kept.tree, [], REF)
            snapshots.restore(self.repository, str(self.worktree), hold, self.kept.commit, [])

    def of_others(self) -> tuple[object, ...]:
        """What is the user's."""
        listed = git(self.folder, "for-each-ref", "refs/heads/main", "refs/stash", "refs/tags")
        names = ("index", "HEAD", "config")
        files = [(self.folder / ".git" / name).read_bytes() for name in names]
        return listed, git(self.folder, "status", "--porcelain"), files

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.worktree)): path.read_text()
            for path in self.worktree.rglob("*")
            if path.is_file() and path.name != ".git"
        }

    def check(self) -> None:
        """The same again comes to the end, with what was spoiled in a snapshot."""
        mending.mend(self.repository)
        self.act()
        assert self.files() == KEPT
        assert git(self.worktree, "status", "--porcelain", "-uall") == self.said
        assert git(self.worktree, "rev-parse", "HEAD") == self.kept.head
        assert git(self.worktree, "symbolic-ref", "HEAD") == "refs/heads/work"
        assert self.of_others() == self.standing
        chain = git(self.folder, "log", "--first-parent", "--format=%H", REF).split()
        assert self.kept.commit in chain
        spoiled = [name for name in chain if self.has(name, "more/x.txt", "more")]
        assert any(self.has(name, "one.txt", "spoiled") for name in spoiled)
        git(self.folder, "merge-base", "--is-ancestor", self.head, REF)
        # A git that was left behind by its leader alone was at work until a moment ago.
        until(lambda: nobody_marks(self.folder))
        mending.mend(self.repository)
        assert locks(self.folder) == []
        assert list((self.folder / ".git").glob("inbox-orch-work.lock")) == []

    def has(self, name: str, path: str, content: str) -> bool:
        listed = git(self.folder, "ls-tree", "-r", "--name-only", name).split("\n")
        return path in listed and git(self.folder, "show", f"{name}:{path}") == content


def tried(scene: Scene, killed: Callable[[], bool], what: str) -> bool:
    """One kill, and what must hold after it; whether it was one."""
    scene.again()
    was = killed()
    try:
        scene.check()
    except BaseException as error:
        error.add_note(what)
        raise
    return was


def at_every_step(folder: str) -> None:
    """The body of the first test, in a process of its own."""
    scene = Scene(Path(folder, "scene"))
    killing.settle()
    step, stride = 1, 1 if killing.KILL_EVERY == 1 else 61
    while tried(scene, partial(killing.killed_before, step, scene.act), f"step {step}"):
        step += stride
    sys.stdout.write(str(step))


def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path):
    assert int(apart(at_every_step, tmp_path)) > 100


_KILLING = """#!/bin/sh
printf . >>'{folder}/count'
read -r calls <'{folder}/count'
number=${{#calls}}
[ {number} -eq "$number" ] && [ {moment} = before ] && kill -9 "$PPID"
'{git}' "$@"
status=$?
[ {number} -eq "$number" ] && [ {moment} = after ] && kill -9 "$PPID"
exit $status
"""


def ended(act: Callable[[], None], folder: Path) -> bool:
    """Act in a process whose git is in a folder; whether that was killed."""
    process = os.fork()
    if process == 0:
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL
    return status != 0


def at_every_call(folder: str) -> None:
    scene = Scene(Path(folder, "scene"))
    programs = Path(folder, "bin")
    programs.mkdir()
    killing.settle()
    number, stride = 1, 1 if killing.KILL_EVERY == 1 else 29

    def killed() -> bool:
        (programs / "count").unlink(missing_ok=True)
        moment = "before" if number % 2 else "after"
        text = _KILLING.format(folder=programs, git=REAL_GIT, number=number, moment=moment)
        (programs / "git").write_text(text)
        (programs / "git").chmod(0o755)
        return ended(scene.act, programs)

    while tried(scene, killed, f"call {number}"):
        number += stride
    sys.stdout.write(str(number))


def test_whichever_call_of_git_it_dies_at(tmp_path: Path):
    assert int(apart(at_every_call, tmp_path)) > 50


def with_its_git(folder: str, pattern: str) -> None:
    scene = Scene(Path(folder, "scene"))
    programs = Path(folder, "death")
    Death(programs).at(PREPARED, pattern)

    def killed() -> bool:
        was = ended(scene.act, programs)
        until(lambda: nobody_marks(scene.folder))
        assert locks(scene.folder)
        return was

    assert tried(scene, killed, pattern)


def test_a_chain_that_was_being_made_longer_is_made_longer(tmp_path: Path):
    apart(with_its_git, tmp_path, "prepared*refs/orch/attempts")


def test_a_branch_that_was_being_taken_back_is_taken_back(tmp_path: Path):
    apart(with_its_git, tmp_path, "prepared*refs/heads/work")


def test_a_full_disk_loses_nothing(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        scene = Scene(Path(disk.path, "scene"))
        shutil.rmtree(scene.aside)
        spoiled, chain = scene.files(), git(scene.folder, "rev-parse", REF)
        with disk.full(), filled(scene.here / "filler"):
            with pytest.raises(InboxOrchError) as caught:
                scene.act()
            assert caught.value.code == "disk_full"
            assert scene.files() == spoiled
            assert git(scene.folder, "rev-parse", REF) == chain
        scene.check()


@contextlib.contextmanager
def filled(path: Path) -> Iterator[None]:
    """Not a byte is left on the disk of this file."""
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    yield
    path.unlink()
