"""What gits that were killed together with their leader have left is put right, by their marks.

Locks go; a working tree that was coming forward is brought to the end, or back to where it was.
"""

import os
import time
from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError

from . import administration, forwarding, marks, worktrees
from .commands import FAILURES, git
from .failures import named_failures
from .forwarding import Forward
from .marks import Mark
from .repository import Repository

PATIENCE_SECONDS = 2.0
"""So long a git at work in the repository is waited for, which may have a lock that is in doubt."""


def mend(repository: Repository) -> None:
    """Put right what is left, as far as it is proven whose it is; the rest stays for the next
    time. Takes the lock of the repository where a working tree is concerned."""
    common = repository.common_directory
    marks.forget_left(common, _soon())
    if any(mark.forward is not None for mark in marks.left(common)):
        with worktrees.locked(repository) as lock:
            mend_trees(repository, (lock,))


def mend_trees(
    repository: Repository, shared_locks: Sequence[int] = (), *, finish: bool = True
) -> None:
    """Working trees that were coming forward, in the lock of the repository. `finish`: one where
    only the branch is missing gets that; otherwise its files are taken back."""
    common = repository.common_directory
    for mark in marks.left(common):
        if mark.forward is None:
            continue
        locks = (*shared_locks, mark.descriptor)
        try:
            forward = _here(repository, Forward(**mark.forward))
            with named_failures(forward.tree):
                if _is_mended(repository, mark, forward, locks, finish):
                    marks.forget(mark)
        except InboxOrchError as error:
            if error.code not in (*FAILURES, "io_error"):
                raise


def _here(repository: Repository, forward: Forward) -> Forward:
    """The main working tree is where the repository is now: it may have been moved or copied."""
    is_main = not os.path.dirname(forward.index_lock)
    return forward._replace(tree=repository.path) if is_main else forward


def admin_of(repository: Repository, tree: str) -> str:
    """The git directory of a working tree, in that of the repository; "" of the main one."""
    if os.path.realpath(tree) == os.path.realpath(repository.path):
        return ""
    entry = administration.folder_of(tree)
    common = os.path.realpath(repository.common_directory)
    return "" if entry is None else os.path.relpath(entry, common)


def _soon() -> float:
    return time.monotonic() + PATIENCE_SECONDS


def _is_mended(
    repository: Repository,
    mark: Mark,
    forward: Forward,
    locks: tuple[int, ...],
    finish: bool,
) -> bool:
    """Whether nothing is left to do."""
    common = repository.common_directory
    done = marks.locks_forgotten(common, mark, _soon())
    if not os.path.lexists(os.path.join(forward.tree, ".git")):
        # A disk that is not mounted comes back; a worktree that was taken away does not.
        return not os.path.isdir(os.path.dirname(os.path.join(common, forward.index_lock)))
    if not _is_concerned(repository, forward):
        return done and _lock_forgotten(repository, mark, forward) is not False
    there = forwarding.standing(repository, forward)
    lock = _own_lock(repository, mark, forward)
    if lock is False:
        return False  # somebody is at work there
    if there is not None:
        forwarding.put_right(forward, there, cut_short=lock is True)
    if _lock_forgotten(repository, mark, forward) is False:
        return False
    if there is not None and there.at_new:
        moved = finish and _branch_moved(forward, locks)
        if not moved and not _taken_back(forward, locks):
            return False
    git(forward.tree, "update-index", "-q", "--refresh", accepted=(0, 1, 128), shared_locks=locks)
    return done


def _is_concerned(repository: Repository, forward: Forward) -> bool:
    """Whether the working tree is of this repository and no other's (of which this may be a copy),
    and still has the branch checked out, where it was before."""
    if not repository.is_at(forward.tree):
        return False
    ref = f"refs/heads/{forward.branch}"
    status, head = git(
        forward.tree, "symbolic-ref", "--quiet", "HEAD", reads=True, accepted=(0, 1, 128)
    )
    here = status == 0 and head.strip() == ref
    return here and repository.ref_commit(ref) == forward.old


def _own_lock(repository: Repository, mark: Mark, forward: Forward) -> bool | None:
    """True when the index is locked by the git that is gone, None when it is not, False when
    it is by somebody else."""
    path = os.path.join(repository.common_directory, forward.index_lock)
    differing = forwarding.differences(repository, forward.old, forward.new)
    try:
        if not marks.is_its_own(mark, forward.index_lock, os.lstat(path)):
            return False
        if not forwarding.is_own_index_lock(forward, path, differing):
            return False
    except FileNotFoundError:
        return None
    used = marks.in_use(repository.common_directory, mark, forward.index_lock, _soon())
    return not used


def _lock_forgotten(repository: Repository, mark: Mark, forward: Forward) -> bool | None:
    """As for `_own_lock`; the lock of the git that is gone goes."""
    found = _own_lock(repository, mark, forward)
    if found:
        os.unlink(os.path.join(repository.common_directory, forward.index_lock))
    return found


def _branch_moved(forward: Forward, locks: tuple[int, ...]) -> bool:
    """All files are there: the branch comes after, if it is still where it was."""
    moving = ("update-ref", "-m", "orch integrate", f"refs/heads/{forward.branch}")
    return _done(forward, (*moving, forward.new, forward.old), locks)


def _taken_back(forward: Forward, locks: tuple[int, ...]) -> bool:
    """All files are there: they become those of the branch again."""
    reading = ("-c", "submodule.recurse=false", "read-tree", "-m", "-u")
    return _done(forward, (*reading, forward.new, forward.old), locks)


def _done(forward: Forward, words: Sequence[str], locks: tuple[int, ...]) -> bool:
    status, _ = git(forward.tree, *words, accepted=(0, 1, 128), shared_locks=locks, unbroken=True)
    return status == 0
