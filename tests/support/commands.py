"""The installed commands as processes, on a project of their own.

What a process says is judged here once for all tests: with --json one JSON value on standard
output, an exit code that belongs to the error, never a traceback.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import EXIT_CODES
from sqlite import outside
from support import warm
from support.templates import make_database
from support.timing import PATIENCE_SECONDS

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"  # of no thread


class Outcome(NamedTuple):
    """How a process ended."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def value(self) -> dict[str, Any]:
        """The one JSON value on standard output, with the exit code that belongs to it."""
        assert b"Traceback" not in self.stderr, self.stderr.decode()
        assert self.stdout.endswith(b"\n"), (self.stdout, self.stderr)
        value = json.loads(self.stdout)
        assert isinstance(value, dict)
        expected = 0 if value["ok"] else EXIT_CODES[value["error"]["code"]]
        assert self.code == expected, value
        return value

    @property
    def data(self) -> dict[str, Any]:
        """The data of a success."""
        value = self.value
        assert value["ok"], value["error"]
        return value["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The error object of a failure."""
        value = self.value
        assert not value["ok"], value
        return value["error"]

    @property
    def text(self) -> str:
        """Standard output as text, after a success."""
        assert self.code == 0, self
        assert b"Traceback" not in self.stderr, self.stderr.decode()
        return self.stdout.decode()


def command_path(name: str = "inbox") -> str:
    """The installed command."""
    path = Path(sys.executable).parent / name
    assert path.is_file(), f"{path} is missing: run script/test, which installs it"
    return str(path)


def run(
    *arguments: str | bytes,
    folder: Path | None = None,
    stdin: bytes | int = subprocess.DEVNULL,
    closed: Sequence[int] = (),
    program: str = "inbox",
    **environment: str,
) -> Outcome:
    """Run a command to its end. `closed`: descriptors that it starts without."""
    line: list[str | bytes] = [command_path(program), *arguments]
    whole = {**os.environ, **environment}
    if warm.is_enough(environment):
        process = warm.Forked(
            "command",
            [os.fsdecode(word) for word in line],
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stderr=subprocess.PIPE,
            cwd=folder,
            environment=whole,
            closed=closed,
        )
        given = stdin if isinstance(stdin, bytes) else b""
        stdout, stderr = process.communicate(given, timeout=PATIENCE_SECONDS)
        return Outcome(process.wait(), stdout, stderr)
    if closed:
        closing = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
        line = ["sh", "-c", f'exec "$@" {closing}', "sh", *line]
    ended = subprocess.run(
        line,
        cwd=folder,
        env=whole,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        **({"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}),  # type: ignore[call-overload]
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


class Project:
    """A folder with a database, what the tests put into it, and commands run in it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / ".inbox" / "bus.db"
        make_database(self.path)

    def run(self, *arguments: str | bytes, **options: Any) -> Outcome:
        """Run `inbox` in the folder."""
        return run(*arguments, **{"folder": self.folder, **options})

    def json(self, *arguments: str | bytes, **options: Any) -> Outcome:
        """Run `inbox --json` in the folder."""
        return self.run("--json", *arguments, **options)

    @contextmanager
    def bus(self, agent: str) -> Iterator[Bus]:
        """The bus in this process, closed before any command runs."""
        with Bus.open(self.path, agent=agent) as bus:
            yield bus

    def send(self, subject: str = "task", body: str = "do it", **options: Any) -> str:
        """A thread from `leader` to `workers`; its id."""
        with self.bus("leader") as bus:
            sent = bus.send(to="workers", subject=subject, body=body, **options)
            return sent.thread.id

    def claim(self, thread: str | None = None, agent: str = "w1") -> "HeldThread":
        """A thread that `agent` holds; a new one unless it is named."""
        with self.bus(agent) as bus:
            claimed = bus.claim(thread or self.send(), mailboxes=["workers"])
            assert claimed.lease.token is not None
            return HeldThread(claimed.thread.id, claimed.lease.token)

    def taken_over(self) -> "HeldThread":
        """A thread with a token that has become stale: released, then claimed by another."""
        held = self.claim()
        with self.bus("w1") as bus:
            bus.release(held.thread, held.token)
        self.claim(held.thread, agent="w2")
        return held

    def contents(self) -> list[tuple[Any, ...]]:
        """Every row of every table, to see that nothing was changed."""
        tables = sorted(outside.contents(self.path).items())
        return [(name, *row) for name, rows in tables for row in rows]

    def files(self) -> list[str]:
        """The names of all files in the project."""
        return sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if not path.name.endswith(("-wal", "-shm"))
        )


class HeldThread(NamedTuple):
    """A thread and the token of its holder."""

    thread: str
    token: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """As the commands of a holder take them."""
        return (self.thread, "--token", self.token)


@contextmanager
def silence() -> Iterator[int]:
    """For a standard input that nobody writes to and nobody closes: whoever reads it hangs."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


@contextmanager
def locked_by_another(path: Path) -> Iterator[None]:
    """Another program than the command, which knows nothing of the gate, holds SQLite's write
    lock: this one."""
    with outside.write_lock(path):
        yield
