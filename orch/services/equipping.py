"""What a worktree gets beside the files of its commit, as the run's config says.

Works on a worktree that nobody has been given yet, in its attempt's lock; stores nothing.
"""

from collections.abc import Callable
from typing import Any

from ..domain.config import Config
from ..git import worktrees
from ..git.copying import copy_untracked
from ..git.filling import Filling
from ..git.repository import Repository
from ..git.worktrees import Hold, Place


def equip(
    repository: Repository,
    place: Place,
    hold: Hold,
    config: Config,
    is_ours: Callable[[str], bool],
) -> dict[str, Any]:
    """Make the worktree with all that a worker is to find there.

    Returns what the attempt's details say of it: `not_copied`, paths with reasons, and
    `untracked_at_start`, which the worker need not commit. `is_ours` tells files of the database.
    Errors: those of `worktrees.make`; `disk_full`, `read_only`, `io_error`.
    """
    filling = Filling(lfs=config.lfs == "smudge", submodules=config.submodules)
    worktrees.make(repository, place, hold, filling)
    details: dict[str, Any] = {}
    if config.copy:
        source = repository.working_tree_at(None)
        copied = copy_untracked(source, place.path, config.copy, is_ours)
        if copied.left_out:
            details["not_copied"] = [entry._asdict() for entry in copied.left_out]
    if config.copy or config.setup:
        untracked = repository.untracked_paths(place.path)
        if untracked:
            details["untracked_at_start"] = list(untracked)
    return details
