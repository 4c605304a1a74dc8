"""The admin folder of a linked worktree (gitrepository-layout(5)), read as files.

Tells whether a folder is the worktree that an attempt was given. Changes nothing.
"""

import os
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
        return Mismatch("foreign_lock", f"{place.path} is locked by somebody else: {reason!r}")
    return None


def text_of(path: str) -> str:
    """A small file's text without the last line end; "" when it cannot be read. The name of a
    file may have bytes that are not UTF-8."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_MOST_BYTES).rstrip("\n")
    except OSError:
        return ""
