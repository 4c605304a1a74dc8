"""Whether a repository is that of a run: by the refs of ours that a backup brings along, and a
clone does not. Changes nothing."""

import functools
import os

from inbox_orch.shared.errors import InboxOrchError

from .commands import output_of
from .repository import Repository


def mark_of(run_id: str) -> str:
    """The ref that keeps what a run begins at, and tells whose run it is."""
    return f"refs/orch/run/{run_id}"


def is_of_run(path: str, identity: str | None, run_id: str, run_name: str) -> bool:
    """Whether the repository at `path` is the one that a run was opened for: the same git
    directory, or one that was put back from a backup, with the refs of the run in it."""
    if not os.path.isdir(path):
        return False
    try:
        same = Repository(path).identity() == identity
    except (OSError, InboxOrchError):
        return False
    return same or _has_marks(path, run_id, run_name)


@functools.lru_cache(maxsize=64)
def copy_around(database: str, path: str, run_id: str, run_name: str) -> str | None:
    """The working tree in which a database lies, if that is a copy of the run's repository, which
    is at `path`: another repository with the refs of the run. None where all is as it was."""
    top = _working_tree_around(database)
    if top is None or os.path.realpath(path) == top or Repository(path).is_at(top):
        return None
    return top if _has_marks(top, run_id, run_name) else None


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


def _has_marks(path: str, run_id: str, run_name: str) -> bool:
    try:
        there = output_of(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
        if not os.path.samefile(there, Repository(path).common_directory):
            return False  # git answers for a repository that lies above
        own = (mark_of(run_id), f"refs/heads/orch/{run_name}/")
        return bool(output_of(path, "for-each-ref", "--count=1", *own))
    except (InboxOrchError, OSError):
        return False
