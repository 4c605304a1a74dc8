"""The raw tree of what lies in a worktree now: tracked files and untracked ones as they are on
disk, through no filter, without ignored ones and those that set-up made.

Neither index nor HEAD is touched, and no mark in the index is believed. What was hashed is known
the next time by an index of our own in the worktree's admin folder, which may be lost.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import last_taken, manifest, nested
from .commands import exact_names, git
from .failures import failure, shown
from .harvest import MAX_BYTES, MOST_FILES, Unfit
from .hidden import copy_index
from .raw_index import CACHE, Into, Seen, holds, is_split, known_to, may_convert, stored
from .repository import Repository
from .sealed import sealed_folder
from .standing import own_directory, require_here

_KNOWN_WHOLE = 100
"""Of fewer paths that were untracked at set-up none was left out where they are stored."""
_MOST_NAMED = 5
_MODULE = "160000"
_OTHERS = ("--others", "--exclude-standard")
# No setting lets git look less closely, and none changes bytes before they are compared.
_CLOSELY = (
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default", "-c", "core.ignoreStat=false", "-c", "core.autocrlf=false"),
    *("-c", f"core.attributesFile={os.devnull}", "-c", "core.untrackedCache=false"),
)
SetUp = frozenset[str]
"""Paths as git lists them, and as they are stored: with bytes that are not UTF-8 escaped."""


class _Listed(NamedTuple):
    tracked: dict[str, tuple[str, str, str]]  # tag, mode, object id
    untracked: list[str]
    unmerged: set[str]


class _Walked(NamedTuple):
    """What a walk has met: files and links, what is neither, folders with a `.git`, and folders
    that were not entered. `converts`: a file of attributes is among it."""

    present: set[str]
    specials: list[str]
    repositories: list[str]
    unlisted: list[str]
    converts: bool


def tree_now(repository: Repository, worktree: str, known: Sequence[str]) -> str:
    """The id of the tree; all its objects are in the repository, where nothing refers to them yet.

    `known` are the paths that were untracked at set-up, as the attempt has stored them. Raises
    `Unfit` for a repository inside, for what is no file, and for more than 1 GiB or 100,000 files
    of untracked content. Errors: `git_failed`, `disk_full`, `read_only`, `io_error`.
    """
    require_here(worktree, repository.common_directory)
    return tree_of(repository, worktree, look(worktree, known))


def tree_name(repository: Repository, worktree: str, known: Sequence[str]) -> str:
    """`tree_now`, to compare it with other trees: where nothing has changed since it was last
    taken, its objects are not looked at. Raises as `tree_now`."""
    same = _unchanged(repository, worktree, known)
    return tree_now(repository, worktree, known) if same is None else same


def look(worktree: str, known: Sequence[str]) -> Seen:
    """What is to be in the tree; raises as `tree_now`. Writes nothing."""
    # Before it is read: a change of it in between is one since then.
    index_sum = last_taken.sum_of(os.path.join(str(own_directory(worktree)), "index"))
    listed = _listed(worktree)
    theirs = set_up(worktree, known)
    untracked = [path for path in listed.untracked if not is_known(path, theirs)]
    _refuse_repositories([path.rstrip("/") for path in untracked if path.endswith("/")])
    kept = _kept(worktree, listed)
    walked = _walk(worktree, [*listed.tracked, *listed.untracked], kept)
    _refuse_repositories([p for p in walked.repositories if not is_known(f"{p}/", theirs)])
    _refuse_specials(worktree, walked, theirs)
    _refuse_too_much(worktree, untracked)
    paths = (*(path for path in listed.tracked if path not in kept), *untracked)
    files = [path for path in paths if path in walked.present]
    tags = {tag for tag, _, _ in listed.tracked.values()}
    marks = any(tag.islower() or tag == "S" for tag in tags)
    entries = {path: (mode, name) for path, (_, mode, name) in listed.tracked.items()}
    return Seen(
        files,
        kept,
        frozenset(listed.unmerged),
        plain=not (marks or walked.converts),
        entries=None if listed.unmerged else entries,
        index_sum=index_sum,
    )


def tree_of(
    repository: Repository, worktree: str, seen: Seen, likely: Sequence[str | None] = ()
) -> str:
    """The tree of what was seen; `likely` are trees that something refers to. Errors as for
    `tree_now`."""
    own = own_directory(worktree)
    cache = os.path.join(str(own), CACHE)
    with sealed_folder(repository) as sealed:
        if os.path.isfile(cache):
            with contextlib.suppress(InboxOrchError):
                # Damaged, or objects that nothing referred to are gone: it is made anew.
                copy_index(cache, sealed.index)
                return stored(Into(worktree, sealed, cache, likely, anew=False), seen)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(sealed.index)
        index = os.path.join(str(own), "index")
        plain = seen.plain and not may_convert(repository, worktree)
        if plain and os.path.isfile(index) and not is_split(str(own)):
            copy_index(index, sealed.index)
        return stored(Into(worktree, sealed, cache, likely, anew=True), seen)


def is_now(repository: Repository, worktree: str, known: Sequence[str], tree: str) -> bool:
    """Whether the tree is this one by now, where that can be told in one look after its files were
    written; False where it cannot. Errors: `git_failed`, `disk_full`, `io_error`."""
    own = str(own_directory(worktree))
    cache = os.path.join(own, CACHE)
    index_sum = last_taken.sum_of(os.path.join(own, "index"))
    if not os.path.isfile(cache) or is_split(own):
        return False
    theirs = set_up(worktree, known)
    with sealed_folder(repository) as sealed:
        copy_index(cache, sealed.index)
        within = sealed.on(worktree)
        entries, stale = known_to(worktree, within, others=_OTHERS)
        new = [path for path in stale if path in entries or not is_known(path, theirs)]
        if any(path.endswith("/") or is_known(path, theirs) for path in new):
            return False
        if any(mode == _MODULE or is_known(p, theirs) for p, (mode, _) in entries.items()):
            return False
        return holds(Into(worktree, sealed, cache, (), anew=False), new, tree, index_sum)


# -- what is there ---------------------------------------------------------------------------


def _listed(worktree: str) -> _Listed:
    _, text = git(
        worktree,
        *("-c", "core.untrackedCache=false", *exact_names(worktree)),
        *("ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard"),
        reads=True,
    )
    listed = _Listed({}, [], set())
    for entry in filter(None, text.split("\0")):
        if entry[0] == "?":
            listed.untracked.append(entry[2:])
            continue
        facts, path = entry.split("\t", 1)
        tag, mode, name, stage = facts.split(" ")
        listed.tracked[path] = (tag, mode, name)
        if stage != "0":
            listed.unmerged.add(path)
    return listed


def set_up(worktree: str, known: Sequence[str]) -> SetUp:
    """What was untracked at set-up. Raises `Unfit` when that cannot be told any more."""
    written = manifest.names(worktree)
    if len(known) >= _KNOWN_WHOLE and not written:
        raise Unfit("which files were there from the start cannot be told any more")
    return written.union(known)


def is_known(path: str, theirs: SetUp) -> bool:
    """Whether a path that git lists was untracked at set-up."""
    return path in theirs or shown(path) in theirs


def _kept(worktree: str, listed: _Listed) -> dict[str, tuple[str, str]]:
    found = {}
    marked = [path for path, (tag, _, _) in listed.tracked.items() if tag in "Ss"]
    if marked and _is_sparse(worktree):
        for path in marked:
            if not os.path.lexists(os.path.join(worktree, path)):
                found[path] = listed.tracked[path][1:]
    for path, (_, mode, name) in listed.tracked.items():
        if mode == _MODULE and os.path.isdir(os.path.join(worktree, path)):
            _refuse_changed_module(worktree, path, name)
            found[path] = (mode, name)
    return found


def _is_sparse(worktree: str) -> bool:
    asking = ("config", "--type=bool", "core.sparseCheckout")
    return git(worktree, *asking, reads=True, accepted=(0, 1))[1].strip() == "true"


def _refuse_changed_module(worktree: str, path: str, name: str) -> None:
    """A submodule that is checked out has to be at the index's commit, without changes."""
    folder = os.path.join(worktree, path)
    if not os.path.lexists(os.path.join(folder, ".git")):
        return
    problem = nested.changed_module(folder, name)
    if problem is not None:
        raise Unfit(f"{shown(path)} is a submodule: {problem}")


