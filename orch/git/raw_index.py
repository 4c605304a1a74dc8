"""The index of our own in which the raw tree of a worktree is made, and what is kept of it for the
next time. No filter and no setting of anybody's has a say.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import last_taken, tree_ids
from .commands import exact_names, git
from .hidden import copy_index
from .repository import Repository
from .sealed import Sealed

CACHE = "inbox-orch-raw-index"
# From so many files on they are synced together at the end: one by one takes minutes.
_MANY_FILES = 200
_UNSYNCED = ("-c", "core.fsyncMethod=writeout-only")


class Seen(NamedTuple):
    """What git lists of a worktree, and what is there. `files` are to be in the tree as they lie
    there; `kept` are (mode, object id) of what stays as the index has it: submodules, and what a
    sparse checkout leaves out. `unmerged` has no one version in the index. `plain`: no mark stands
    in the index, and no file of attributes lies there. `entries` is (mode, object id) of all that
    the index has, None where it has two versions of a path; `index_sum` the sum of the index
    as it was, None where there was none."""

    files: list[str]
    kept: dict[str, tuple[str, str]]
    unmerged: frozenset[str]
    plain: bool
    entries: dict[str, tuple[str, str]] | None
    index_sum: str | None


def may_convert(repository: Repository, worktree: str) -> bool:
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


def is_split(own: str) -> bool:
    """Whether a part of the index is in another file (git-update-index(1), "Split index")."""
    return any(name.startswith("sharedindex.") for name in os.listdir(own))


def is_simple(own: str) -> bool:
    """Whether the index in a worktree's own git directory is in one file and has nothing but names,
    modes and ids to it: no path that is only meant to be added, which its listing does not tell
    (gitformat-index(5), versions 2 and 3)."""
    try:
        with open(os.path.join(own, "index"), "rb") as file:
            return file.read(8) == b"DIRC\0\0\0\2" and not is_split(own)
    except OSError:
        return False


# -- the tree --------------------------------------------------------------------------------


class Into(NamedTuple):
    """Where a tree is made: the index of the sealed folder, and `cache` for what it is then.
    `likely` are trees that it may be and that something refers to. `anew`: the index has nothing
    that was not in the worktree's own."""

    worktree: str
    sealed: Sealed
    cache: str
    likely: Sequence[str | None]
    anew: bool


def stored(into: Into, seen: Seen) -> str:
    """The tree, in the index of the sealed folder as far as that knows the files."""
    worktree, sealed, cache = into.worktree, into.sealed, into.cache
    within = sealed.on(worktree)
    before, stale = known_to(worktree, within) if os.path.exists(sealed.index) else _NOTHING
    wanted = {*seen.files, *seen.kept}
    new = [path for path in seen.files if path in stale or path not in before]
    gone = sorted(before.keys() - wanted)
    same = not (new or gone or seen.kept)
    tree = tree_ids.tree_id(before) if same else None
    if tree is None or tree not in into.likely:
        _update(worktree, within, gone, new, seen.kept)
        # What a sparse checkout leaves out of a partial clone need not be here.
        lacking = ("--missing-ok",) if into.anew and seen.kept else ()
        tree = git(worktree, "write-tree", *lacking, environment=within)[1].strip()
        same = False
    if into.anew or not same:
        _keep(sealed.index, cache)
    _note(into, seen, tree)
    return tree


def holds(into: Into, changed: Sequence[str], tree: str, index_sum: str | None) -> bool:
    """Whether the index of the sealed folder has this tree with the files of the paths that have
    changed as they lie there now; then it is kept. `index_sum` is the sum of the worktree's own
    index before they were looked at."""
    worktree, sealed = into.worktree, into.sealed
    within = sealed.on(worktree)
    there = [path for path in changed if _is_file(os.path.join(worktree, path))]
    try:
        _update(worktree, within, sorted({*changed} - {*there}), there, {})
    except InboxOrchError as error:
        if error.code != "git_failed":
            raise
        return False  # a folder may have become a link to one
    words = ("diff-index", "--cached", "--quiet", tree, "--")
    if git(worktree, *words, environment=within, reads=True, accepted=(0, 1))[0] == 1:
        return False
    _keep(sealed.index, into.cache)
    seen = Seen([], {}, frozenset(), plain=True, entries=None, index_sum=index_sum)
    _note(into, seen, tree)
    return True


def _is_file(path: str) -> bool:
    return os.path.islink(path) or os.path.isfile(path)


def _update(
    worktree: str,
    within: dict[str, str],
    gone: Sequence[str],
    new: Sequence[str],
    kept: Mapping[str, tuple[str, str]],
) -> None:
    many = len(new) > _MANY_FILES
    options = (*exact_names(worktree), *(_UNSYNCED if many else ()), "update-index", "-z")
    # What is gone goes first: a folder may have taken the place of a file.
    for verb, paths in ((("--force-remove",), gone), (("--add", "--remove", "--replace"), new)):
        if paths:
            listed = b"".join(os.fsencode(path) + b"\0" for path in paths)
            git(worktree, *options, *verb, "--stdin", environment=within, given=listed)
    if kept:
        lines = "".join(f"{mode} {name}\t{path}\0" for path, (mode, name) in kept.items())
        given = lines.encode("utf-8", "surrogateescape")
        git(worktree, *options, "--index-info", environment=within, given=given)
    if many:
        os.sync()


_Known = tuple[dict[str, tuple[str, str]], set[str]]
_NOTHING: _Known = ({}, set())


def known_to(
    worktree: str, within: dict[str, str], *options: str, others: Sequence[str] = ()
) -> _Known:
    """(mode, object id) of all that an index of ours has; and the files of which it cannot tell
    that they are the same, and with options for that what is not in it."""
    words = ("ls-files", "-z", "-t", "--stage", "--cached", "--modified", *others)
    asking = (*exact_names(worktree), *options, *words)
    text = git(worktree, *asking, environment=within, reads=True)[1]
    entries: dict[str, tuple[str, str]] = {}
    stale: set[str] = set()
    for entry in filter(None, text.split("\0")):
        if entry[0] == "?":
            stale.add(entry[2:])
            continue
        facts, path = entry.split("\t", 1)
        tag, mode, name, _ = facts.split(" ")
        entries[path] = (mode, name)
        if tag != "H":
            stale.add(path)
    return entries, stale


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


def _note(into: Into, seen: Seen, tree: str) -> None:
    """What the tree of that index is; not where it could not be kept."""
    own, ours = os.path.dirname(into.cache), last_taken.sum_of(into.cache)
    kept = ours is not None and ours == last_taken.sum_of(into.sealed.index)
    if seen.kept or seen.index_sum is None or ours is None or not kept:
        last_taken.forget(own)
    else:
        last_taken.write(own, last_taken.Taken(seen.index_sum, ours, tree))
