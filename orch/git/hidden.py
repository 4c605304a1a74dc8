"""What git was told not to look at: files marked assume-unchanged or skip-worktree.

`git status` shows no edit of such a file. Here the marks are taken off in a copy of the index,
and git is asked by that; the worktree's own index stays as it is. Changes nothing.
"""

import contextlib
import os
from collections.abc import Collection, Iterator

from .commands import git
from .failures import temporary_folder


def hidden_changes(worktree: str) -> list[str]:
    """Paths of tracked files that differ from the index and are marked so that git does not
    show it; bytes that are not UTF-8 as surrogates. A file that a sparse checkout leaves out is
    no change.

    Error `git_failed`.
    """
    marked = marked_paths(worktree)
    if not marked:
        return []
    left_out = _left_out(worktree, marked)
    looked_at = [path for path in marked if path not in left_out]
    return _differing(worktree, looked_at) if looked_at else []


def marked_paths(worktree: str) -> dict[str, str]:
    """Paths that git does not compare, with their letter in `git ls-files -v`: a small one for
    assume-unchanged, `S` or `s` for skip-worktree. Error `git_failed`."""
    _, text = git(worktree, "ls-files", "-v", "-z", reads=True)
    entries = (entry for entry in text.split("\0") if entry)
    return {e[2:]: e[0] for e in entries if e[0].islower() or e[0] == "S"}


@contextlib.contextmanager
def unmarked_index(worktree: str, index: str, paths: Collection[str]) -> Iterator[dict[str, str]]:
    """An environment in which git compares these files: with a copy of the index `index` that
    has no marks on them, if there are any."""
    if not paths:
        yield {}
        return
    with temporary_folder() as folder:
        within = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        copy_index(index, within["GIT_INDEX_FILE"])
        unmark(worktree, within, paths)
        yield within


def copy_index(index: str, copy: str) -> None:
    """A copy of an index with the time of the original, by which git tells the files that were
    changed too soon after it was written for their own times to show it."""
    import shutil

    shutil.copy2(index, copy)


def unmark(worktree: str, within: dict[str, str], paths: Collection[str]) -> None:
    """Take the marks off these files in a copy of the index, which `within` names to git."""
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    for mark in ("--no-assume-unchanged", "--no-skip-worktree"):
        git(worktree, "update-index", mark, "-z", "--stdin", environment=within, given=listed)


def _left_out(worktree: str, marked: dict[str, str]) -> set[str]:
    """Files that are not there because of a sparse checkout."""
    _, sparse = git(
        worktree, "config", "--type=bool", "core.sparseCheckout", reads=True, accepted=(0, 1)
    )
    if sparse.strip() != "true":
        return set()
    return {
        path
        for path, tag in marked.items()
        if tag in "Ss" and not os.path.lexists(os.path.join(worktree, path))
    }


def _differing(worktree: str, paths: list[str]) -> list[str]:
    _, index = git(
        worktree, "rev-parse", "--path-format=absolute", "--git-path", "index", reads=True
    )
    with unmarked_index(worktree, index.rstrip("\n"), paths) as within:
        # With the copy alone: nothing of the worktree's is locked or written.
        git(worktree, "update-index", "-q", "--refresh", environment=within, accepted=(0, 1))
        _, text = git(worktree, "diff-files", "--name-only", "-z", environment=within)
    wanted = set(paths)
    return [path for path in text.split("\0") if path in wanted]
