"""What is written to a thread when its command has ended.

A handover is put together once and can be tried again: every try asks the bus for the same
thing, so a repeat after a failure that was none is an exact repeat.
"""

import signal
from collections.abc import Callable, Sequence
from typing import NamedTuple

from inbox_orch.shared.artifacts import ArtifactStore, Stored
from inbox_orch.shared.errors import InboxOrchError

from ..domain.model import Thread
from ..domain.working import Ending
from ..services.working import Working
from .output import Kept
from .result import Result, read_result

BODY_TAIL_BYTES = 64 * 1024
FAILURE_TAIL_BYTES = 16 * 1024


class Remains(NamedTuple):
    """What one run of the command left behind."""

    ending: Ending
    stdout: Kept
    stderr: Kept
    result: Result
    result_path: str

    def store(self, artifacts: ArtifactStore) -> tuple[Stored, ...]:
        """Copy it all in, as `stdout`, `stderr` and `result`. Errors: `disk_full`, `io_error`,
        `read_only`."""
        files = [
            artifacts.add_bytes(kept.name, kept.content()) for kept in (self.stdout, self.stderr)
        ]
        if self.result.attach:
            try:
                files.append(artifacts.add_file(self.result_path))
            except InboxOrchError as error:
                # A process that the command left behind has taken the file away meanwhile.
                if error.code != "usage":
                    raise
        return tuple(files)


def remains_of(ending: Ending, stdout: Kept, stderr: Kept, result_path: str) -> Remains:
    """Look at the result file once, at the end of the command."""
    return Remains(ending, stdout, stderr, read_result(result_path), result_path)


class Handover(NamedTuple):
    """Calls to be made in order, each until it has succeeded; the last gives the outcome."""

    outcome: str
    calls: list[Callable[[], Thread | None]]


def attach(bus: Working, thread_id: str, token: str, remains: Remains) -> Callable[[], None]:
    """Only the output; whatever becomes of the thread is said elsewhere."""

    def call() -> None:
        bus.attach_output(thread_id, token, remains.store(bus.artifacts))

    return call


def done(bus: Working, thread_id: str, token: str, remains: Remains) -> Handover:
    """Finished: the result is the payload or the body; else the tail of stdout is the body."""
    result = remains.result
    body = result.body
    if body is None and result.payload is None:
        parts = (result.note, remains.stdout.tail_text(BODY_TAIL_BYTES))
        body = "\n\n".join(part for part in parts if part) or None

    def call() -> Thread:
        files = remains.store(bus.artifacts)
        return bus.done(thread_id, token, body=body, payload=result.payload, files=files).thread

    return Handover("done", [call])


def failed(
    bus: Working,
    thread_id: str,
    token: str,
    remains: Remains,
    retry_in_seconds: float | None,
) -> Handover:
    """Failed, or handed back for another try in `retry_in_seconds`."""
    body = failure_text(remains)

    def call() -> Thread:
        files = remains.store(bus.artifacts)
        return bus.fail(
            thread_id, token, body=body, retry_in_seconds=retry_in_seconds, files=files
        ).thread

    return Handover("failed", [call])


def not_started(
    bus: Working, thread_id: str, token: str, reason: str, retry_in_seconds: float | None
) -> Handover:
    """The command could not be run at all."""

    def call() -> Thread:
        return bus.fail(thread_id, token, body=reason, retry_in_seconds=retry_in_seconds).thread

    return Handover("failed", [call])


def released(bus: Working, thread_id: str, token: str, remains: Remains | None) -> Handover:
    """Handed back, because the worker was told to end."""

    def call() -> Thread:
        return bus.release(thread_id, token, body="The worker was stopped.").thread

    before = [] if remains is None else [attach(bus, thread_id, token, remains)]
    return Handover("released", [*before, call])


def outcome_of(planned: str, thread: Thread | None) -> str:
    """What has become of the thread, in the words of the worker's stream."""
    if planned == "failed" and thread is not None:
        if thread.state == "pending":
            return "handed_back"
        if thread.reason == "exhausted":
            return "exhausted"
    return planned


def failure_text(remains: Remains) -> str:
    """How it ended, and the tail of stderr, or of stdout when there is nothing on stderr."""
    parts: Sequence[str | None] = (
        ending_text(remains.ending),
        remains.result.note,
        remains.stderr.tail_text(FAILURE_TAIL_BYTES)
        or remains.stdout.tail_text(FAILURE_TAIL_BYTES),
    )
    return "\n\n".join(part for part in parts if part)


def ending_text(ending: Ending) -> str:
    """How a command ended, as a sentence."""
    if ending.timed_out is not None:
        return f"The command was stopped after {ending.timed_out:g} s, its time limit."
    if ending.signal is not None:
        return f"The command was killed by signal {ending.signal} ({_name(ending.signal)})."
    return f"The command ended with exit status {ending.exit_status}."


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "without a name"
