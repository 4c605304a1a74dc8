"""Filling a worktree that git has added empty: its files, and its submodules if they are wanted.

Runs outside of the repository's lock: it takes nearly all of the time.
"""

import os
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .commands import disk_full, git, output_of
from .standing import require_here

_MOST_WORKERS = 8
# What git-lfs installs, taken out: the pointers stay what they are, also without its program.
_WITHOUT_LFS = (
    *("-c", "filter.lfs.smudge=", "-c", "filter.lfs.process="),
    *("-c", "filter.lfs.required=false"),
)
# No template either: one may bring hooks of the user's into the clone of a submodule.
_SUBMODULE_VARIABLES = {"GIT_TEMPLATE_DIR": "", "GIT_TERMINAL_PROMPT": "0"}


class Filling(NamedTuple):
    """What a worktree gets: `lfs` is whether files in LFS come as themselves, not as pointers."""

    lfs: bool = True
    submodules: bool = False


def fill(worktree: str, common: str, commit: str, filling: Filling, locks: tuple[int, ...]) -> None:
    """Check out the files of `commit`. `common` is the git directory that all worktrees share.
    `locks` stay held while git runs, even if we are killed.

    Errors: `git_failed` (also when git would work on files elsewhere), `disk_full`.
    """
    require_here(worktree, common)
    options = () if filling.lfs else _WITHOUT_LFS
    reset = ("reset", "--quiet", "--hard", "--no-recurse-submodules", commit)
    try:
        git(worktree, *_workers(worktree), *options, *reset, shared_locks=locks)
    except InboxOrchError as error:
        if error.code == "git_failed" and _lacks_space(worktree, commit):
            raise disk_full(worktree, error) from error
        raise
    if filling.submodules and os.path.lexists(os.path.join(worktree, ".gitmodules")):
        _add_submodules(worktree, common, options, locks)


def _lacks_space(worktree: str, commit: str) -> bool:
    """Whether the rest of the files is larger than what is free: of a file that it could not
    write, git does not say why."""
    listed = output_of(worktree, "ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    missing = 0
    for entry in filter(None, listed.split("\0")):
        facts, _, path = entry.partition("\t")
        size = facts.split()[-1]
        if size != "-" and not os.path.lexists(os.path.join(worktree, path)):
            missing += int(size)
    free = os.statvfs(worktree)
    return missing > free.f_bavail * free.f_frsize


def _workers(worktree: str) -> tuple[str, ...]:
    """Let git write files on all processors, unless the user has said on how many."""
    status, _ = git(worktree, "config", "--get", "checkout.workers", reads=True, accepted=(0, 1))
    workers = min(os.cpu_count() or 1, _MOST_WORKERS)
    return ("-c", f"checkout.workers={workers}") if status == 1 and workers > 1 else ()


def _add_submodules(
    worktree: str, common: str, options: tuple[str, ...], locks: tuple[int, ...]
) -> None:
    """Each submodule, and theirs. `submodule init` would write to the config that all worktrees
    share: the setting that makes every one active is given to the one command instead."""
    require_here(worktree, common)
    for where in (
        ("-c", "submodule.active=.", *options, "submodule", "--quiet", "update", "--checkout"),
        (*options, "submodule", "--quiet", "foreach", "--quiet", _INNER),
    ):
        git(worktree, *where, shared_locks=locks, environment=_SUBMODULE_VARIABLES)


_INNER = "git -c core.hooksPath=/dev/null submodule --quiet update --init --recursive --checkout"
