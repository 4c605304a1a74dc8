"""Scenes on a real repository, played again and again, each time killed at another moment.

A scene is prepared once and put aside; a copy is put back into the place where it was made, because
git and the database know that place. `kill_everywhere` takes functions apart (see `killing`), so
that it runs in a process of its own: `apart` starts it there.
"""

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inbox_orch.orch.git.repository import Repository
from sqlite import outside
from support import killing, users, warm
from support.commands import command_path
from support.timing import PATIENCE_SECONDS

REAL_GIT = shutil.which("git")
_TESTS = str(Path(__file__).resolve().parent.parent)


class Scene:
    """A repository with a database, at the moment before something is done to it; `with_user`:
    in which the user is at work, too."""

    with_user = False

    def __init__(self, folder: Path) -> None:
        self.folder, self.aside = folder / "here", folder / "aside"
        self.repository, self.worktrees = self.folder / "project", self.folder / "worktrees"
        self.database = self.repository / ".inbox" / "bus.db"
        self.standing: dict[str, Any] = {}
        """What is the user's, in a scene with a user."""

    def make(self) -> None:
        """Everything up to that moment, in `folder`; nothing stays open."""
        raise NotImplementedError

    def check(self) -> Any:
        """Judge what the kill has left, and that the next leader makes it whole."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make it, and put it aside."""
        self.folder.mkdir()
        self.make()
        if self.with_user:
            users.at_work(self.repository)
            self.standing = users.own(self.repository)
        shutil.move(self.folder, self.aside)

    def untouched(self) -> None:
        """What is the user's is as it was prepared."""
        assert not self.with_user or users.own(self.repository) == self.standing

    def put_back(self) -> None:
        """As it was prepared, in its own place. A copy has another identity."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.aside, self.folder, symlinks=True)
        identity = Repository(str(self.repository)).identity()
        outside.written(self.database, "UPDATE run SET repository_identity = ?", (identity,))


def kill_everywhere(
    scene: Scene,
    act: Callable[[], None],
    every_one_before: int = 0,
    every: int = killing.KILL_EVERY,
) -> set[Any]:
    """Kill `act` before one step after the other, from the first until it survives: each of the
    first ones, then one in `every`. Prints the last step; returns what the checks returned."""
    scene.prepare()
    killing.settle()
    step, killed, found = 1, True, set()
    while killed:
        scene.put_back()
        killed = killing.killed_before(step, act)
        try:
            found.add(scene.check())
        except BaseException as error:
            error.add_note(f"killed before step {step}")
            raise
        step += 1 if step < every_one_before else every
    sys.stdout.write(str(step))
    return found


def apart(function: Callable[..., None], *arguments: object) -> str:
    """Call a function of a test's module in a process of its own; what it has printed."""
    folder = str(Path(inspect.getfile(function)).parent)
    name = function.__name__
    code = (
        f"import sys; sys.path[:0] = [{_TESTS!r}, {folder!r}];"
        f" from {Path(inspect.getfile(function)).stem} import {name}; {name}(*sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=None if killing.KILL_EVERY == 1 else 4 * PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


_KILLING_GIT = """#!/bin/sh
printf . >>'{folder}/count'
read -r calls <'{folder}/count'
number=${{#calls}}
[ {number} -eq "$number" ] && [ {moment} = before ] && kill -9 "$PPID"
'{git}' "$@"
status=$?
[ {number} -eq "$number" ] && [ {moment} = after ] && kill -9 "$PPID"
exit $status
"""


def killing_git(folder: Path, number: int, moment: str) -> None:
    """A git in a folder whose call of this number kills its caller, `before` or `after` it has done
    its work. `folder` has how often git was called, in the file `count`."""
    folder.mkdir(exist_ok=True)
    (folder / "count").unlink(missing_ok=True)
    wrapper = folder / "git"
    text = _KILLING_GIT.format(folder=folder, git=REAL_GIT, number=number, moment=moment)
    wrapper.write_text(text)
    wrapper.chmod(0o755)


def killed_by_git(
    scene: Scene, folder: Path, number: int, moment: str, *line: str
) -> "subprocess.CompletedProcess[bytes]":
    """An `orch --json` with such a git; see `killing_git`."""
    killing_git(folder, number, moment)
    leader = warm.Forked(
        "command",
        [command_path("orch"), *line, "--json"],
        stderr=subprocess.PIPE,
        cwd=scene.repository,
        environment={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
    )
    stdout, stderr = leader.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(line, leader.wait(), stdout, stderr)
