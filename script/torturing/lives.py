"""The processes of a torture: forked from one that has everything imported, or, where the dynamic
linker has to load something first, started anew. Either way a process of its own.

Knows how to begin, stop and end one; not what it does.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

# A process that is forked costs a few milliseconds, one that imports everything a few hundred.
# Nobody may have a database open while this process forks (sqlite.org/howtocorrupt.html, 2.6).
_FORKING = multiprocessing.get_context("fork")


class Life(Protocol):
    """One process, from its birth to its end."""

    def ended(self) -> int | None:
        """The exit status, negative for a signal; None while it lives."""

    def signal(self, number: int) -> None:
        """Send a signal."""

    def kill(self) -> None:
        """As the kernel does it; returns when it is gone."""

    def wait(self, seconds: float) -> int | None:
        """Wait for its end, at most so long; the exit status, None when it still lives."""


class Forked:
    """A child that goes on from here."""

    def __init__(self, work: Callable[..., object], given: Sequence[object], output: Path) -> None:
        self._process = _FORKING.Process(target=_work, args=(work, given, output))
        self._process.start()

    def ended(self) -> int | None:
        return self._process.exitcode

    def signal(self, number: int) -> None:
        if self._process.exitcode is None and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def wait(self, seconds: float) -> int | None:
        self._process.join(seconds)
        return self._process.exitcode


def _work(work: Callable[..., object], given: Sequence[object], output: Path) -> None:
    """As agents have it: a session of its own, and what it writes goes elsewhere.

    Linux shares out the processor by sessions (sched(7), autogroup), so that many processes in
    one of them wait for each other far longer than agents at terminals of their own do.
    """
    os.setsid()
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    work(*given)


class Spawned:
    """A program that is started anew."""

    def __init__(
        self, program: Path, given: Sequence[str], output: Path, environment: Mapping[str, str]
    ) -> None:
        with open(output, "ab") as written:
            self._process = subprocess.Popen(
                [sys.executable, "-P", program, *given],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                env={**os.environ, "PYTHONPATH": str(program.parent), **environment},
                start_new_session=True,
            )

    def ended(self) -> int | None:
        return self._process.poll()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
