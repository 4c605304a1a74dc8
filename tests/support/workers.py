"""`inbox work` as a real process, with shell scripts as its command.

Nothing here sleeps: tests wait for lines of the worker's stream, for events on the bus, or for
the end of a process.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services.reading import Shown
from support import warm
from support.commands import Project, command_path
from support.contracts import validated
from support.timing import PATIENCE_SECONDS


class Worker:
    """A running `inbox work --json` of an agent on the mailbox `workers`."""

    def __init__(
        self,
        project: Project,
        *options: str,
        command: Sequence[str],
        agent: str = "w1",
        launcher: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        inbox = command_path()
        line = [*launcher, inbox, "work", "--json", "--agent", agent, "--mailbox", "workers"]
        self.errors = project.folder / f"stderr-{time.monotonic_ns()}"
        scratch = project.folder / "scratch"
        scratch.mkdir(exist_ok=True)
        self.lines: list[dict[str, Any]] = []
        self._heard = b""
        line += [*options, "--", *command]
        whole = {**os.environ, "INBOX": inbox, "TMPDIR": str(scratch), **(environment or {})}
        self.process: warm.Forked | subprocess.Popen[bytes]
        with self.errors.open("wb") as errors:
            if launcher or not warm.is_enough(environment or {}):
                self.process = subprocess.Popen(
                    line,
                    cwd=project.folder,
                    env=whole,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
            else:
                self.process = warm.Forked(
                    "command",
                    line,
                    cwd=project.folder,
                    environment=whole,
                    stderr=errors.fileno(),
                )

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End it gently, whatever it is doing, so that its commands end with it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait(PATIENCE_SECONDS)

    def hear(self, kind: str, within: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The next line of this type; those before it are kept in `lines`."""
        deadline = time.monotonic() + within
        while True:
            line = self._next_line(deadline)
            assert line is not None, f"the worker ended without {kind}: {self.lines}{self.said}"
            if line["type"] == kind:
                return line

    def end(self, within: float = PATIENCE_SECONDS) -> int:
        """Its exit code, once it has ended by itself."""
        deadline = time.monotonic() + within
        while self._next_line(deadline) is not None:
            pass
        code = self.process.wait(max(0.1, deadline - time.monotonic()))
        assert "Traceback" not in self.said, self.said
        return code

    @property
    def said(self) -> str:
        """What it has written to standard error."""
        return self.errors.read_text()

    def _next_line(self, deadline: float) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._heard:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([descriptor], [], [], left)[0], f"silence: {self.lines}"
            chunk = os.read(descriptor, 65536)
            if not chunk:
                return None
            self._heard += chunk
        line, self._heard = self._heard.split(b"\n", 1)
        validated("work", line)
        self.lines.append(json.loads(line))
        return self.lines[-1]


def work_once(
    project: Project, script: str, *options: str, **more: Any
) -> tuple[int, dict[str, Any]]:
    """One thread with a shell script as the command: exit code and the `finished` line."""
    with Worker(project, "--once", *options, command=("sh", "-c", script), **more) as worker:
        finished = worker.hear("finished")
        return worker.end(), finished


def show(project: Project, thread: str) -> Shown:
    """The thread with whole bodies."""
    with project.bus("leader") as bus:
        return bus.show(thread, full=True)


def content(project: Project, thread: str, name: str) -> bytes:
    """The newest artifact of this name."""
    with project.bus("leader") as bus:
        _, file = bus.artifact(thread, name)
        with file:
            return file.read()


def await_event(bus: Bus, kind: str, thread: str, within: float = PATIENCE_SECONDS) -> Any:
    """The first event of this kind on the thread, from the beginning of the log."""
    for event in bus.watch(after="0", thread_id=thread, kinds=[kind], wait_seconds=within):
        return event
    raise AssertionError(f"no {kind} on {thread}")


def kinds(project: Project, thread: str) -> list[str]:
    """The kinds of all events of a thread."""
    with project.bus("leader") as bus:
        return [e.kind for e in bus.watch(after="0", thread_id=thread, wait_seconds=0)]


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
