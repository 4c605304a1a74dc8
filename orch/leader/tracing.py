"""Exporting the trace of a run while it is driven: by `orch trace`, as a process of its own.

So the drive loads nothing for it, waits for no collector, and cannot fail by one. What is left
over when the drive is killed, the next export sends.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from importlib.util import find_spec
from types import TracebackType
from typing import IO, Self

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.temporary import temporary_place

from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Run
from .drive import Drive, Step

VARIABLES = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
"""Any of them asks for an export, where the optional part is installed."""

_EVERY_SECONDS = 10.0
_LAST_SECONDS = 5.0
_WAIT_SECONDS = 3.0  # for the collector; starting takes one more on a busy machine


def is_installed() -> bool:
    """Whether the optional part is there."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def is_switched_off() -> bool:
    """Whether the environment says that nothing is to be exported."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def is_wanted(run: Run, say: Callable[[str], None]) -> bool:
    """Whether the run's trace is to be exported while it is driven. `say` is told where it is asked
    for in the config and cannot be."""
    asked = config_of(run).otel
    if not asked and not any(os.environ.get(name) for name in VARIABLES):
        return False
    if is_switched_off():
        return False
    if is_installed():
        return True
    if asked:
        from inbox_orch.shared.shell.extras import install_line

        say(
            "the trace is not exported: the optional part `otel` is not installed; the run goes on "
            f"({install_line('otel')})"
        )
    return False


class Tracing:
    """The exports of one drive, from `with` to its end: one at a time, every few seconds in which
    something has happened, and one at the end, which is waited for a few seconds.

    `say` is told once when one fails.
    """

    def __init__(self, desk: Desk, run: Run, say: Callable[[str], None]) -> None:
        self._desk, self._run, self._say = desk, run, say
        self.wanted = is_wanted(run, say)
        self._process: subprocess.Popen[bytes] | None = None
        self._told: IO[bytes] | None = None
        self._due, self._begun, self._complained = False, -_EVERY_SECONDS, False

    def on(self, wanted: Drive) -> Drive:
        """The drive, with a look at the export whenever it wakes up."""
        return wanted.pulsing(self._pulse) if self.wanted else wanted

    def through(self, steps: Generator[Step, None, None]) -> Generator[Step, None, None]:
        """The steps of a drive, each of which is a reason to export."""
        with contextlib.closing(steps):
            for step in steps:
                self._due = True
                self._pulse()
                yield step

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Export what is left, unless the drive was interrupted; end what takes too long."""
        if not self.wanted:
            return
        until = time.monotonic() + _LAST_SECONDS
        if error is None or isinstance(error, Exception):
            self._await(until)
            self._start()
            self._await(until)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._complain(f"not within {_LAST_SECONDS:g} seconds")
            self._forget()

    def _pulse(self) -> None:
        if not self.wanted:
            return
        self._look()
        now = time.monotonic()
        if self._due and self._process is None and now - self._begun >= _EVERY_SECONDS:
            self._start()

    def _start(self) -> None:
        if self._process is not None:
            return
        database = self._desk.database
        self._due, self._begun = False, time.monotonic()
        command = (
            *(sys.executable, "-P", "-m", "inbox_orch.orch", "trace", "--run", self._run.id),
            *("--db", database.layout.database, "--db-id", database.id),
            *("--agent", self._desk.actor(self._run), "--wait", f"{_WAIT_SECONDS:g}", "--json"),
        )
        try:
            self._told = tempfile.TemporaryFile(dir=temporary_place())  # noqa: SIM115
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._told,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (InboxOrchError, OSError) as error:
            self._complain(getattr(error, "strerror", None) or str(error))
            self._forget()

    def _await(self, until: float) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, until - time.monotonic()))
        self._look()

    def _look(self) -> None:
        """See whether the export has ended, and how."""
        if self._process is None or self._process.poll() is None:
            return
        if self._process.returncode != 0:
            self._complain(self._reason())
        self._forget()

    def _reason(self) -> str:
        assert self._told is not None
        self._told.seek(0)
        try:
            return str(json.loads(self._told.read(1 << 20))["error"]["message"])
        except (ValueError, LookupError, TypeError):
            assert self._process is not None
            return f"`orch trace` ended with {self._process.returncode}"

    def _forget(self) -> None:
        if self._told is not None:
            self._told.close()
        self._process = self._told = None

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            self._say(
                f"the trace is not exported for now: {reason}; the run goes on, and `orch trace "
                f"{self._run.name}` sends what is left"
            )
