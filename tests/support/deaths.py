"""A git that is killed in the same instant as the leader who started it, at an exact moment.

Git itself stops for us at these moments: it runs a hook or a filter, and what it has in its hands
then - the locks of a prepared transaction, a working tree that is half written - stays behind.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from inbox_orch.orch.git import marks
from support import warm
from support.commands import command_path
from support.processes import until
from support.scenes import REAL_GIT
from support.timing import PATIENCE_SECONDS

PREPARED = "reference-transaction"
"""All locks of a change of refs are held, and nothing is changed (githooks(5))."""
INDEX_WRITTEN = "post-index-change"
"""A working tree and its index are at another commit, the branch is not."""

# Our options switch hooks off; here they are ours. A hook that dies with its git would go on.
_GIT = """#!{python}
import os, sys
words = [w.replace("core.hooksPath=/dev/null", "core.hooksPath={folder}") for w in sys.argv[1:]]
os.environ["DEATH_LEADER"], os.environ["DEATH_GIT"] = str(os.getppid()), str(os.getpid())
os.execv({git!r}, ["git", *words])
"""
_HOOK = """#!/bin/sh
given=$(cat)
case "$1 $given" in *{words}*) kill -9 {whom} "$DEATH_GIT" "$PPID";; esac
"""
_FILTER = """#!/bin/sh
kill -9 {whom} "$DEATH_GIT" "$PPID"
"""


class Death:
    """What is needed for it, in a folder of its own. `alone`: git dies, and its leader lives."""

    def __init__(self, folder: Path, *, alone: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._whom = "" if alone else '"$DEATH_LEADER"'
        text = _GIT.format(python=sys.executable, folder=folder, git=REAL_GIT)
        _program(folder / "git", text)

    def at(self, hook: str, words: str = "") -> "Death":
        """When git runs this hook, and is told these words (a shell's pattern)."""
        _program(self._folder / hook, _HOOK.format(words=words, whom=self._whom))
        return self

    def while_writing(self, repository: Path, pattern: str) -> "Death":
        """When git is about to write a file of this name into a working tree."""
        program = self._folder / "filter"
        _program(program, _FILTER.format(whom=self._whom))
        subprocess.run(
            [str(REAL_GIT), "-C", repository, "config", "filter.deadly.smudge", program], check=True
        )
        attributes = repository / ".git" / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text(f"{pattern} filter=deadly\n")
        return self

    def over(self, repository: Path) -> None:
        """From now on git works as ever."""
        (repository / ".git" / "info" / "attributes").unlink(missing_ok=True)

    def of(self, repository: Path, *line: str) -> int:
        """How this `orch` ends; everybody is gone then."""
        leader = warm.Forked(
            "command",
            [command_path("orch"), *line, "--json"],
            stderr=subprocess.PIPE,
            cwd=repository,
            environment={
                **os.environ,
                "PATH": f"{self._folder}{os.pathsep}{os.environ['PATH']}",
            },
        )
        leader.communicate(timeout=PATIENCE_SECONDS)
        # The hook that has killed them is their child, and has their descriptors for a moment.
        until(lambda: nobody_marks(repository))
        self.over(repository)
        return leader.wait()


def nobody_marks(repository: Path) -> bool:
    """Whether every mark that is left is that of a git which is gone."""
    common = str(repository / ".git")
    there = [name for name in os.listdir(common) if name.startswith("inbox-orch-change-")]
    return len(list(marks.left(common))) == len(there)


def locks(repository: Path) -> list[str]:
    """What gits have left, and the marks of it, by their paths in the git directory."""
    folder = repository / ".git"
    found = [p for p in folder.rglob("*.lock") if not p.name.startswith("inbox-orch")]
    found += [*folder.glob("inbox-orch-change-*"), *folder.glob("packed-refs.new")]
    return sorted(str(path.relative_to(folder)) for path in found)


KILLED = -signal.SIGKILL


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
