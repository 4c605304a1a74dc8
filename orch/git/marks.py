"""Marks: what a git that we are about to start may leave behind, should it be killed.

A mark is a file in the git directory. It names the locks that the git takes, and what will be in
them; it is locked (flock(2)) by us and by that git, so that a process that can lock it knows that
both are gone. Only then, and only where no other process can have them, do the locks that it names
go.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.store.folders import sync_folder, write_all

from . import holders

_PREFIX = "inbox-orch-change-"
_MOST_BYTES = 1024 * 1024
# Of a ref of ours the lock with our content in it is ours, whatever else is at work.
_OURS = ("refs/orch/", "refs/heads/orch/")
Locks = Mapping[str, str | None]
"""Lock files by their paths in the git directory, and what our git writes into each: "" is
nothing, None anything."""


class Mark(NamedTuple):
    """A mark of a git that is gone, held by its `descriptor`. `before` are the files that were
    there before it: [inode, time of change]. `forward` is a working tree that it moved."""

    path: str
    descriptor: int
    locks: dict[str, str | None]
    before: dict[str, list[int]]
    forward: dict[str, Any] | None


class Open:
    """A mark of our own. `descriptors` are to be shared with git; `keep` leaves the mark behind,
    for the process that mends what it names."""

    def __init__(self, path: str | None, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor
        self.keep = False

    @property
    def descriptors(self) -> tuple[int, ...]:
        """None where no mark could be made."""
        return () if self.descriptor is None else (self.descriptor,)


def of_refs(common: str, refs: Mapping[str, str], within: str = "") -> dict[str, str | None]:
    """The locks of a change of refs, given with what they will point at ("" for those that go).
    `within` is the git directory of the worktree where git is run, in that of the repository."""
    locks: dict[str, str | None] = {f"{ref}.lock": commit for ref, commit in refs.items()}
    locks |= {
        os.path.join(within, "HEAD.lock"): "",
        "packed-refs.lock": "",
        "packed-refs.new": None,
    }
    for folder in ("", within):
        if os.path.isdir(os.path.join(common, folder, "reftable")):
            locks[os.path.join(folder, "reftable", "tables.list.lock")] = None
    return locks


@contextlib.contextmanager
def marked(common: str, locks: Locks, forward: Mapping[str, Any] | None = None) -> Iterator[Open]:
    """A mark for the git that is run in the block, which has to share its descriptors.

    Where none can be made (the disk is full, say), git goes without one, and tells itself what is
    wrong. A git that was killed alone is cleared up after at the end of the block.
    """
    if _present(common, locks):
        forget_left(common)
    before = _present(common, locks)
    mark = _begin(common, {"locks": dict(locks), "before": before, "forward": forward})
    ended = False
    try:
        yield mark
        ended = True
    except Exception:
        ended = True
        raise
    finally:
        _end(common, mark, whole=ended and _present(common, locks).items() <= before.items())


def forget_left(common: str, until: float = 0.0) -> None:
    """Remove the locks that gits which are gone have left, as far as their marks prove it. A mark
    stays while something is left to do. `until`, in monotonic seconds, one waits for a git at work
    that may have a lock."""
    for mark in left(common):
        if locks_forgotten(common, mark, until) and mark.forward is None:
            forget(mark)


def forget(mark: Mark) -> None:
    """It is done."""
    with contextlib.suppress(OSError):
        os.unlink(mark.path)


def left(common: str) -> Iterator[Mark]:
    """The marks of gits that are gone with those who started them, one after the other, each
    held while it is looked at."""
    for path in _marks(common):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if _locked_at_once(descriptor) and _is_open_as(path, descriptor):
                yield _read(path, descriptor)
        finally:
            os.close(descriptor)


def locks_forgotten(common: str, mark: Mark, until: float) -> bool:
    """Remove what a mark's git has left, but for the lock of an index, which tells more; False
    when something may be held still."""
    index_lock = None if mark.forward is None else mark.forward["index_lock"]
    names = [name for name in mark.locks if name != index_lock]
    each = [forgotten(common, mark, name, until) for name in names]
    return all(each)


def forgotten(common: str, mark: Mark, name: str, until: float) -> bool:
    """Remove one lock that a mark names; True when it is gone, or was never its git's."""
    path = os.path.join(common, name)
    try:
        found = os.lstat(path)
        if not is_its_own(mark, name, found) or not _has_content(path, mark.locks[name]):
            return True
        if name == "packed-refs.new" and os.path.lexists(os.path.join(common, "packed-refs.lock")):
            return False
        certain = _is_certain(path, name, mark.locks[name])
        if in_use(common, mark, name, until, certain=certain):
            return False
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def is_its_own(mark: Mark, name: str, found: os.stat_result) -> bool:
    """Whether a file may have been made by the mark's git, and not before it or by others."""
    new = mark.before.get(name) != _identity(found)
    return new and stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()