def _walk(worktree: str, paths: Iterable[str], modules: Collection[str]) -> _Walked:
    """Every folder that has a listed path in it. Links are not followed."""
    folders = set()
    for path in paths:
        parent = path.rstrip("/").rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    walked = _Walked(set(), [], [], [], converts=False)
    waiting, converts = [""], False
    while waiting:
        inside = waiting.pop()
        for name, kind in _entries(worktree, inside):
            path = f"{inside}/{name}" if inside else name
            if name == ".git":
                walked.repositories.extend([inside] if inside else [])
            elif kind == "folder":
                if path not in modules:
                    (waiting if path in folders else walked.unlisted).append(path)
            elif kind == "file":
                walked.present.add(path)
                converts = converts or name == ".gitattributes"
            else:
                walked.specials.append(path)
    return walked._replace(converts=converts)


def _entries(worktree: str, inside: str) -> Iterator[tuple[str, str]]:
    folder = os.path.join(worktree, inside) if inside else worktree
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield entry.name, "folder"
                elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    yield entry.name, "file"
                else:
                    yield entry.name, "special"
    except OSError as error:
        raise failure(folder, error) from error


def _refuse_repositories(paths: Sequence[str]) -> None:
    if paths:
        plural = "are repositories of their own" if paths[1:] else "is a repository of its own"
        raise Unfit(f"{_named(sorted(paths))} {plural}: move it out of the worktree")


