"""The admin folder of a linked worktree (gitrepository-layout(5)), read as files.

Tells whether a folder is the worktree that an attempt was given. Changes nothing.
"""

import os
import shlex
from typing import NamedTuple

from .repository import Repository
from .standing import own_directory
from .worktrees import Place

_MOST_BYTES = 64 * 1024


class Mismatch(NamedTuple):
    """Why a folder is not certainly the attempt's worktree."""

    code: str
    message: str


def folder_of(worktree: str) -> str | None:
    """The admin folder that the `.git` file of a worktree points at; None when it has none."""
    pointer = os.path.join(worktree, ".git")
    return own_directory(worktree) if os.path.isfile(pointer) else None


def registered(repository: Repository, place: Place) -> str | None:
    """The admin folder that has the attempt's lock, wherever its worktree is now."""
    entries = os.path.join(repository.common_directory, "worktrees")
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        entry = os.path.join(entries, name)
        if text_of(os.path.join(entry, "locked")) == place.reason:
            return entry
    return None


def absent(repository: Repository, place: Place) -> Mismatch | None:
    """What git has still of a worktree that is not where it was made: moved, on a disk that is
    gone, or deleted; None when it knows nothing of it, so that there is nothing left to lose."""
    entry = registered(repository, place) or _entry_at(repository, place.path)
    if entry is None:
        return None
    where = text_of(os.path.join(entry, "gitdir")).removesuffix("/.git")
    command = f"git -C {shlex.quote(repository.path)} worktree remove -f -f {shlex.quote(where)}"
    ways = f"Put it back; or, if it is gone for good: {command}"
    if os.path.lexists(os.path.join(where, ".git")) and where != place.path:
        return Mismatch("missing", f"{place.path} is not there: git has it at {where}")
    other = _lock_mismatch(place, entry)
    if other is not None and other.code == "foreign_lock":
        return Mismatch("foreign_lock", f"{place.path} is not there. {other.message}. {ways}")
    return Mismatch("missing", f"{place.path} is not there. {ways}")


def _entry_at(repository: Repository, path: str) -> str | None:
    """The admin folder of the worktree that git has at a path, locked or not."""
    entries = os.path.join(repository.common_directory, "worktrees")
    wanted = os.path.realpath(os.path.join(path, ".git"))
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        back = text_of(os.path.join(entries, name, "gitdir"))
        if back and os.path.realpath(os.path.join(entries, name, back)) == wanted:
            return os.path.join(entries, name)
    return None


def mismatch(repository: Repository, place: Place) -> Mismatch | None:
    """None when the folder at the attempt's path is its worktree: both point at each other, and
    the lock is the one that it was made with."""
    path = place.path
    if os.path.isdir(path) and os.path.realpath(path) == os.path.realpath(repository.path):
        return Mismatch("main_worktree", f"{path} is the main working tree")
    if os.path.islink(path) or not os.path.isdir(path):
        return Mismatch("foreign_worktree", f"{path} is no folder")
    entry = folder_of(path)
    entries = os.path.realpath(os.path.join(repository.common_directory, "worktrees"))
    if entry is None or os.path.dirname(entry) != entries:
        return Mismatch("foreign_worktree", f"{path} is no worktree of {repository.path}")
    if not os.path.isdir(entry):
        return Mismatch("foreign_worktree", f"git knows {path} no more: {entry} is gone")
    # Relative to the admin folder, where `worktree.useRelativePaths` is set.
    back = os.path.join(entry, text_of(os.path.join(entry, "gitdir")))
    if os.path.realpath(back) != os.path.realpath(os.path.join(path, ".git")):
        return Mismatch("foreign_worktree", f"{path} was moved here: git has it at {back}")
    return _lock_mismatch(place, entry)


def _lock_mismatch(place: Place, entry: str) -> Mismatch | None:
    lock = os.path.join(entry, "locked")
    if not os.path.lexists(lock):
        return Mismatch("foreign_worktree", f"{place.path} has no lock of orch")
    reason = text_of(lock)
    if reason != place.reason:
        return Mismatch("foreign_lock", f"{place.path} is locked by another program: {reason!r}")
    return None


def text_of(path: str) -> str:
    """A small file's text without the last line end; "" when it cannot be read. The name of a
    file may have bytes that are not UTF-8."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_BYTES).rstrip("\n")
    except OSError:
        return ""
