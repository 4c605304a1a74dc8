"""One run of the command: a process in a session and process group of its own.

Knows nothing of threads. A session of its own, so that keys typed at the worker's terminal
reach the worker alone, and nothing can stop for a terminal that it may not read.
"""

import errno
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from ..domain.working import Ending
from .output import Kept

_READ_BYTES = 256 * 1024
# A pipe holds at most this much (pipe(7)), so that much is read after the command's end, not
# what a grandchild goes on to write.
_PIPE_BYTES = 1024 * 1024


class Child:
    """A started command. The caller watches `pipes` for input (and notes that in `watched`),
    and calls `poll` on SIGCHLD."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self.group = process.pid
        self.watched = False
        self.stdout, self.stderr = Kept("stdout"), Kept("stderr")
        self.pipes = {
            process.stdout.fileno(): self.stdout,
            process.stderr.fileno(): self.stderr,
        }
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        task_path: str,
    ) -> "Child":
        """Run the command with the task on its standard input. Raises OSError."""
        with open(task_path, "rb") as task:
            try:
                return cls(_start(command, folder, environment, task.fileno()))
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                # A script without a `#!` line is run as a shell would run it (execvp(3)).
                return cls(_start(("/bin/sh", *command), folder, environment, task.fileno()))

    def read(self, descriptor: int) -> bool:
        """Keep what has come through a pipe; False at its end."""
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return True
        self.pipes[descriptor].add(chunk)
        return bool(chunk)

    def drain(self) -> None:
        """Read what the command had written when it ended, and close the pipes."""
        for descriptor, kept in self.pipes.items():
            enough = kept.total + _PIPE_BYTES
            before = -1
            while before < kept.total < enough:
                before = kept.total
                self.read(descriptor)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()

    def poll(self) -> Ending | None:
        """How the command ended, None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        return Ending(status) if status >= 0 else Ending(None, -status)

    def terminate(self) -> None:
        """Ask the group to end; a stopped process hears it only when it is continued."""
        signal_group(self.group, signal.SIGTERM)
        signal_group(self.group, signal.SIGCONT)

    def kill(self) -> None:
        """End the group."""
        signal_group(self.group, signal.SIGKILL)


def signal_group(group: int, number: int) -> bool:
    """Send a signal to every process of a group; False when there is none that it may reach."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def has_members(group: int) -> bool:
    """Whether any process of the group lives. A zombie does not: in a container whose first
    process reaps nobody, it would stay for ever (proc(5), fields 3 and 5 of stat)."""
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


def _start(
    command: Sequence[str], folder: str, environment: Mapping[str, str], task: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=task,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


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
