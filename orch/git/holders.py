"""Which living processes may have a lock file of git's. Ends nothing, and changes nothing.

Git closes a lock before it renames it, so that an open descriptor proves a holder, and none
proves nothing: every git at work in the repository counts that was there when one first looked.
"""

import os
import time
from collections.abc import Sequence

from inbox_orch.shared import processes

STALE_SECONDS = 60.0
"""Git has a lock for moments. Where processes cannot be looked at, so long only one that will not
come back for it."""
_PAUSE_SECONDS = 0.02
# Programs that live on and take no lock.
_READERS = (b"fsmonitor--daemon", b"cat-file", b"credential-cache--daemon", b"daemon")


def may_be_held(lock: str, folders: Sequence[str], until: float) -> bool:
    """Whether a living process may come back for a lock. `folders` are those of the repository
    and its working trees; what works there has until that monotonic second to end."""
    if not os.path.isdir("/proc/self"):
        return age_seconds(lock) <= STALE_SECONDS
    present = {n: processes.start_time(n) for n in _candidates(lock, folders)}
    # One that begins later has found the lock there already, and cannot be its holder.
    while any(_lives(number, started) for number, started in present.items()):
        if time.monotonic() >= until:
            return True
        time.sleep(_PAUSE_SECONDS)
    return False


def age_seconds(path: str) -> float:
    """How old a file is, by the clock that the times of files are of."""
    import tempfile  # only where a lock lies in the way

    made = os.lstat(path).st_mtime
    with tempfile.TemporaryFile(dir=os.path.dirname(path)) as file:
        return os.fstat(file.fileno()).st_mtime - made


def _lives(number: int, started: int | None) -> bool:
    return started is not None and processes.start_time(number) == started


def _candidates(lock: str, folders: Sequence[str]) -> list[int]:
    tops = [os.path.realpath(folder) for folder in folders]
    owner, found = os.lstat(lock).st_uid, []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if os.stat(f"/proc/{name}").st_uid == owner and _may_hold(name, lock, tops):
                    found.append(int(name))
            except OSError:
                continue  # it has ended, or is nobody's whom we may look at
    return found


def _may_hold(process: str, lock: str, tops: Sequence[str]) -> bool:
    with open(f"/proc/{process}/comm", "rb") as file:
        is_git = file.read().startswith(b"git")
    if not is_git:
        return _has_open(process, lock)
    with open(f"/proc/{process}/cmdline", "rb") as file:
        words = file.read()
    if set(words.split(b"\0")) & set(_READERS):
        return False
    with open(f"/proc/{process}/environ", "rb") as file:
        words += file.read()
    folder = os.readlink(f"/proc/{process}/cwd")
    within = any(folder == top or folder.startswith(top + os.sep) for top in tops)
    return within or any(os.fsencode(top) in words for top in tops)


def _has_open(process: str, lock: str) -> bool:
    for name in os.listdir(f"/proc/{process}/fd"):
        try:
            if os.readlink(f"/proc/{process}/fd/{name}") == lock:
                return True
        except OSError:
            continue
    return False
