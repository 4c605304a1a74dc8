"""Repositories inside a worktree: submodules, and clones that somebody has made there.

Their commits are in no object of the worktree's own repository, and git shows nothing of them, or
only that they are there. Reads only.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .commands import git, output_of


class Nested(NamedTuple):
    """A repository inside a worktree that has something of its own: commits that are in none of
    its remotes, changes that are not committed, or a state that cannot be told.

    `path` is below the worktree, or, for one without a working tree, that of its git directory.
    """

    path: str
    submodule: bool
    problem: str


def nested_repositories(worktree: str, admin: str) -> tuple[Nested, ...]:
    """Those in a worktree with something of their own. `admin` is its admin folder, in which git
    keeps the submodules (gitrepository-layout(5), `modules`)."""
    modules = os.path.join(admin, "modules")
    found, seen = [], set()
    for folder in _working_trees(worktree):
        directory = _git_directory(folder)
        seen.add(directory)
        submodule = directory is not None and directory.startswith(modules + os.sep)
        problem = _problem(folder, work_tree=True, ignored=not submodule)
        if problem is not None:
            found.append(Nested(os.path.relpath(folder, worktree), submodule, problem))
    for directory in _git_directories(modules):
        problem = None if directory in seen else _problem(directory, work_tree=False)
        if problem is not None:
            found.append(Nested(directory, True, problem))
    return tuple(found)


def _working_trees(worktree: str) -> Iterator[str]:
    """Every folder below the top that has a `.git` of its own."""
    waiting = [worktree]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name == ".git":
                        if folder != worktree:
                            yield folder
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except PermissionError as error:
            raise InboxOrchError(
                "io_error", f"{error.filename} cannot be read", details={"path": folder}
            ) from error
        except FileNotFoundError:
            continue


def _git_directories(modules: str) -> Iterator[str]:
    """Every git directory below a folder; one of a submodule may have more in it."""
    for folder, _, files in os.walk(modules):
        if "HEAD" in files and os.path.isdir(os.path.join(folder, "objects")):
            yield os.path.realpath(folder)


def _git_directory(folder: str) -> str | None:
    try:
        return os.path.realpath(output_of(folder, "rev-parse", "--absolute-git-dir"))
    except InboxOrchError:
        return None


def _problem(folder: str, *, work_tree: bool, ignored: bool = False) -> str | None:
    """What a repository has of its own; None when all of it is in a remote of it as well.

    Ignored files count in a clone, which nobody but the worker can have made; in a submodule they
    are what was built there.
    A check that fails counts as something of its own.
    """
    location = () if work_tree else (f"--git-dir={folder}",)
    try:
        if work_tree and not _is_top(folder):
            return "it is no repository that git can read"
        heads = ("HEAD",) if _has_head(folder, location) else ()
        _, own = git(
            folder,
            *location,
            *("rev-list", "--max-count=1", "--all", *heads, "--not", "--remotes"),
            reads=True,
        )
        if own.strip():
            return "it has commits that are in none of its remotes"
        if work_tree and _changes(folder, ignored=ignored):
            return "it has changes that are not committed"
    except InboxOrchError as error:
        return error.message[:300]
    return None


def _is_top(folder: str) -> bool:
    """Whether it is a working tree: git run in one that is broken answers for what is above."""
    top = output_of(folder, "rev-parse", "--show-toplevel")
    return os.path.realpath(top) == os.path.realpath(folder)


def _has_head(folder: str, location: tuple[str, ...]) -> bool:
    arguments = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    status, _ = git(folder, *location, *arguments, reads=True, accepted=(0, 1, 128))
    return status == 0


def _changes(folder: str, *, ignored: bool) -> bool:
    _, text = git(
        folder,
        *("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=none"),
        "--ignored=traditional" if ignored else "--ignored=no",
        reads=True,
    )
    return bool(text)
