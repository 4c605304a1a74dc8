"""Bringing into a new worktree what git does not: files that are in no commit, like `.env`.

Copies and nothing else: nothing that is there already is changed, nothing is read or written
through a symbolic link, and no other working tree, repository or database is entered.
"""

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from inbox_orch.shared.store.live import is_live

from .failures import named_failures, shown

_BUFFER_BYTES = 1024 * 1024
_MOST_NAMED = 100


class LeftOut(NamedTuple):
    """A path that was not copied, and why."""

    path: str
    reason: str


class Copied(NamedTuple):
    """How many files and links were copied, how many bytes, and what was not (at most 100)."""

    files: int
    size_bytes: int
    left_out: tuple[LeftOut, ...]


def copy_untracked(
    source: str | None, worktree: str, wanted: Sequence[str], is_ours: Callable[[str], bool]
) -> Copied:
    """Copy files and folders of the main working tree, byte for byte, with their modes.

    `wanted` are paths relative to it; `*`, `?` and `[…]` stand for names. What cannot be copied
    is left out and named: it is not there, it is a link that leads out, a socket, another
    working tree. `source` is None for a bare repository, which has nothing to copy. `is_ours`
    tells paths of the database, which only SQLite may open.
    Errors, about the worktree's side alone: `disk_full`, `read_only`, `io_error`.
    """
    copying = _Copying(source or "", worktree, is_ours)
    for pattern in wanted:
        if source is None:
            copying.leave_out(pattern, "the repository is bare")
        else:
            copying.take(pattern)
    copying.set_folder_modes()
    return Copied(copying.files, copying.size_bytes, tuple(copying.left_out[:_MOST_NAMED]))


