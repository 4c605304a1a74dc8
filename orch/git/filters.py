"""Filters that files would go through on their way into the index only because of the attempt whose
files they are. Reads only, and runs no filter.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from .commands import git
from .failures import temporary_folder

_OWN = "worktree"  # the scope of what is set for a worktree alone
_NONE = ("unspecified", "unset", "set", "")


class Brought(NamedTuple):
    """A path, and the filter that an attempt has brought in for it."""

    path: str
    filter: str


def brought_in(worktree: str, base_commit: str, paths: Sequence[str]) -> list[Brought]:
    """The paths below a worktree that git would give to a program of a filter although at the base
    commit it would not, or not to that one: by the attempt's `.gitattributes`, or by settings of
    its worktree alone. A filter for which no program is set counts for nothing: git has none to
    run. Errors: `git_failed`, `disk_full`, `io_error`.
    """
    if not paths:
        return []
    now = _named(worktree, paths, {})
    used = {path: name for path, name in now.items() if name not in _NONE}
    if not used:
        return []
    scopes = _programs(worktree)
    with temporary_folder() as folder:
        within = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        # Without -u: nothing but that index is written.
        git(worktree, "read-tree", base_commit, environment=within)
        before = _named(worktree, list(used), within, "--cached")
    return [
        Brought(path, name)
        for path, name in used.items()
        if scopes.get(name) == _OWN or (name in scopes and before.get(path) != name)
    ]


def _named(
    worktree: str, paths: Sequence[str], within: dict[str, str], *options: str
) -> dict[str, str]:
    """The filter of each path by its attributes (git-check-attr(1), OUTPUT)."""
    given = b"".join(os.fsencode(path) + b"\0" for path in paths)
    words = ("check-attr", "-z", "--stdin", *options, "filter")
    _, text = git(worktree, *words, reads=True, given=given, environment=within)
    fields = text.split("\0")
    return dict(zip(fields[::3], fields[2::3], strict=False))


def _programs(worktree: str) -> dict[str, str]:
    """The filters that have a program, each with the scope of the last word about it."""
    asking = ("config", "-z", "--show-scope", "--get-regexp", r"^filter\..*\.(clean|process)$")
    _, text = git(worktree, *asking, reads=True, accepted=(0, 1))
    fields = text.split("\0")
    found: dict[str, str] = {}
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, program = entry.partition("\n")
        name = key.removeprefix("filter.").rpartition(".")[0]
        if program:
            found[name] = _OWN if found.get(name) == _OWN else scope
    return found