def _refuse_specials(worktree: str, walked: _Walked, theirs: SetUp) -> None:
    """Pipes, sockets and devices, in folders without any listed file, too; ignored ones stay."""
    found = list(walked.specials)
    for top in _not_ignored(worktree, walked.unlisted):
        waiting = [top]
        while waiting:
            inside = waiting.pop()
            for name, kind in _entries(worktree, inside):
                if kind == "folder" and name != ".git":
                    waiting.append(f"{inside}/{name}")
                elif kind == "special":
                    found.append(f"{inside}/{name}")
    left = [path for path in _not_ignored(worktree, found) if not is_known(path, theirs)]
    if left:
        raise Unfit(f"{_named(sorted(left))}: neither a file nor a link, and cannot be kept")


def _not_ignored(worktree: str, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = ("check-ignore", "-z", "--stdin")
    _, text = git(worktree, *words, reads=True, accepted=(0, 1), given=listed)
    ignored = set(text.split("\0"))
    return [path for path in paths if path not in ignored]


def _refuse_too_much(worktree: str, untracked: Sequence[str]) -> None:
    sizes: dict[str, int] = {}
    for path in untracked:
        with contextlib.suppress(OSError):
            size = os.lstat(os.path.join(worktree, path)).st_size
            folder = "/".join(path.split("/")[:-1][:2]) or path
            sizes[folder] = sizes.get(folder, 0) + size
    total = sum(sizes.values())
    if total <= MAX_BYTES and len(untracked) <= MOST_FILES:
        return
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_MOST_NAMED]
    where = ", ".join(f"{shown(name)} ({sizes[name] >> 20} MiB)" for name in largest)
    raise Unfit(
        f"{len(untracked)} untracked files of {total >> 20} MiB, and at most {MOST_FILES} of"
        f" {MAX_BYTES >> 20} MiB are kept: ignore or remove the largest: {where}"
    )


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(shown, paths[:_MOST_NAMED])) + more


# -- whether it is the same as it was ----------------------------------------------------------


def _unchanged(repository: Repository, worktree: str, known: Sequence[str]) -> str | None:
    """The tree that was taken last, if nothing is otherwise now; None where that cannot be told in
    one look. Neither are objects written, nor does a filter run."""
    own, common = str(own_directory(worktree)), repository.common_directory
    index, cache = os.path.join(own, "index"), os.path.join(own, CACHE)
    taken = last_taken.read(own)

    def stands() -> bool:
        sums = (last_taken.sum_of(index), last_taken.sum_of(cache))
        return taken is not None and sums == (taken.theirs, taken.ours)

    linked = os.path.realpath(os.path.join(common, "worktrees"))
    if os.path.dirname(own) != linked or not stands() or is_split(own):
        return None
    if os.path.lexists(os.path.join(common, "info", "attributes")):
        return None
    # Named to git, so that no setting sends it to the files of another folder.
    within = {
        "GIT_DIR": own,
        "GIT_WORK_TREE": worktree,
        "GIT_INDEX_FILE": cache,
        "GIT_ATTR_NOSYSTEM": "1",
    }
    entries, changed = known_to(worktree, within, *_CLOSELY, others=_OTHERS)
    theirs = set_up(worktree, known)
    if any(not is_known(path, theirs) for path in changed):
        return None
    walked = _walk(worktree, [*entries, *changed], ())
    if walked.converts or not entries.keys() <= walked.present or not stands():
        return None
    if any(is_known(path, theirs) for path in entries):
        return None
    _refuse_repositories([p for p in walked.repositories if not is_known(f"{p}/", theirs)])
    _refuse_specials(worktree, walked, theirs)
    assert taken is not None
    return taken.tree
