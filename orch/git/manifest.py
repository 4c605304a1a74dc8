"""Which files a worktree had besides those of its commit when it was handed out: what set-up made,
and what was copied, ignored or not.

Git says nothing about ignored files, and yet a worker may have edited one. The manifest lies in
the worktree's admin folder, where it goes with the worktree and is out of the way. Where there
is none, every such file counts as changed: so nothing has to be written for a worktree that was
only checked out, which has none.
"""

import contextlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.folders import sync_folder
from inbox_orch.shared.store.live import is_live

from . import administration
from .commands import exact_names, git
from .failures import failure

MAX_HASHED_BYTES = 1024 * 1024
_NAME = "inbox-orch-manifest.json"
_VERSION = 1
_NO_WORKTREE = "something has taken it away; `orch doctor` looks at what there is"


class Entry(NamedTuple):
    """One such file. `changed_ns` is the time of its inode, which no program can set back;
    `sha256` is None from 1 MiB on."""

    mode: int
    size: int
    modified_ns: int
    changed_ns: int
    sha256: str | None


def write(worktree: str) -> int:
    """Take down the untracked files of a worktree, ignored ones too; returns how many there are.

    To be called once set-up is over and before a worker has it. A repeat replaces what was
    taken down before. Errors: `git_failed`, `disk_full`, `read_only`, `io_error`.
    """
    admin = administration.folder_of(worktree)
    if admin is None:
        raise InboxOrchError("git_failed", f"{worktree} is no worktree", hint=_NO_WORKTREE)
    files = {}
    for path in untracked_files(worktree):
        entry = _entry(os.path.join(worktree, path), hashed=True)
        if entry is not None:
            files[path] = entry
    target = os.path.join(admin, _NAME)
    try:
        # Whole or not at all, also after a loss of power: by what is missing in it, a file of
        # set-up's would be taken for the worker's.
        with open(f"{target}.new", "w", encoding="ascii") as file:
            json.dump({"version": _VERSION, "files": files}, file, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{target}.new", target)
        sync_folder(admin)
    except OSError as error:
        raise failure(target, error) from error
    return len(files)


def changed(worktree: str, untracked: Iterable[str]) -> list[str]:
    """Those of the untracked files, given by their paths below the worktree, that differ from the
    manifest or are not in it."""
    paths = list(untracked)
    known = _read(worktree) if paths else {}
    return [p for p in paths if p not in known or _differs(os.path.join(worktree, p), known[p])]


def names(worktree: str) -> frozenset[str]:
    """The paths in the manifest of a worktree; none where there is none, or it is damaged."""
    return frozenset(_read(worktree))


def untracked_files(worktree: str) -> Iterator[str]:
    """Every untracked file, ignored or not, by its path below the worktree, bytes that are not
    UTF-8 as surrogates; nested repositories are left out."""
    _, text = git(worktree, *exact_names(worktree), "ls-files", "-z", "--others", reads=True)
    return (path for path in text.split("\0") if path and not path.endswith("/"))


def ignored_paths(worktree: str) -> list[str]:
    """What git ignores in a worktree, in one call: a folder of which it ignores all stands for what
    is in it, with a slash at its end. Bytes that are not UTF-8 as surrogates."""
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    _, text = git(worktree, *exact_names(worktree), *words, reads=True)
    return [path for path in text.split("\0") if path]


def changed_paths(worktree: str, paths: Iterable[str]) -> list[str]:
    """Those of such paths that differ from the manifest or are not in it. Of a folder it is only
    known whether anything was in it."""
    given = list(paths)
    known = _read(worktree) if given else {}

    def is_new(path: str) -> bool:
        if path.endswith("/"):
            return not any(each.startswith(path) for each in known)
        return path not in known or _differs(os.path.join(worktree, path), known[path])

    return [path for path in given if is_new(path)]


def _read(worktree: str) -> dict[str, Entry]:
    """Empty when there is none, and when it is damaged: then every file counts as changed."""
    admin = administration.folder_of(worktree)
    if admin is None:
        return {}
    try:
        with open(os.path.join(admin, _NAME), encoding="ascii") as file:
            stored = json.load(file)
        if stored["version"] != _VERSION:
            return {}
        return {path: Entry(*entry) for path, entry in stored["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _differs(path: str, known: Entry) -> bool:
    now = _entry(path, hashed=False)
    if now is None:
        return False  # gone: there is nothing left to lose
    if now == known._replace(sha256=None):
        return False
    if (now.mode, now.size) != (known.mode, known.size):
        return True
    if known.sha256 is None:
        return now.modified_ns != known.modified_ns
    again = _entry(path, hashed=True)
    return again is None or again.sha256 != known.sha256


def _entry(path: str, *, hashed: bool) -> Entry | None:
    """How a file is now; None when it is gone."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = os.lstat(path)
        digest = _digest(path, found) if hashed and found.st_size < MAX_HASHED_BYTES else None
        return Entry(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, digest)
    return None


def _digest(path: str, found: os.stat_result) -> str | None:
    """None for what has no content, or may not be read (a hard link to the database, say): it
    counts as changed once its times do."""
    import hashlib

    if stat.S_ISLNK(found.st_mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    if not stat.S_ISREG(found.st_mode) or is_live(path):
        return None
    try:
        with open(path, "rb", buffering=0) as file:
            return hashlib.sha256(file.read(MAX_HASHED_BYTES)).hexdigest()
    except PermissionError:
        return None
