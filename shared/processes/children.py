"""One run of a command: a process in a session and process group of its own.

Knows nothing of threads or attempts. A session of its own, so that keys typed at the caller's
terminal reach the caller alone, and nothing can stop for a terminal that it may not read.
"""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from .endings import Ending
from .groups import signal_group
from .kept import Kept

_READ_BYTES = 256 * 1024
# A pipe holds at most this much (pipe(7)), so that much is read after the command's end, not
# what a grandchild goes on to write.
_PIPE_BYTES = 1024 * 1024


class Child:
    """A started command. The caller watches `pipes` for input (and notes that in `watched`),
    and calls `poll` on SIGCHLD."""

    def __init__(self, process: subprocess.Popen[bytes], stdout: Kept, stderr: Kept) -> None:
        """`stdout` and `stderr` are the same where the process writes both into one pipe."""
        self._process = process
        self.group = process.pid
        self.watched = False
        self.stdout, self.stderr = stdout, stderr
        streams = [(process.stdout, stdout), (process.stderr, stderr)]
        self._streams = [(stream, kept) for stream, kept in streams if stream is not None]
        self.pipes = {stream.fileno(): kept for stream, kept in self._streams}
        for descriptor in self.pipes:
            os.set_blocking(descriptor, False)

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        stdin: int,
        stdout: Kept,
        stderr: Kept,
    ) -> "Child":
        """Run the command with the descriptor `stdin` as its standard input. Raises OSError."""

        def started(command: Sequence[str]) -> "Child":
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if stderr is stdout else subprocess.PIPE,
                bufsize=0,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
            return cls(process, stdout, stderr)

        try:
            return started(command)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            # A script without a `#!` line is run as a shell would run it (execvp(3)).
            return started(("/bin/sh", *command))

    def read(self, descriptor: int) -> bool:
        """Keep what has come through a pipe; False at its end."""
        return self._take(descriptor) != 0

    def _take(self, descriptor: int) -> int:
        """How many bytes have come, -1 when there are none now."""
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return -1
        self.pipes[descriptor].add(chunk)
        return len(chunk)

    def drain(self) -> None:
        """Read what the command had written when it ended, and close the pipes."""
        for stream, _ in self._streams:
            left = _PIPE_BYTES
            while left > 0 and (taken := self._take(stream.fileno())) > 0:
                left -= taken
            stream.close()

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
