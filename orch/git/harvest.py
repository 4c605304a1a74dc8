"""Committing what a worker has left in its worktree: all of it, as its own `git add` would, in one
commit on the attempt's own branch.

The commit is made beside the worktree, with a copy of its index. Then the index gets what was
committed, and the branch, compared and swapped, comes last: killed before that, all is as if the
worker had added its files. Nothing is ever taken out of the working tree.
"""

import os
import stat
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import filters, manifest, marks, mending
from .commands import NO_ANSWER, exact_names, git, output_of, pause
from .condition import begun
from .failures import shown, temporary_folder
from .hidden import copy_index, marked_paths, unmark
from .integrating import working_trees
from .own_refs import pseudo_refs
from .repository import COMMITTER, Found, Repository
from .standing import own_directory, require_here

MAX_BYTES = 1024**3
MOST_FILES = 100_000
AUTHORS_AT = "inbox-orch.invalid"
"""Where authors have their addresses; `.invalid` leads nowhere (RFC 2606)."""
_MOST_COMMITS = 10
_MOST_NAMED = 5
_PATIENCE_PAUSES = 60  # of some hundredths of a second each
# From so many files on they are synced together at the end: one by one takes minutes.
_MANY_FILES = 200
_UNSYNCED = ("-c", "core.fsyncMethod=writeout-only")
_LINK_MODE = "160000"  # of a submodule in a tree (git-fast-import(1), "gitlink")


class Unfit(Exception):
    """What was left cannot be committed for the worker. The text says why, in part of a line."""


class Left(NamedTuple):
    """What a worker has left: its worktree and its own branch, with what was untracked there from
    the start; and the commit that it is to become, by whom (a name that an agent may have), when
    in seconds since 1970, and with which message. With `base_commit` nothing goes through a filter
    that the attempt has brought in since (that is refused), and whatever set-up made is left out,
    however much that was."""

    worktree: str
    branch: str
    untracked_at_start: Sequence[str]
    author: str
    at: int
    message: str
    base_commit: str | None = None


class Harvest(NamedTuple):
    """What was committed for a worker: the newest commit, and how many files that changed."""

    commit: str
    files: int


def commit_left(
    repository: Repository, left: Left, found: Found, shared_locks: Sequence[int]
) -> None:
    """Commit what is not committed, in the hold of `worktrees.alone`. `found` is how the worktree
    was seen; it has to be looked at again, since nothing keeps its worker from writing.

    Raises `Unfit`; the working tree and the branch are as before then. Errors: those of git where
    this machine is the cause (`disk_full`, `read_only`, `git_failed`), `io_error`.
    """
    head = _head_to_build_on(repository, left, found)
    try:
        paths = _paths(repository, left)
        with temporary_folder() as folder:
            within = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
            tree = _tree_with(repository, left.worktree, paths, within)
            differing = _differences(left.worktree, head, tree)
            _refuse_repositories(differing)
            if not differing.keys() <= paths.keys():
                return  # the index was changed meanwhile: what is new there was not looked at
            gone = dict.fromkeys(paths, ("0", "0" * len(tree)))
            entries = gone | _entries(left.worktree, paths, within)
        _set(repository, left, head, tree, entries, shared_locks)
    except InboxOrchError as error:
        if error.code != "git_failed" or error.details.get("status") == NO_ANSWER:
            raise
        _require_store(left.worktree)
        raise Unfit(error.message[:500]) from error


def harvest_in(repository: Repository, head: str, base: str) -> Harvest | None:
    """What was committed for a worker at the end of its history; None when `head` is its own.
    By the commits themselves: who was killed could write down nothing else."""
    _, text = git(
        repository.path,
        *("rev-list", "--first-parent", f"--max-count={_MOST_COMMITS}"),
        *("--format=tformat:%ae %ce %P", f"{base}..{head}"),
        reads=True,
    )
    before = None
    for line in text.splitlines()[1::2]:
        author, committer, parent, *others = (*line.split(" "), "")
        ours = author.endswith(f"@{AUTHORS_AT}") and committer == COMMITTER["GIT_COMMITTER_EMAIL"]
        if not ours or any(others):
            break
        before = parent
    if before is None:
        return None
    return Harvest(head, len(_differences(repository.path, before, head)))


# -- what may be committed -------------------------------------------------------------------


def _head_to_build_on(repository: Repository, left: Left, found: Found) -> str:
    """The head, if all that speaks against another commit on it is what is not committed."""
    if found.head is None:
        raise Unfit("HEAD names no commit")
    if not found.contains_base:
        raise Unfit("HEAD does not build on the base commit")
    status, ref = git(left.worktree, "symbolic-ref", "--quiet", "HEAD", reads=True, accepted=(0, 1))
    if status != 0:
        raise Unfit(f"HEAD is detached, and not on {left.branch}")
    if ref.strip() != f"refs/heads/{left.branch}":
        there = shown(ref.strip()).removeprefix("refs/heads/")
        raise Unfit(f"HEAD is on {there}, and not on {left.branch}")
    trees = [tree for tree in working_trees(repository) if tree.branch == left.branch]
    if len(trees) > 1:
        raise Unfit(f"{left.branch} is checked out in {len(trees)} working trees")
    _refuse_unfinished(left.worktree)
    return found.head


