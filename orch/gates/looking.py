"""Looks at a repository: at the tree of a commit, or at a folder as it lies there.

Reads only, and runs nothing of the repository. An interpreter is asked in isolated mode, in the
root folder, so that no file of the repository has a part in the answer.
"""

import functools
import os
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence

from ..git import browsing
from ..git.repository import Repository
from .look import DEPTH, MOST_BYTES, PASSED_OVER

_ANSWER_SECONDS = 20.0
_HAS_MODULE = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)"


class Machine:
    """The programs that gates would find, by the variables that they are run with."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self.imports = functools.cache(self._imports)

    def has(self, program: str) -> bool:
        """Whether a program of this name is on PATH."""
        return shutil.which(program, path=self._environment.get("PATH", "")) is not None

    def _imports(self, interpreter: str, module: str) -> bool:
        """Whether the interpreter has a module; False for one that cannot be run."""
        program = shutil.which(interpreter, path=self._environment.get("PATH", ""))
        if program is None:
            return False
        try:
            asked = subprocess.run(
                [program, "-I", "-c", _HAS_MODULE, module],
                cwd="/",
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_ANSWER_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return asked.returncode == 0


class TreeLook:
    """A look at the tree of a commit, whatever is checked out."""

    def __init__(self, repository: Repository, tree: str, machine: Machine) -> None:
        """`tree` names a commit or a tree. Error `git_failed`."""
        self._folder = repository.path
        self._entries = browsing.entries(self._folder, tree, DEPTH, PASSED_OVER)
        self.has, self.imports = machine.has, machine.imports

    @property
    def paths(self) -> Sequence[str]:
        """Its files and folders."""
        return sorted(self._entries)

    def text(self, path: str, most_bytes: int = MOST_BYTES) -> str | None:
        """What a plain file says. Error `git_failed`."""
        entry = self._entries.get(path)
        found = None if entry is None else browsing.content(self._folder, entry, most_bytes)
        return None if found is None else found.decode("utf-8", "replace")


class FolderLook:
    """A look at a folder as it lies there, whether git knows its files or not."""

    def __init__(self, folder: str, machine: Machine) -> None:
        self._folder = folder
        self.has, self.imports = machine.has, machine.imports

    @functools.cached_property
    def paths(self) -> Sequence[str]:
        """Its files and folders; links to folders are not followed, and what cannot be read is
        not there."""
        found: list[str] = []
        level = [""]
        for _ in range(DEPTH):
            inner: list[str] = []
            for below in level:
                for name, is_folder in self._names(below):
                    if len(found) < browsing.MOST_ENTRIES:
                        found.append(below + name)
                        if is_folder and name not in PASSED_OVER:
                            inner.append(below + name + "/")
            level = inner
        return sorted(found)

    def text(self, path: str, most_bytes: int = MOST_BYTES) -> str | None:
        """What a plain file of the folder says; no link is followed, nor a pipe waited for."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(os.path.join(self._folder, path), flags)
        except OSError:
            return None
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most_bytes:
                return None
            return os.read(descriptor, most_bytes).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _names(self, below: str) -> list[tuple[str, bool]]:
        try:
            with os.scandir(os.path.join(self._folder, below)) as listing:
                return [(each.name, each.is_dir(follow_symlinks=False)) for each in listing]
        except OSError:
            return []
