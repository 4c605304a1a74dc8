"""The command of a process that is gone: what is written down of it, and how it is ended.

A guardian ends the commands of a process that dies; this is for what it has not ended yet.
"""

import signal
import time
from typing import Any

from inbox_orch.shared.clock import SystemClock
from inbox_orch.shared.processes import processes
from inbox_orch.shared.processes.groups import has_members, signal_group

from ..journal.rows import Intent

GRACE_SECONDS = 5.0
"""Between TERM and KILL."""
POLL_MS = 20
KILLED_MS = 1000
"""What outlives a KILL for longer hangs inside the system."""
_GUARDIAN_MS = 12_000


def facts_of(group: int) -> dict[str, Any]:
    """What an intent has to say of a command that runs in this process group, so that a process
    that takes it over can end it."""
    return {"group": group, "group_started": processes.start_time(group)}


def end_orphan(intent: Intent, boot_id: str) -> None:
    """See to the check of a process that is gone, in this boot: the guardian of the one that died
    ends it, and may still be doing so; two must not run in one worktree."""
    group, owner = intent.data.get("group"), intent.owner
    seen_from_here = (owner.boot_id, owner.namespace) == (boot_id, processes.namespace())
    if group is None or not seen_from_here:
        return
    started = processes.start_time(group)
    if started is not None and processes.is_running(group, intent.data["group_started"] or 0):
        _end_group(group)
    elif started is None:
        _await_end(group)


def _end_group(group: int) -> None:
    """End the group of a check whose starter is gone: TERM, then KILL after the grace. The caller
    has seen that the number still means that group."""
    clock = SystemClock()
    kill_at = clock.now().monotonic_ms + int(GRACE_SECONDS * 1000)
    signal_group(group, signal.SIGTERM)
    signal_group(group, signal.SIGCONT)
    killed_at: int | None = None
    while has_members(group):
        now = clock.now().monotonic_ms
        if killed_at is None and now >= kill_at:
            signal_group(group, signal.SIGKILL)
            killed_at = now
        if killed_at is not None and now >= killed_at + KILLED_MS:
            return
        time.sleep(POLL_MS / 1000)


def _await_end(group: int) -> None:
    """Wait until a group has no member left, but no longer than its guardian needs to end it."""
    clock = SystemClock()
    until = clock.now().monotonic_ms + _GUARDIAN_MS
    while has_members(group) and clock.now().monotonic_ms < until:
        time.sleep(POLL_MS / 1000)