def in_use(common: str, mark: Mark, name: str, until: float, *, certain: bool = False) -> bool:
    """Whether a lock may be a living process's: one of ours, or, unless it is `certain` that only
    we make such a lock, a git at work here."""
    for path in _marks(common):
        if path != mark.path and name in _text_of(path):
            return True
    lock = os.path.join(os.path.realpath(common), name)
    return not certain and holders.may_be_held(lock, _folders(common), until)


# -- the files -------------------------------------------------------------------------------


def _begin(common: str, content: Mapping[str, Any]) -> Open:
    path = os.path.join(common, f"{_PREFIX}{os.urandom(8).hex()}")
    try:
        descriptor = _made(path)
    except OSError:
        return Open(None, None)
    try:
        write_all(descriptor, json.dumps(content).encode())
        # Locks may outlive a loss of power.
        os.fsync(descriptor)
        sync_folder(common)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(path)
        return Open(None, None)
    return Open(path, descriptor)


def _made(path: str) -> int:
    """A new file, locked. A process that looks for marks may take it away in between."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_open_as(path, descriptor):
            return descriptor
        os.close(descriptor)


def _end(common: str, mark: Open, *, whole: bool) -> None:
    if mark.descriptor is None or mark.path is None:
        return
    done = whole and not mark.keep
    if done:
        with contextlib.suppress(OSError):
            os.unlink(mark.path)
    os.close(mark.descriptor)
    if not done and not mark.keep:
        forget_left(common)


def _read(path: str, descriptor: int) -> Mark:
    """What cannot be read was not written to its end: its git had not begun."""
    try:
        content = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
    except ValueError:
        content = {"locks": {}, "before": {}, "forward": None}
    return Mark(path, descriptor, content["locks"], content["before"], content["forward"])


def _marks(common: str) -> list[str]:
    try:
        names = sorted(name for name in os.listdir(common) if name.startswith(_PREFIX))
    except OSError:
        return []
    return [os.path.join(common, name) for name in names]


def _text_of(path: str) -> list[str]:
    """The locks that a living process's mark names; none when none lives."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return []
    try:
        return [] if _locked_at_once(descriptor) else list(_read(path, descriptor).locks)
    finally:
        os.close(descriptor)


def _locked_at_once(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_open_as(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False


# -- the locks -------------------------------------------------------------------------------


def _present(common: str, locks: Locks) -> dict[str, list[int]]:
    found = {}
    for name in locks:
        with contextlib.suppress(OSError):
            found[name] = _identity(os.lstat(os.path.join(common, name)))
    return found


def _identity(found: os.stat_result) -> list[int]:
    return [found.st_ino, found.st_ctime_ns]


def _has_content(path: str, expected: str | None) -> bool:
    """Whether a file holds what our git writes, or the beginning of it."""
    if expected is None:
        return True
    with open(path, "rb") as file:
        return (
            f"{expected}\n".encode().startswith(file.read(_MOST_BYTES))
            if expected
            else (not file.read(1))
        )


def _is_certain(path: str, name: str, expected: str | None) -> bool:
    if not expected or not name.startswith(_OURS):
        return False
    with open(path, "rb") as file:
        return file.read(_MOST_BYTES).strip() == expected.encode()


def _folders(common: str) -> list[str]:
    """The git directory, and the working trees as far as it knows them."""
    found, entries = [common], os.path.join(common, "worktrees")
    if os.path.basename(common) == ".git":
        found.append(os.path.dirname(common))
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        entry = os.path.join(entries, name)
        with contextlib.suppress(OSError), open(os.path.join(entry, "gitdir"), "rb") as file:
            found.append(os.path.dirname(os.path.join(entry, os.fsdecode(file.read().strip()))))
    return found