def _refuse_unfinished(worktree: str) -> None:
    doing = begun(str(own_directory(worktree)), pseudo_refs(worktree))
    if doing:
        raise Unfit(f"a {doing[0]} is in progress")
    unmerged = output_of(worktree, "ls-files", "-z", "--unmerged").split("\0")
    names = dict.fromkeys(entry.partition("\t")[2] for entry in unmerged if entry)
    if names:
        raise Unfit(f"conflicts are not resolved in {_named(list(names))}")


def _paths(repository: Repository, left: Left) -> dict[str, bool]:
    """What is not committed: paths, and whether there is a file (or it is gone)."""
    dirty = repository.dirt(left.worktree, left.untracked_at_start)
    if left.base_commit is not None:
        dirty = _without_set_up(left, dirty)
    _refuse_set_up(left, dirty)
    found, size = {}, 0
    for path in dirty:
        at = _file_at(left.worktree, path)
        found[path] = at is not None
        size += 0 if at is None else at.st_size
    if len(found) > MOST_FILES:
        raise Unfit(f"there are {len(found)} files, and at most {MOST_FILES} are committed")
    if size > MAX_BYTES:
        raise Unfit(f"it is {size >> 20} MiB, and at most {MAX_BYTES >> 20} are committed")
    _refuse_brought_in(left, [path for path, there in found.items() if there])
    return found


def _refuse_brought_in(left: Left, paths: Sequence[str]) -> None:
    if left.base_commit is None:
        return
    brought = filters.brought_in(left.worktree, left.base_commit, paths)
    if brought:
        names = ", ".join(sorted({shown(each.filter) for each in brought})[:_MOST_NAMED])
        raise Unfit(
            f"{_named([each.path for each in brought])} would go through a filter that the attempt"
            f" itself has brought in ({names})"
        )


def _without_set_up(left: Left, dirty: list[str]) -> list[str]:
    """Without what set-up made and nobody has added since; of that the attempt has stored no more
    than the first paths."""
    known = manifest.names(left.worktree)
    if known.isdisjoint(dirty):
        return dirty
    tracked = set(output_of(left.worktree, "ls-files", "-z").split("\0"))
    return [path for path in dirty if path not in known or path in tracked]


def _refuse_set_up(left: Left, dirty: Sequence[str]) -> None:
    """What set-up made or copied is not the worker's work: a secret may be among it."""
    known = manifest.names(left.worktree)
    if left.untracked_at_start and not known:
        raise Unfit("which files were there from the start cannot be told any more")
    theirs = [path for path in dirty if path in known]
    if theirs:
        raise Unfit(f"set-up has made {_named(theirs)}")


def _file_at(worktree: str, path: str) -> os.stat_result | None:
    """The file or link of this name; None where there is none. Raises `Unfit` for what is in a
    repository of its own, and for what git cannot hold."""
    at = worktree
    for folder in path.rstrip("/").split("/")[:-1]:
        at = os.path.join(at, folder)
        if os.path.islink(at) or not os.path.isdir(at):
            return None
        _refuse_repository(at, path)
    at = os.path.join(worktree, path.rstrip("/"))
    try:
        found = os.lstat(at)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        _refuse_repository(at, path)
        return None
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise Unfit(f"{shown(path)} is neither a file nor a link")
    return found


def _refuse_repository(folder: str, path: str) -> None:
    if os.path.lexists(os.path.join(folder, ".git")):
        raise Unfit(f"{shown(path)} is a repository of its own, or in one")


def _refuse_repositories(differing: Mapping[str, tuple[str, str]]) -> None:
    """A link to a commit of another repository says nothing about where that is."""
    links = [path for path, modes in differing.items() if _LINK_MODE in modes]
    if links:
        raise Unfit(f"{_named(links)} is a submodule, or was one")


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(shown, paths[:_MOST_NAMED])) + more


# -- the tree, in a copy of the index --------------------------------------------------------


def _tree_with(
    repository: Repository, worktree: str, paths: Mapping[str, bool], within: dict[str, str]
) -> str:
    """The tree that the worktree's index has with these paths as they are now. `within` names
    the copy of the index to git."""
    require_here(worktree, repository.common_directory, within)
    index = os.path.join(str(own_directory(worktree)), "index")
    if os.path.exists(index):
        copy_index(index, within["GIT_INDEX_FILE"])
    marked = [path for path in marked_paths(worktree) if path in paths]
    if marked:
        unmark(worktree, within, marked)
    many = len(paths) > _MANY_FILES
    options = (*exact_names(worktree), *(_UNSYNCED if many else ()), "update-index", "-z")
    # What is gone goes first: a folder may have taken the place of a file.
    for there, verb in ((False, ("--force-remove",)), (True, ("--add", "--remove", "--replace"))):
        listed = b"".join(os.fsencode(path) + b"\0" for path in paths if paths[path] is there)
        git(worktree, *options, *verb, "--stdin", environment=within, given=listed)
    if many:
        os.sync()
    return git(worktree, "write-tree", environment=within)[1].strip()


