"""Process groups: signalling them, telling whether they live, ending what a command left behind.

Starts nothing. A group's number cannot be given to another one while it has members.
"""

import os
import signal
from collections.abc import Callable


def signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a group; False when there is none that it may reach."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def has_members(group: int) -> bool:
    """Whether any process of the group lives. A zombie does not: in a container whose first
    process reaps no child, it would stay for ever (proc(5), fields 3 and 5 of stat)."""
    if not signal_group(group, 0):
        return False
    if not os.path.isdir("/proc/self"):
        return True
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if fields[0] not in "ZX" and int(fields[2]) == group:
                return True
    return False


class Leftovers:
    """Groups whose command has ended, while they still have members: TERM, later KILL.

    A group's number cannot be given to another one while it has members; once it has none it is
    forgotten within a moment, long before the system gives the number out again.
    """

    _CHECK_MS = 20
    _GIVEN_UP_MS = 1000

    def __init__(self, grace_seconds: float, ended: Callable[[int], None]) -> None:
        """`ended` is called with each group once it is empty."""
        self._grace_ms = int(grace_seconds * 1000)
        self._ended = ended
        self._kill_at: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._kill_at)

    def add(self, group: int, now_ms: int) -> None:
        """The command of this group has ended; what it left behind ends now."""
        if signal_group(group, signal.SIGTERM):
            signal_group(group, signal.SIGCONT)
            self._kill_at[group] = now_ms + self._grace_ms
        else:
            self._ended(group)

    def tick(self, now_ms: int) -> None:
        """Forget the groups that are empty, kill those whose grace is over."""
        for group, kill_at in list(self._kill_at.items()):
            if now_ms >= kill_at:
                signal_group(group, signal.SIGKILL)
            # What outlives a KILL for long hangs inside the system.
            if not has_members(group) or now_ms >= kill_at + self._GIVEN_UP_MS:
                del self._kill_at[group]
                self._ended(group)

    def kill(self) -> None:
        """End them all at once."""
        for group in self._kill_at:
            signal_group(group, signal.SIGKILL)
            self._ended(group)
        self._kill_at.clear()

    def due(self, now_ms: int) -> int:
        """When to call `tick` again while there are any, in monotonic milliseconds."""
        return now_ms + self._CHECK_MS
