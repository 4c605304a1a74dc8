"""What can be asked of a repository and a machine to find set-up and gates, and what was found.
Pure.

Nothing of the repository is run for an answer.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .definitions import Gate

DEPTH = 4
"""So many folders deep the paths of a repository are looked at."""
MOST_BYTES = 512 * 1024
"""A file of settings that is larger is passed over."""
PASSED_OVER = (".git", ".hg", ".tox", ".venv", "node_modules", "site-packages", "venv", "vendor")
"""Folders with these names are not looked into."""
VENV_PYTHON = ".venv/bin/python"
"""The interpreter of the environment that set-up makes in a worktree."""


class Look(Protocol):
    """A repository at one commit, and the machine that its gates are to run on."""

    @property
    def paths(self) -> Sequence[str]:
        """Its files and folders, in order, at most `DEPTH` deep and bounded in number."""

    def text(self, path: str, most_bytes: int = MOST_BYTES) -> str | None:
        """What a plain file says; None where there is none, or one that is larger."""

    def has(self, program: str) -> bool:
        """Whether a program of this name is on PATH."""

    def imports(self, interpreter: str, module: str) -> bool:
        """Whether a Python that is on PATH, called outside of the repository, has a module."""


class Found(NamedTuple):
    """What a repository says by itself. `setup` is one line for the shell, None where nothing has
    to be installed; `why` says where it comes from. `notes` are sentences about what was seen and
    not used. `packages` are paths of the Python packages and modules that are tested
    (`src/NAME`, `NAME`, `NAME.py`), or the `FOLDER/package.json` of those for Node."""

    setup: str | None = None
    why: str = ""
    gates: tuple[Gate, ...] = ()
    notes: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def names_at_top(look: Look) -> frozenset[str]:
    """What lies at the top of the repository."""
    return frozenset(path for path in look.paths if "/" not in path)


def table(source: object, *keys: str) -> Mapping[str, object]:
    """The table at the end of these keys; an empty one where something else is, or nothing."""
    for key in keys:
        source = source.get(key) if isinstance(source, Mapping) else None
    return source if isinstance(source, Mapping) else {}


def texts(source: object) -> list[str]:
    """The strings of a list; none where something else stands."""
    return [each for each in source if isinstance(each, str)] if isinstance(source, list) else []