def _entries(
    worktree: str, paths: Collection[str], within: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """(mode, object id) of those of these paths that are in the copy of the index."""
    _, text = git(worktree, "ls-files", "-z", "--stage", environment=within, reads=True)
    found = {}
    for entry in filter(None, text.split("\0")):
        facts, path = entry.split("\t", 1)
        mode, name, _ = facts.split(" ")
        if path in paths:
            found[path] = (mode, name)
    return found


def _differences(folder: str, one: str, other: str) -> dict[str, tuple[str, str]]:
    """The paths in which two trees differ, with the modes there (git-diff-tree(1))."""
    _, text = git(folder, "diff-tree", "-r", "-z", "--no-renames", one, other, reads=True)
    words = text.split("\0")
    facts = (entry.removeprefix(":").split(" ") for entry in words[:-1:2])
    return {path: (f[0], f[1]) for f, path in zip(facts, words[1::2], strict=False)}


# -- the index and the branch ----------------------------------------------------------------


def _set(
    repository: Repository,
    left: Left,
    head: str,
    tree: str,
    entries: Mapping[str, tuple[str, str]],
    shared_locks: Sequence[int],
) -> None:
    """Let the index, and then the branch, have the tree. If another process has moved the branch,
    it stays where that has put it."""
    common, ref = repository.common_directory, f"refs/heads/{left.branch}"
    commit = head
    if tree != output_of(left.worktree, "rev-parse", f"{head}^{{tree}}"):
        commit = _commit_of(left, tree, head)
    admin = mending.admin_of(repository, left.worktree)
    index_lock = os.path.join(admin, "index.lock")
    locks = {**marks.of_refs(common, {ref: commit}, admin), index_lock: None}
    with marks.marked(common, locks) as mark:
        held = (*shared_locks, *mark.descriptors)
        add_to_index(left.worktree, common, entries, held)
        if commit != head:
            _move(repository, left.worktree, (ref, commit, head), held)


def _commit_of(left: Left, tree: str, head: str) -> str:
    author = {
        "GIT_AUTHOR_NAME": left.author,
        "GIT_AUTHOR_EMAIL": f"{left.author}@{AUTHORS_AT}",
        "GIT_AUTHOR_DATE": f"@{left.at} +0000",
    }
    _, text = git(
        left.worktree,
        *("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, "-p", head, "-F", "-"),
        environment={**COMMITTER, **author},
        given=left.message.encode(),
    )
    return text.strip()


def add_to_index(
    worktree: str,
    common: str,
    entries: Mapping[str, tuple[str, str]],
    held: Sequence[int],
    *,
    refresh: bool = True,
) -> None:
    """What was committed, also if the files have changed since. A git of the worker's that has the
    index is waited for a little; what one has left for good is its user's affair. With `refresh`
    what the index knows of the files is looked at again."""
    lock = os.path.join(str(own_directory(worktree)), "index.lock")
    ordered = sorted(entries.items(), key=lambda entry: entry[1][0] != "0")
    lines = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in ordered)
    given = lines.encode("utf-8", "surrogateescape")
    words = (*exact_names(worktree), "update-index", "-z", "--index-info")
    for _ in range(_PATIENCE_PAUSES):
        if not os.path.lexists(lock):
            require_here(worktree, common)
            try:
                git(worktree, *words, given=given, shared_locks=held)
            except InboxOrchError as error:
                if error.code != "git_failed" or "index.lock" not in error.message:
                    raise
            else:
                if refresh:
                    words = ("update-index", "-q", "--refresh")
                    git(worktree, *words, accepted=(0, 1, 128), shared_locks=held)
                return
        pause()
    raise Unfit(f"{shown(lock)} is there: a git is at work, or one that was killed has left it")


def _move(
    repository: Repository, worktree: str, move: tuple[str, str, str], held: Sequence[int]
) -> None:
    """Move a ref, given with its new commit and its old one, unless it was moved meanwhile."""
    ref, new, old = move
    require_here(worktree, repository.common_directory)
    words = ("update-ref", "--no-deref", "-m", "orch harvest", ref, new, old)
    status, _ = git(
        worktree,
        *words,
        accepted=(0, 1, 128),
        environment=dict(COMMITTER),
        shared_locks=held,
        unbroken=True,
    )
    if status != 0 and repository.ref_commit(ref) == old:
        # It is where it was, and yet cannot be moved: git says why.
        git(worktree, *words, environment=dict(COMMITTER), shared_locks=held, unbroken=True)


def _require_store(worktree: str) -> None:
    """The repository takes new objects. Error `git_failed` with the status of no answer (or
    `disk_full`, `read_only`) when it does not: then the files are not why."""
    try:
        git(worktree, "hash-object", "-w", "--stdin", given=os.urandom(16).hex().encode())
    except InboxOrchError as error:
        if error.code == "git_failed":
            error.details["status"] = NO_ANSWER
        raise
