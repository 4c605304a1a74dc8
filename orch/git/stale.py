"""Locks that a git has left behind: on refs that nobody but us writes.

Never touches a lock on anybody else's ref: whether that git still lives is its user's to know.
"""

import contextlib
import os
import time

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


def old_locks(common_directory: str) -> list[str]:
    """Git's locks that have been there for long, whoever has left them: of refs, indexes and
    settings, those of linked worktrees, too."""
    entries = os.path.join(common_directory, "worktrees")
    names = os.listdir(entries) if os.path.isdir(entries) else []
    folders = [common_directory, *(os.path.join(entries, name) for name in sorted(names))]
    found = [os.path.join(folder, name) for folder in folders for name in sorted(_names(folder))]
    for folder, _, files in os.walk(os.path.join(common_directory, "refs")):
        found += [os.path.join(folder, name) for name in sorted(files)]
    locks = [path for path in found if path.endswith(".lock") and _is_gits(path)]
    return [path for path in locks if _age_seconds(path) > STALE_SECONDS]


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _is_gits(path: str) -> bool:
    return not os.path.basename(path).startswith("inbox-orch")


def _age_seconds(path: str) -> float:
    with contextlib.suppress(OSError):
        return time.time() - os.lstat(path).st_mtime
    return 0.0


def _disk_time(folder: str) -> float:
    """The present moment by the clock that the times of files are of."""
    import tempfile  # only where a lock lies in the way

    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime
