"""How a worktree stands, for clean-up: all that exists only there. Git's own `status` overlooks
much of it, and what a user has configured must not make it overlook more.

Reads only; decides nothing.
"""

import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

from . import administration, manifest
from .commands import exact_names, git
from .hidden import marked_paths, unmarked_index
from .nested import Nested, nested_repositories
from .own_refs import pseudo_refs
from .standing import require_here
from .untouched import untouched

# Settings that would make git look less closely, or ask another program.
_CLOSELY = (
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true", "-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default", "-c", "core.untrackedCache=false"),
    *("-c", "core.ignoreStat=false", "-c", "status.relativePaths=false"),
)
# The last one changes with every ref of the worktree's own where refs are in reftable.
_OWN_FILES = ("index", "HEAD", "ORIG_HEAD", "logs/HEAD", "reftable/tables.list")
_IN_PROGRESS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
    "sequencer": "sequence",
}


class Condition(NamedTuple):
    """What is in a worktree and in no commit. Paths are below the worktree, bytes that are not
    UTF-8 as surrogates.

    `branch` is the ref that HEAD names, None when it is detached; `head` its commit, None when
    there is none. `tracked` differs from HEAD or from the index, `hidden` ones among them in
    spite of a mark that keeps git from showing it; `unmerged` has no one version in the index.
    `untracked` and `ignored` have changed since the worktree was handed out. `submodules` are
    gitlinks whose commit or content changed. `fingerprint` is another one when anything of all
    that has changed.
    """

    head: str | None
    branch: str | None
    tracked: tuple[str, ...]
    hidden: tuple[str, ...]
    unmerged: tuple[str, ...]
    untracked: tuple[str, ...]
    ignored: tuple[str, ...]
    submodules: tuple[str, ...]
    in_progress: tuple[str, ...]
    nested: tuple[Nested, ...]
    fingerprint: str

    @property
    def files(self) -> tuple[str, ...]:
        """Every path whose content is in no commit, or is gone."""
        paths = (*self.tracked, *self.unmerged, *self.untracked, *self.ignored)
        return tuple(dict.fromkeys(paths))

    @property
    def dirty(self) -> bool:
        """Whether there is anything that is not committed."""
        return bool(self.files or self.submodules or self.in_progress)


class _Listed(NamedTuple):
    branch: str | None
    tracked: list[str]
    unmerged: list[str]
    untracked: list[str]
    ignored: list[str]
    submodules: list[str]
    unstaged: list[str]


def look(worktree: str, common: str) -> Condition:
    """How a worktree stands. `common` is the git directory that all worktrees share.

    Errors: `git_failed` when git cannot tell, or looks at the files of another folder; `io_error`.
    """
    admin = administration.folder_of(worktree)
    assert admin is not None
    require_here(worktree, common)
    marked = marked_paths(worktree)
    index = os.path.join(admin, "index")
    with unmarked_index(worktree, index, marked) as within:
        text = _status(worktree, within)
    listed = _without_untouched(worktree, common, _parsed(text, worktree, marked))
    untracked = manifest.changed(worktree, listed.untracked)
    ignored = manifest.changed(worktree, listed.ignored)
    files = [*listed.tracked, *listed.unmerged, *untracked, *ignored]
    # Some of these are refs, and no files in every format of refs.
    pseudo = pseudo_refs(worktree)
    in_progress = begun(admin, pseudo)
    nested = nested_repositories(worktree, admin)
    head = _head(worktree)
    seen = [head, pseudo, listed.branch, in_progress, nested, listed]
    return Condition(
        head,
        listed.branch,
        tuple(listed.tracked),
        tuple(path for path in listed.tracked if path in marked),
        tuple(listed.unmerged),
        tuple(untracked),
        tuple(ignored),
        tuple(listed.submodules),
        tuple(dict.fromkeys(in_progress)),
        nested,
        _fingerprint(worktree, admin, seen, files),
    )


def begun(admin: str, pseudo: Collection[str]) -> list[str]:
    """What was begun in a worktree and is not at its end: `merge`, `rebase` and so on. `admin` is
    its own git directory, `pseudo` names the pseudo refs that it has."""
    return [
        word
        for name, word in _IN_PROGRESS.items()
        if name in pseudo or os.path.lexists(os.path.join(admin, name))
    ]


def _status(worktree: str, environment: dict[str, str]) -> str:
    _, text = git(
        worktree,
        *_CLOSELY,
        *exact_names(worktree),
        *("status", "--porcelain=v2", "-z", "--branch", "--no-renames"),
        *("--untracked-files=all", "--ignored=traditional", "--ignore-submodules=none"),
        reads=True,
        environment=environment,
    )
    return text


def _parsed(text: str, worktree: str, marked: dict[str, str]) -> _Listed:
    """The output of git-status(1), format 2."""
    listed = _Listed(None, [], [], [], [], [], [])
    branch = None
    for entry in text.split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "#" and rest.startswith("branch.head "):
            name = rest.removeprefix("branch.head ")
            branch = None if name == "(detached)" else f"refs/heads/{name}"
        elif kind == "1":
            states, submodule, *_, path = rest.split(" ", 7)
            if not _left_out(worktree, path, states, marked):
                (listed.tracked if submodule == "N..." else listed.submodules).append(path)
                listed.unstaged.extend([path] if (states, submodule) == (".M", "N...") else ())
        elif kind == "u":
            listed.unmerged.append(rest.split(" ", 9)[9])
        elif kind in ("?", "!") and not rest.endswith("/"):
            # What ends with a slash is a nested repository.
            (listed.untracked if kind == "?" else listed.ignored).append(rest)
    return listed._replace(branch=branch)


def _without_untouched(worktree: str, common: str, listed: _Listed) -> _Listed:
    """Without what is as a checkout writes it: every checkout of the commit has it again."""
    same = untouched(worktree, common, listed.unstaged)
    return listed._replace(tracked=[path for path in listed.tracked if path not in same])


def _left_out(worktree: str, path: str, states: str, marked: dict[str, str]) -> bool:
    """Whether a file only seems deleted, because it is marked as not to be checked out."""
    return (
        states == ".D"
        and marked.get(path, "") in ("S", "s")
        and not os.path.lexists(os.path.join(worktree, path))
    )


def _head(worktree: str) -> str | None:
    status, text = git(
        worktree,
        *("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
        reads=True,
        accepted=(0, 1, 128),
    )
    return text.strip() if status == 0 else None


# -- whether it has changed since ------------------------------------------------------------


def _fingerprint(worktree: str, admin: str, seen: Sequence[object], files: list[str]) -> str:
    import hashlib

    digest = hashlib.sha256(repr(seen).encode("utf-8", "surrogateescape"))
    own = [os.path.join(admin, name) for name in (*_OWN_FILES, *_IN_PROGRESS)]
    for path in (*own, *(os.path.join(worktree, name) for name in files)):
        digest.update(repr(_stamp(path)).encode())
    return digest.hexdigest()


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
