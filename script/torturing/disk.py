"""The small disk that the run has for itself: made, filled up, made read-only, taken away.

Mounting needs the right to; `mounted` says whether there is one.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SIZE = "6g"
_ROOM_BYTES = 32 * 1024


class Disk:
    """A tmpfs at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mounted = False
        self._fixed = path.with_name("disk-read-only")

    def make(self) -> None:
        """Mount it where that is allowed; else it is a plain folder."""
        self.path.mkdir()
        options = f"size={SIZE},mode=0700"
        if shutil.which("mount") is not None:
            self.mounted = _mount("-t", "tmpfs", "-o", options, "tmpfs", str(self.path))
        if self.mounted:
            self._fixed.mkdir()
            self._must("--bind", str(self.path), str(self._fixed))
            self._must("-o", "remount,bind,ro", str(self._fixed))

    def take_away(self) -> None:
        """With all that is on it."""
        if self.mounted:
            _unmount(self._fixed)
            _unmount(self.path)

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Not larger than what is on it: the next page that is wanted is one too many."""
        for slack in (_ROOM_BYTES * 2**n for n in range(8)):
            # Refused while others write: what it holds has grown meanwhile.
            if _mount("-o", f"remount,size={self._used() + slack}", str(self.path)):
                break
        try:
            yield
        finally:
            self._must("-o", f"remount,size={SIZE}", str(self.path))

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Whoever opens a file by its path to write it gets EROFS (mount(2)).

        A second mount lies over the first one meanwhile: the first cannot be made read-only while
        any file on it is open for writing. What is open already can still be written; but no
        write to the database goes without opening the gate.
        """
        # It is read-only before it is put there, or somebody would have a file open on it too.
        self._must("--bind", str(self._fixed), str(self.path))
        try:
            yield
        finally:
            _unmount(self.path)

    def _used(self) -> int:
        found = os.statvfs(self.path)
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def _must(self, *options: str) -> None:
        subprocess.run(["mount", *options], check=True)


def _mount(*options: str) -> bool:
    return subprocess.run(["mount", *options], capture_output=True).returncode == 0


def _unmount(path: Path) -> None:
    """At once, whoever still has files open on it."""
    subprocess.run(["umount", "--lazy", path], check=True)