class _Copying:
    def __init__(self, source: str, worktree: str, is_ours: Callable[[str], bool]) -> None:
        self._source, self._worktree, self._is_ours = source, worktree, is_ours
        self._made_folders: list[tuple[str, os.stat_result]] = []
        self.files = self.size_bytes = 0
        self.left_out: list[LeftOut] = []

    def leave_out(self, path: str, reason: str) -> None:
        """Name what is not copied."""
        self.left_out.append(LeftOut(shown(path), reason))

    def take(self, pattern: str) -> None:
        """Copy all that a listed path stands for."""
        import glob

        path = os.path.normpath(pattern)
        if not pattern or os.path.isabs(path) or path.split(os.sep)[0] in ("..", "."):
            self.leave_out(pattern, "not a path below the working tree")
            return
        if os.path.lexists(os.path.join(self._source, path)):
            self._enter(path, named=True)
            return
        found = sorted(glob.glob(path, root_dir=self._source, include_hidden=True))
        if not found:
            self.leave_out(pattern, "it is not there")
        for match in found:
            self._enter(match, named=False)

    def _enter(self, path: str, *, named: bool) -> None:
        """Copy a path whose folders have not been looked at yet."""
        for folder in _parents(path):
            if os.path.islink(os.path.join(self._source, folder)):
                self.leave_out(path, f"{shown(folder)} is a link")
                return
            if self._is_barred(folder):
                return
        self._copy(path, named=named)

    def _copy(self, path: str, *, named: bool) -> None:
        try:
            info = os.lstat(os.path.join(self._source, path))
            if stat.S_ISDIR(info.st_mode):
                if not self._is_barred(path):
                    self._copy_folder(path)
            elif self._is_free(path, named=named):
                self._copy_entry(path, info)
        except _Unreadable as error:
            self.leave_out(path, str(error))
        except FileNotFoundError:
            self.leave_out(path, "it is not there")  # removed while it was being copied

    def _copy_entry(self, path: str, info: os.stat_result) -> None:
        place = os.path.join(self._source, path)
        if stat.S_ISLNK(info.st_mode):
            self._copy_link(path)
        elif not stat.S_ISREG(info.st_mode):
            self.leave_out(path, "neither a file, a folder nor a link")
        elif self._is_ours(place) or is_live(place):
            self.leave_out(path, "it is the database's")
        else:
            self._copy_file(path)

    def _is_barred(self, folder: str) -> bool:
        """Whether a folder is not ours to enter; then it is named."""
        if self._is_ours(os.path.join(self._source, folder)):
            self.leave_out(folder, "it is the database's")
        elif os.path.basename(folder) == ".git":
            self.leave_out(folder, "it is a repository's own folder")
        elif os.path.lexists(os.path.join(self._source, folder, ".git")):
            self.leave_out(folder, "it is another working tree")
        else:
            return False
        return True

    def _is_free(self, path: str, *, named: bool) -> bool:
        """Whether nothing is at the path in the worktree, and no link on the way to it."""
        for folder in _parents(path):
            place = os.path.join(self._worktree, folder)
            if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
                self.leave_out(path, f"{shown(folder)} is no folder in the worktree")
                return False
        if not os.path.lexists(os.path.join(self._worktree, path)):
            return True
        if named:  # in a folder, that is what is in the commit
            self.leave_out(path, "it is in the commit already")
        return False

    def _copy_folder(self, path: str) -> None:
        try:
            names = sorted(os.listdir(os.path.join(self._source, path)))
        except PermissionError as error:
            raise _Unreadable(error) from error
        place = os.path.join(self._worktree, path)
        if os.path.islink(place) or (os.path.lexists(place) and not os.path.isdir(place)):
            self.leave_out(path, "it is no folder in the worktree")
            return
        if not os.path.lexists(place):
            if not self._is_free(path, named=True):
                return
            self._make_folders(os.path.join(path, ""))
        for name in names:
            self._copy(os.path.join(path, name), named=False)

    def _make_folders(self, path: str) -> None:
        """The folders on the way to a path, like those that they are copies of."""
        for folder in _parents(path):
            place = os.path.join(self._worktree, folder)
            if not os.path.lexists(place):
                info = os.stat(os.path.join(self._source, folder))
                with named_failures(place):
                    os.mkdir(place, 0o700)
                self._made_folders.append((place, info))

    def set_folder_modes(self) -> None:
        """Last, since what is to be written into a folder may not be when it is read-only."""
        for place, info in reversed(self._made_folders):
            with named_failures(place):
                os.chmod(place, stat.S_IMODE(info.st_mode) & 0o777)
                os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))

    def _copy_link(self, path: str) -> None:
        target = os.readlink(os.path.join(self._source, path))
        if os.path.isabs(target) or not self._is_inside(path, target):
            self.leave_out(path, "it is a link that leads out of the working tree")
            return
        self._make_folders(path)
        place = os.path.join(self._worktree, path)
        with named_failures(place):
            os.symlink(target, place)
        self.files += 1

    def _is_inside(self, path: str, target: str) -> bool:
        """Whether a relative link stays below the working tree, as it is written and as it
        leads today."""
        written = os.path.normpath(os.path.join(os.path.dirname(path), target))
        real = os.path.realpath(os.path.join(self._source, path))
        return written.split(os.sep)[0] != ".." and _is_below(real, os.path.realpath(self._source))

    def _copy_file(self, path: str) -> None:
        import shutil

        with _open_to_read(os.path.join(self._source, path)) as original:
            info = os.fstat(original.fileno())
            self._make_folders(path)
            place = os.path.join(self._worktree, path)
            with named_failures(place):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(place, flags, 0o600), "wb", buffering=0) as made:
                    shutil.copyfileobj(original, made, _BUFFER_BYTES)
                    os.fchmod(made.fileno(), stat.S_IMODE(info.st_mode) & 0o777)
                os.utime(place, ns=(info.st_atime_ns, info.st_mtime_ns))
        self.files += 1
        self.size_bytes += info.st_size


class _Unreadable(Exception):
    """Something of the main working tree that cannot be read; the text says why."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"it cannot be read: {error.strerror}")


@contextlib.contextmanager
def _open_to_read(path: str) -> Iterator[io.FileIO]:
    """An ordinary file, and never what a link leads to."""
    try:
        # Without O_NONBLOCK, a pipe that has taken the file's place would hold us up.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = io.FileIO(os.open(path, flags), "rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _Unreadable(error) from error
    with file:
        yield file


def _parents(path: str) -> list[str]:
    """The folders that a relative path leads through, outermost first."""
    parts = path.split(os.sep)[:-1]
    return [os.sep.join(parts[: i + 1]) for i in range(len(parts))]


def _is_below(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder
