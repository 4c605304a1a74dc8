"""Whether a repository is that of a run: by the refs of ours that a backup brings along, and a
clone does not. Changes nothing."""

import functools
import os
from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError

from .commands import output_of
from .repository import Repository


@functools.lru_cache(maxsize=64)
def copy_around(database: str, path: str, refs: tuple[str, ...]) -> str | None:
    """The working tree in which a database lies, if that is a copy of the run's repository, which
    is at `path`: another repository with `refs`, those of the run. None where all is as it was."""
    top = _working_tree_around(database)
    if top is None or os.path.realpath(path) == top or Repository(path).is_at(top):
        return None
    return top if has_refs(top, refs) else None


def _working_tree_around(database: str) -> str | None:
    folder = os.path.dirname(os.path.realpath(database))
    while not _is_top(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def _is_top(folder: str) -> bool:
    """Whether a folder is the top of a working tree, or a bare repository."""
    if os.path.lexists(os.path.join(folder, ".git")):
        return True
    return all(os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))


def has_refs(path: str, refs: Sequence[str]) -> bool:
    """Whether the repository at `path` has one of the refs, or one that begins so before a `/`."""
    try:
        there = output_of(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
        if not os.path.samefile(there, Repository(path).common_directory):
            return False  # git answers for a repository that lies above
        return bool(output_of(path, "for-each-ref", "--count=1", *refs))
    except (InboxOrchError, OSError):
        return False


def has_begun(path: str) -> bool:
    """Whether the repository has any branch or tag, and so a commit."""
    return bool(output_of(path, "for-each-ref", "--count=1"))
