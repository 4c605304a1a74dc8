"""Files that git shows as modified although they were not changed: what a checkout writes does
not come back as it is committed (line ends, a file that is no pointer of LFS).

Judged by content: such a file is just what git writes when it checks the index out, and in every
new worktree it is shown the same way. Changes nothing.
"""

import os
import stat
from collections.abc import Collection

from inbox_orch.shared.errors import InboxOrchError

from .commands import FAILURES, exact_names, git
from .failures import temporary_folder
from .standing import require_here

_BLOCK_BYTES = 1024 * 1024


def untouched(worktree: str, common: str, paths: Collection[str]) -> set[str]:
    """Those of the paths, below the top of a working tree and not staged, whose file is as a
    checkout writes it. None of them where git cannot write them, for want of a filter, say.
    `common` is the git directory that all worktrees share.

    Error `git_missing`, `io_error`; `git_failed` when git looks at the files of another folder.
    """
    if not paths:
        return set()
    require_here(worktree, common)
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    with temporary_folder() as folder:
        written = ("checkout-index", "--quiet", "-z", "--stdin", f"--prefix={folder}/")
        try:
            git(worktree, *exact_names(worktree), *written, reads=True, given=listed)
        except InboxOrchError as error:
            if error.code not in FAILURES:
                raise
            return set()
        return {
            path
            for path in paths
            if _same(os.path.join(worktree, path), os.path.join(folder, path))
        }


def _same(one: str, other: str) -> bool:
    """Whether two files have the same kind, right to be run, and content."""
    try:
        first, second = os.lstat(one), os.lstat(other)
        if stat.S_ISLNK(first.st_mode) and stat.S_ISLNK(second.st_mode):
            return os.readlink(one) == os.readlink(other)
        if not (stat.S_ISREG(first.st_mode) and stat.S_ISREG(second.st_mode)):
            return False
        runs = [bool(found.st_mode & stat.S_IXUSR) for found in (first, second)]
        return runs[0] == runs[1] and first.st_size == second.st_size and _same_bytes(one, other)
    except OSError:
        return False


def _same_bytes(one: str, other: str) -> bool:
    with open(one, "rb") as first, open(other, "rb") as second:
        while True:
            block = first.read(_BLOCK_BYTES)
            if block != second.read(_BLOCK_BYTES):
                return False
            if not block:
                return True
