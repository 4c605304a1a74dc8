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

from . import manifest, nested
from .commands import exact_names, git
from .failures import failure, shown
from .harvest import MAX_BYTES, MOST_FILES, Unfit
from .hidden import copy_index
from .repository import Repository
from .sealed import Sealed, sealed_folder
from .standing import own_directory, require_here

_CACHE = "inbox-orch-raw-index"
_KNOWN_WHOLE = 100
"""Of fewer paths that were untracked at set-up none was left out where they are stored."""
_MOST_NAMED = 5
# From so many files on they are synced together at the end: one by one takes minutes.
_MANY_FILES = 200
_UNSYNCED = ("-c", "core.fsyncMethod=writeout-only")
_MODULE = "160000"
SetUp = frozenset[str]
"""Paths as git lists them, and as they are stored: with bytes that are not UTF-8 escaped."""


class Seen(NamedTuple):
    """What git lists of a worktree, and what is there. `files` are to be in the tree as they lie
    there; `kept` are (mode, object id) of what stays as the index has it: submodules, and what a
    sparse checkout leaves out. `unmerged` has no one version in the index. `plain`: no mark stands
    in the index, and no file of attributes lies there."""

    files: list[str]
    kept: dict[str, tuple[str, str]]
    unmerged: frozenset[str]
    plain: bool


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


def look(worktree: str, known: Sequence[str]) -> Seen:
    """What is to be in the tree; raises as `tree_now`. Writes nothing."""
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
    return Seen(files, kept, frozenset(listed.unmerged), plain=not (marks or walked.converts))


def tree_of(repository: Repository, worktree: str, seen: Seen) -> str:
    """The tree of what was seen. Errors as for `tree_now`."""
    own = own_directory(worktree)
    cache = os.path.join(str(own), _CACHE)
    with sealed_folder(repository) as sealed:
        if os.path.isfile(cache):
            with contextlib.suppress(InboxOrchError):
                # Damaged, or objects that nothing referred to are gone: it is made anew.
                copy_index(cache, sealed.index)
                return _stored(worktree, sealed, seen, cache, anew=False)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(sealed.index)
        index = os.path.join(str(own), "index")
        plain = seen.plain and not _may_convert(repository, worktree)
        if plain and os.path.isfile(index) and not _is_split(str(own)):
            copy_index(index, sealed.index)
        return _stored(worktree, sealed, seen, cache, anew=True)


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


def _may_convert(repository: Repository, worktree: str) -> bool:
    """Whether a setting or a file of attributes outside of the worktree may change the bytes of a
    file on its way into the index."""
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    places = [
        os.path.join(repository.common_directory, "info", "attributes"),
        os.path.join(config, "git", "attributes"),
        "/etc/gitattributes",
    ]
    if any(map(os.path.lexists, places)):
        return True
    asking = ("config", "-z", "--get-regexp", r"^core\.(autocrlf|eol|attributesfile)$")
    return bool(git(worktree, *asking, reads=True, accepted=(0, 1))[1])


def _is_split(own: str) -> bool:
    """Whether a part of the index is in another file (git-update-index(1), "Split index")."""
    return any(name.startswith("sharedindex.") for name in os.listdir(own))


# -- the tree --------------------------------------------------------------------------------


def _stored(worktree: str, sealed: Sealed, seen: Seen, cache: str, *, anew: bool) -> str:
    """The tree, in the index of the sealed folder as far as that knows the files. `anew`: it knows
    nothing that was not in the worktree's own index."""
    within = sealed.on(worktree)
    before = _paths_of(worktree, within) if os.path.exists(sealed.index) else frozenset[str]()
    wanted = {*seen.files, *seen.kept}
    stale = _stale(worktree, within) if before else frozenset[str]()
    new = [path for path in seen.files if path in stale or path not in before]
    many = len(new) > _MANY_FILES
    options = (*exact_names(worktree), *(_UNSYNCED if many else ()), "update-index", "-z")
    # What is gone goes first: a folder may have taken the place of a file.
    for verb, paths in (
        (("--force-remove",), sorted(before - wanted)),
        (("--add", "--remove", "--replace"), new),
    ):
        if paths:
            listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
            git(worktree, *options, *verb, "--stdin", environment=within, given=listed)
    if seen.kept:
        lines = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in seen.kept.items())
        given = lines.encode("utf-8", "surrogateescape")
        git(worktree, *options, "--index-info", environment=within, given=given)
    if many:
        os.sync()
    # What a sparse checkout leaves out of a partial clone need not be here.
    lacking = ("--missing-ok",) if anew and seen.kept else ()
    tree = git(worktree, "write-tree", *lacking, environment=within)[1].strip()
    _keep(sealed.index, cache)
    return tree


def _paths_of(worktree: str, within: dict[str, str]) -> frozenset[str]:
    text = git(worktree, "ls-files", "-z", environment=within, reads=True)[1]
    return frozenset(filter(None, text.split("\0")))


def _stale(worktree: str, within: dict[str, str]) -> frozenset[str]:
    """The files of which the index cannot tell by their times that they are the same."""
    words = ("diff-files", "-z", "--name-only", "--ignore-submodules=all")
    text = git(worktree, *exact_names(worktree), *words, environment=within, reads=True)[1]
    return frozenset(text.split("\0"))


def _keep(index: str, cache: str) -> None:
    """For the next time. Where that fails, all is hashed again."""
    new = f"{cache}.new"
    try:
        if os.path.exists(index):
            copy_index(index, new)
            os.replace(new, cache)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new)
