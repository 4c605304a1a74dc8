"""Letting the files of a worktree be those of a raw tree: byte for byte, through no filter.

Only what differs is touched. What the present tree does not have is never written over: the caller
has kept that one. Killed in the middle, the same again comes to the end.
"""

import contextlib
import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

from .commands import git_bytes
from .facts import Raw
from .failures import failure, shown
from .harvest import Unfit
from .raw_trees import SetUp, is_known
from .restoring import BATCH_BYTES, Entry, batches, contents, sized
from .sealed import Sealed

_MODULE, _LINK, _PROGRAM = "160000", "120000", "100755"


class Plan(NamedTuple):
    """What is to go, what is to be written, and what stands where that is to be and is not in the
    present tree: paths below the worktree."""

    gone: tuple[str, ...]
    written: tuple[Raw, ...]
    in_the_way: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is touched."""
        return (*self.gone, *(raw.path for raw in self.written))


def planned(worktree: str, changed: Sequence[Raw], set_up: SetUp) -> Plan:
    """What has to be done to the files, given how the present tree differs from the wanted one.
    What set-up made stays. Raises `Unfit` where a submodule would have to be another one, or a
    file would have to take the place of a folder with files that were not kept."""
    changed = [raw for raw in changed if raw.new is not None or not is_known(raw.path, set_up)]
    modules = [r.path for r in changed if _MODULE in {s[0] for s in (r.old, r.new) if s}]
    if modules:
        raise Unfit(f"{shown(modules[0])} is a submodule, and not the one that was kept")
    present = {raw.path for raw in changed if raw.old is not None}
    gone = [raw.path for raw in changed if raw.new is None]
    written = [raw for raw in changed if raw.new is not None]
    blocked: dict[str, None] = {}
    for raw in written:
        blocking = _blocking(worktree, raw.path)
        if blocking is not None and blocking not in present:
            blocked[blocking] = None
        elif blocking is None and os.path.isdir(os.path.join(worktree, raw.path)):
            _refuse_lost(worktree, raw.path, present)
    return Plan(tuple(gone), tuple(written), tuple(blocked))


def carry_out(sealed: Sealed, worktree: str, plan: Plan) -> None:
    """Write what is planned; nothing may be in the way any more. Errors: `git_failed`,
    `disk_full`, `read_only`, `io_error`."""
    try:
        for path in plan.gone:
            _remove(worktree, path)
        _write(sealed, worktree, plan.written)
    except OSError as error:
        raise failure(worktree, error) from error


def _blocking(worktree: str, path: str) -> str | None:
    """The file or link that is in the place of a path, or of a folder on the way to it."""
    at = ""
    for name in path.split("/"):
        at = f"{at}/{name}" if at else name
        whole = os.path.join(worktree, at)
        if os.path.islink(whole) or (os.path.lexists(whole) and not os.path.isdir(whole)):
            return at
    return None


def _refuse_lost(worktree: str, path: str, present: Collection[str]) -> None:
    for folder, folders, files in os.walk(os.path.join(worktree, path)):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*files, *links):
            inner = os.path.relpath(os.path.join(folder, name), worktree)
            if inner not in present:
                raise Unfit(f"{shown(inner)} is in the way of {shown(path)}: move it away")


def _remove(worktree: str, path: str) -> None:
    """A file, and the folders that are empty without it."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if _blocking(worktree, path) == path:
            os.unlink(os.path.join(worktree, path))
    folder = os.path.dirname(path)
    with contextlib.suppress(OSError):
        while folder:
            os.rmdir(os.path.join(worktree, folder))
            folder = os.path.dirname(folder)


def _write(sealed: Sealed, worktree: str, written: Sequence[Raw]) -> None:
    """Files first and links last: nothing is ever written through one that was kept."""
    wanted = {raw.path: raw.new for raw in written if raw.new is not None}
    sizes = {
        e.name: e.size
        for e in sized(sealed.folder, {s[1]: None for s in wanted.values()}, sealed.reading)
    }
    entries = [Entry(mode, name, sizes[name], path) for path, (mode, name) in wanted.items()]
    entries.sort(key=lambda entry: entry.mode == _LINK)
    for batch in batches(entries):
        read = contents(sealed.folder, batch, sealed.reading)
        for entry, content in zip(batch, read, strict=True):
            _put(worktree, entry, content)
    for entry in (e for e in entries if e.size > BATCH_BYTES):
        with open(_created(worktree, entry), "wb") as file:
            words = ("cat-file", "blob", entry.name)
            git_bytes(sealed.folder, *words, output=file, environment=sealed.reading)


def _put(worktree: str, entry: Entry, content: bytes) -> None:
    if entry.mode == _LINK:
        _make_room(worktree, entry.path)
        os.symlink(content, os.fsencode(os.path.join(worktree, entry.path)))
        return
    with open(_created(worktree, entry), "wb") as file:
        file.write(content)


def _created(worktree: str, entry: Entry) -> int:
    _make_room(worktree, entry.path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    mode = 0o777 if entry.mode == _PROGRAM else 0o666
    return os.open(os.path.join(worktree, entry.path), flags, mode)


def _make_room(worktree: str, path: str) -> None:
    """What is in the place of a path was kept: it goes. Folders are made, empty ones go."""
    blocking = _blocking(worktree, path)
    if blocking is not None:
        os.unlink(os.path.join(worktree, blocking))
    whole = os.path.join(worktree, path)
    for folder, _, _ in os.walk(whole, topdown=False):
        os.rmdir(folder)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
