"""What every command-line tool that is compared has: a store of its own, steps, running them.

Measures the wall time of whole processes, and keeps their command lines. Knows no tool by name.
"""

import subprocess
import time
from pathlib import Path
from typing import Any, ClassVar

import peers

LIMIT_SECONDS = 30.0


class Refused(Exception):
    """A command of a tool failed, or did not end in time; `str` says which."""


class Tool:
    """A tool with a store of its own in a folder. A step may be several commands."""

    name: ClassVar[str]
    package: ClassVar[str]
    # Step -> why there is none.
    lacks: ClassVar[dict[str, str]] = {}
    # Step -> what to know about it.
    notes: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path, bin_folder: str) -> None:
        self.folder = folder
        self._bin = bin_folder
        self.environment = {**peers.surroundings(str(folder)), **self.variables()}
        # Step -> the commands as they were last given, without the folders of this machine.
        self.commands: dict[str, list[str]] = {}
        self.status = 0
        self._step = ""
        self._seconds = 0.0

    def variables(self) -> dict[str, str]:
        """What it wants in its environment."""
        return {}

    def set_up(self) -> None:
        """Make its store."""

    def fill(self, items: int) -> None:
        """Put so many items into the store, in its own format."""
        raise NotImplementedError

    def left(self) -> int:
        """How many items nobody has taken."""
        raise NotImplementedError

    # The steps; each tool gives those that it has.

    def version(self) -> None:
        """The least that it answers."""
        self.run("--version")

    def send(self, key: str) -> None:
        """Queue one item."""
        raise NotImplementedError

    def claim(self, worker: str) -> Any:
        """Take one item; what names it for `done`, or None when there is none."""
        raise NotImplementedError

    def done(self, taken: Any, worker: str) -> None:
        """Finish an item that was taken."""
        raise NotImplementedError

    def take(self, worker: str) -> Any:
        """As `claim`, for several workers at once."""
        return self.claim(worker)

    def listing(self) -> None:
        """Show what is queued."""
        raise NotImplementedError

    # Running them.

    def timed(self, step: str, *arguments: Any) -> tuple[float, Any]:
        """(seconds of its processes, result) of a step."""
        self._step, self._seconds = step, 0.0
        self.commands[step] = []
        result = getattr(self, step)(*arguments)
        return self._seconds, result

    def run(self, *words: str, accepts: tuple[int, ...] = (0,)) -> bytes:
        """Run one command of the tool; what it printed. Error: `Refused`."""
        command = [self._bin + self.program(), *self.leading(), *words]
        before = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            raise Refused(f"`{self.shown(command)}` hung for {LIMIT_SECONDS:g} s") from late
        self._seconds += time.perf_counter() - before
        self.commands.setdefault(self._step, []).append(self.shown(command))
        # Some end an empty queue and a crash with the same exit code.
        if done.returncode not in accepts or b"Traceback" in done.stderr:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise Refused(f"`{self.shown(command)}`: exit {done.returncode} {' '.join(last)}")
        self.status = done.returncode
        return done.stdout

    def program(self) -> str:
        """The name of its command."""
        return self.name

    def leading(self) -> tuple[str, ...]:
        """Words that stand before every subcommand."""
        return ()

    def shown(self, command: list[str]) -> str:
        """A command line without the folders of this machine."""
        words = [word.replace(str(self.folder), ".") for word in command[1:]]
        return " ".join([self.program(), *(w if len(w) < 100 else "…" for w in words)])
