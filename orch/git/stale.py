"""Locks that a git has left behind: on refs that nobody but us writes.

Never touches a lock on anybody else's ref: whether that git still lives is its user's to know.
"""

import contextlib
import os

STALE_SECONDS = 60.0
"""Git has the lock of a ref for milliseconds; so long only one that will not come back for it."""


def forget_lock(common_directory: str, ref: str) -> None:
    """Remove the lock of a ref of ours (`refs/orch/…`) that was left there: by a git that was
    killed, or whose disk could not be written when it would have cleared up. Git never does, and
    the ref could not be set any more."""
    assert ref.startswith("refs/orch/")
    path = os.path.join(common_directory, f"{ref}.lock")
    with contextlib.suppress(OSError):
        made = os.lstat(path).st_mtime
        if _disk_time(common_directory) - made > STALE_SECONDS:
            os.unlink(path)


def _disk_time(folder: str) -> float:
    """The present moment by the clock that the times of files are of."""
    import tempfile  # only where a lock lies in the way

    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime
