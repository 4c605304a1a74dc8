"""Repositories inside a worktree: submodules, and clones that were made there.

Their commits are in no object of the worktree's own repository, and git shows nothing of them, or
only that they are there. Reads only.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .commands import git, with_settings

# What a partial clone lacks is fetched from where its own settings say, by the programs that they
# name: nothing is fetched here. Older releases of git know the second one only.
_ALONE = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_LINK_MODE = "160000"  # of a submodule in a tree (git-fast-import(1), "gitlink")
_NO_FILTER = {"clean": "", "smudge": "", "process": "", "required": "false"}


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
        problem = _problem(folder, work_tree=True, submodule=submodule)
        if problem is not None:
            found.append(Nested(os.path.relpath(folder, worktree), submodule, problem))
    for directory in _git_directories(modules):
        problem = (
            None if directory in seen else _problem(directory, work_tree=False, submodule=True)
        )
        if problem is not None:
            found.append(Nested(directory, True, problem))
    return tuple(found)


def changed_module(folder: str, commit: str) -> str | None:
    """What the working tree of a submodule has that the commit named does not; None when that is
    all. A check that fails counts, too."""
    try:
        if not _is_top(folder):
            return "it is no repository that git can read"
        if not _has_head(folder, ()) or _output_of(folder, "rev-parse", "HEAD") != commit:
            return "it is at another commit than the index says"
        if _changes(folder, submodule=True):
            return "it has changes that are not committed"
    except InboxOrchError as error:
        return error.message[:300]
    return None


def unpushed_submodules(worktree: str, base: str, head: str) -> tuple[str, ...]:
    """The paths, below a worktree, of which a commit says another commit of a submodule than its
    base does, and one that only the worktree has: it is in no remote and no tag there.

    Without that submodule's commit the work cannot be checked out elsewhere. What is not here at
    all, because the submodule was never fetched, cannot be lost here.
    """
    changed = _changed_links(worktree, base, head)
    if not changed:
        return ()
    modules = os.path.join(_output_of(worktree, "rev-parse", "--absolute-git-dir"), "modules")
    directories = list(_git_directories(modules))
    found = []
    for path, commit in changed:
        folder = os.path.join(worktree, path)
        own = [folder] if os.path.lexists(os.path.join(folder, ".git")) else []
        holders = [
            location
            for location in [("-C", each) for each in own]
            + [(f"--git-dir={each}",) for each in directories]
            if _has_commit(worktree, location, commit)
        ]
        if holders and not any(_is_elsewhere(worktree, each, commit) for each in holders):
            found.append(path)
    return tuple(found)


def _changed_links(worktree: str, base: str, head: str) -> list[tuple[str, str]]:
    """(path, commit) of each submodule that `head` has at another commit than `base`."""
    _, text = git(
        worktree,
        *("diff-tree", "-r", "-z", "--no-renames", "--ignore-submodules=none", base, head),
        reads=True,
    )
    fields = text.split("\0")
    links = []
    for entry, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, commit, _ = entry.split(" ")
        if mode == _LINK_MODE:
            links.append((path, commit))
    return links


def _has_commit(worktree: str, location: tuple[str, ...], commit: str) -> bool:
    arguments = ("cat-file", "-e", f"{commit}^{{commit}}")
    status, _ = git(
        worktree, *location, *arguments, reads=True, accepted=(0, 1, 128), environment=_ALONE
    )
    return status == 0


def _is_elsewhere(worktree: str, location: tuple[str, ...], commit: str) -> bool:
    _, own = git(
        worktree,
        *location,
        *("rev-list", "--max-count=1", commit, "--not", "--remotes", "--tags"),
        reads=True,
        environment=_ALONE,
    )
    return not own.strip()


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
                "io_error",
                f"{error.filename} cannot be read",
                hint="what is in it cannot be told; give yourself the right to read it",
                details={"path": folder},
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
        return os.path.realpath(_output_of(folder, "rev-parse", "--absolute-git-dir"))
    except InboxOrchError:
        return None


def _problem(folder: str, *, work_tree: bool, submodule: bool) -> str | None:
    """What a repository has of its own; None when all of it is in a remote of it as well.

    Ignored files count in a clone, which only the worker can have made; in a submodule they
    are what was built there. A clone may have come in an archive from anywhere, so none of the
    programs that its settings name is run. A check that fails counts as something of its own.
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
            environment=_ALONE,
        )
        if own.strip():
            return "it has commits that are in none of its remotes"
        if work_tree and _changes(folder, submodule=submodule):
            return "it has changes that are not committed"
    except InboxOrchError as error:
        return error.message[:300]
    return None


def _is_top(folder: str) -> bool:
    """Whether it is a working tree: git run in one that is broken answers for what is above."""
    top = _output_of(folder, "rev-parse", "--show-toplevel")
    return os.path.realpath(top) == os.path.realpath(folder)


def _has_head(folder: str, location: tuple[str, ...]) -> bool:
    arguments = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    status, _ = git(
        folder, *location, *arguments, reads=True, accepted=(0, 1, 128), environment=_ALONE
    )
    return status == 0


def _changes(folder: str, *, submodule: bool) -> bool:
    """Repositories further inside are looked at one by one, so that none is entered from here,
    where other filters would count."""
    _, text = git(
        folder,
        *("status", "--porcelain=v1", "-z", "--untracked-files=all"),
        *(("--ignore-submodules=none", "--ignored=no") if submodule else _INSIDE_A_CLONE),
        reads=True,
        environment=_ALONE if submodule else {**_ALONE, **_without_filters(folder)},
    )
    return bool(text)


_INSIDE_A_CLONE = ("--ignore-submodules=dirty", "--ignored=traditional")


def _without_filters(folder: str) -> dict[str, str]:
    """Variables that take out every filter of a repository."""
    _, text = git(
        folder,
        *("config", "--null", "--name-only", "--get-regexp", r"^filter\."),
        reads=True,
        accepted=(0, 1),
        environment=_ALONE,
    )
    drivers = {name.rpartition(".")[0] for name in text.split("\0") if name.count(".") > 1}
    settings = [(f"{d}.{key}", value) for d in sorted(drivers) for key, value in _NO_FILTER.items()]
    return with_settings(settings)


def _output_of(folder: str, *arguments: str) -> str:
    return git(folder, *arguments, reads=True, environment=_ALONE)[1].rstrip("\n")
