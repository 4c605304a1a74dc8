"""What is written to a thread when its command has ended.

A handover is put together once and can be tried again: every try asks the bus for the same
thing, so a repeat after a failure that was none is an exact repeat.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.endings import Ending, ending_text
from inbox_orch.shared.processes.kept import Kept
from inbox_orch.shared.store.artifacts import ArtifactStore, SourceFailed, Stored

from ..bus import Bus
from ..domain.limits import MIN_LEASE_SECONDS
from ..domain.model import Thread
from ..domain.working import Hold, Standing
from .plan import Plan
from .result import Result, read_result

BODY_TAIL_BYTES = 64 * 1024
FAILURE_TAIL_BYTES = 16 * 1024
REFUSED_BYTES = 4 * 1024
"""Of a result that was refused, so much is told to whoever is next."""
_LARGE_BYTES = 16 * 1024 * 1024
TOKEN_SERVES_NO_MORE = frozenset({"lease_lost", "cancelled", "invalid_state", "not_found"})
"""Refusals after which nothing can be written with a token any more."""


class NotYet(Exception):
    """A large file is still being copied; the same call again, in a moment, may have it."""


class Refused(Exception):
    """The thread's schema does not accept the result; the text says what is wrong with it."""


class Remains:
    """What one run of the command left behind."""

    def __init__(
        self,
        ending: Ending,
        stdout: Kept,
        stderr: Kept,
        result_path: str,
        usage_path: str | None = None,
    ) -> None:
        """Looks at the result file once, at the end of the command; `usage_path` is that of a file
        on what it has cost, if there may be one."""
        self.ending = ending
        self.stdout, self.stderr = stdout, stderr
        self.result: Result = read_result(result_path)
        self.usage = None if usage_path is None else read_result(usage_path).payload
        self._result_path = result_path
        self._copy: _Copy | None = None

    def store(self, artifacts: ArtifactStore) -> tuple[Stored, ...]:
        """Copy it all in, as `stdout`, `stderr` and `result`.

        Raises `NotYet`. Errors: `disk_full`, `io_error`, `read_only`.
        """
        result = self._store_result(artifacts) if self.result.attach else None
        output = [
            artifacts.add_bytes(kept.name, kept.content()) for kept in (self.stdout, self.stderr)
        ]
        return (*output, result) if result is not None else tuple(output)

    def keep_output(self, folder: str) -> str:
        """Put the output beside the result in `folder`; returns what is to be said of it, which
        is nothing when that succeeds."""
        try:
            for kept in (self.stdout, self.stderr):
                with open(os.path.join(folder, kept.name), "wb") as file:
                    file.write(kept.content())
        except OSError as error:
            return f"; not all of it could be kept: {error.strerror}"
        return ""

    def _store_result(self, artifacts: ArtifactStore) -> Stored | None:
        """None when a process that the command left behind has taken the file away. Raises OSError
        when it cannot be read: to try that again and again would lead nowhere."""
        try:
            if self.result.size <= _LARGE_BYTES:
                return artifacts.add_file(self._result_path)
            return self._copied(artifacts)
        except SourceFailed as error:
            raise OSError(error.message) from error
        except InboxOrchError as error:
            if error.code != "usage":
                raise
            return None

    def _copied(self, artifacts: ArtifactStore) -> Stored:
        """A large file is copied in a thread, since the leases of all slots have to be renewed
        meanwhile. After a failure the next call begins anew."""
        if self._copy is None:
            self._copy = _Copy(artifacts, self._result_path)
            self._copy.start()
        if self._copy.is_alive():
            raise NotYet
        copy, stored = self._copy, self._copy.stored
        if stored is None or not artifacts.has(stored):
            self._copy = None
        if copy.error is not None:
            raise copy.error
        if stored is None or self._copy is None:
            raise NotYet
        return stored


def remains_of(plan: Plan, ending: Ending, child: Child, folder: str) -> Remains:
    """What a command that has ended has left in its private folder, and on its output."""
    usage_path = None if plan.adapter is None else os.path.join(folder, "usage")
    result_path = os.path.join(folder, "result")
    return Remains(ending, child.stdout, child.stderr, result_path, usage_path)


class _Copy(threading.Thread):
    """Touches files alone, never the database."""

    def __init__(self, artifacts: ArtifactStore, path: str) -> None:
        super().__init__(daemon=True)
        self._artifacts, self._path = artifacts, path
        self.stored: Stored | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.stored = self._artifacts.add_file(self._path)
        except Exception as error:  # noqa: BLE001 - the thread that waits for it raises it
            self.error = error


class Handover(NamedTuple):
    """Calls to be made in order, each until it has succeeded; the last gives the outcome."""

    outcome: str
    calls: list[Callable[[], Thread | None]]


def attach(bus: Bus, thread_id: str, token: str, remains: Remains) -> Callable[[], None]:
    """Only the output; whatever becomes of the thread is said elsewhere."""

    def call() -> None:
        bus.attach_output(thread_id, token, remains.store(bus.artifacts))

    return call


def done(bus: Bus, thread: Thread, token: str, remains: Remains) -> Handover:
    """Finished, with the result file or else the tail of stdout; what it has cost stands beside it,
    where no schema says what the payload is. Its call raises `Refused`."""
    result = remains.result
    body = result.body
    if body is None and result.payload is None:
        parts = (result.note, remains.stdout.tail_text(BODY_TAIL_BYTES))
        body = "\n\n".join(part for part in parts if part) or None

    payload = result.payload or (None if thread.has_schema else remains.usage)

    def call() -> Thread | None:
        files = remains.store(bus.artifacts)
        try:
            return bus.done(thread.id, token, body=body, payload=payload, files=files).thread
        except InboxOrchError as error:
            if error.code != "result_refused":
                raise
            raise Refused(error.message) from error

    return Handover("done", [call])


def failed(
    bus: Bus,
    thread_id: str,
    token: str,
    remains: Remains,
    retry_in_seconds: float | None,
    reason: str = "",
) -> Handover:
    """Failed, or handed back for another try in `retry_in_seconds`; `reason` is what is said before
    how the command ended."""
    body = "\n\n".join(part for part in (reason, failure_text(remains)) if part)
    return _failing(bus, thread_id, token, remains, body, retry_in_seconds)


def offered_again(
    bus: Bus,
    thread_id: str,
    token: str,
    remains: Remains,
    retry_in_seconds: float,
    reason: str,
) -> Handover:
    """Handed back, since the thread's schema refuses what was handed in; the next one is told why,
    and how that begins."""
    result = remains.result
    found = result.payload or result.body or remains.stdout.tail_text(BODY_TAIL_BYTES) or "nothing"
    body = f"{reason}\n\nWhat was handed in:\n\n{_begun(found, REFUSED_BYTES)}"
    return _failing(bus, thread_id, token, remains, body, retry_in_seconds)


def _failing(
    bus: Bus,
    thread_id: str,
    token: str,
    remains: Remains,
    body: str,
    retry_in_seconds: float | None,
) -> Handover:
    def call() -> Thread:
        files = remains.store(bus.artifacts)
        return bus.fail(
            thread_id, token, body=body, retry_in_seconds=retry_in_seconds, files=files
        ).thread

    return Handover("failed", [call])


def _begun(text: str, most_bytes: int) -> str:
    data = text.encode()
    if len(data) <= most_bytes:
        return text
    return data[:most_bytes].decode(errors="ignore") + "\n… (cut)"


def not_started(
    bus: Bus, thread_id: str, token: str, reason: str, retry_in_seconds: float | None
) -> Handover:
    """The command could not be run at all."""

    def call() -> Thread:
        return bus.fail(thread_id, token, body=reason, retry_in_seconds=retry_in_seconds).thread

    return Handover("failed", [call])


def released(bus: Bus, thread_id: str, token: str, remains: Remains | None) -> Handover:
    """Handed back, because the worker was told to end."""

    def call() -> Thread:
        return bus.release(thread_id, token, body="The worker was stopped.").thread

    before = [] if remains is None else [attach(bus, thread_id, token, remains)]
    return Handover("released", [*before, call])


def left_open(bus: Bus, thread_id: str, token: str, remains: Remains | None) -> Handover:
    """Left without a holder, because the worker was told to end, with its question still open:
    whoever is there when the answer comes can claim it."""

    def call() -> Thread:
        return bus.renew(thread_id, token, lease_seconds=MIN_LEASE_SECONDS).thread

    before = [] if remains is None else [attach(bus, thread_id, token, remains)]
    return Handover("left_open", [*before, call])


def outcome_of(planned: str, thread: Thread | None) -> str:
    """What has become of the thread, in the words of the worker's stream."""
    if planned == "failed" and thread is not None:
        if thread.state == "pending":
            return "handed_back"
        if thread.reason == "exhausted":
            return "exhausted"
    return planned


def acknowledge_cancel(bus: Bus, thread_id: str, token: str) -> None:
    """The command has ended, so its worktree is free for the agent that cancelled."""
    try:
        bus.renew(thread_id, token)
    except InboxOrchError as error:
        if error.code not in TOKEN_SERVES_NO_MORE:
            raise


def without_us(seen: Standing) -> str:
    """What has become of a thread on which the worker has nothing more to write."""
    if seen.hold is Hold.CANCELLED:
        return "cancelled"
    if seen.hold is not Hold.ENDED:
        return "lease_lost"
    if seen.ended_by == "failed" and (seen.taken_over or seen.thread.state == "pending"):
        return "handed_back"
    return str(seen.ended_by)


def failure_text(remains: Remains) -> str:
    """How it ended, and the tail of stderr, or of stdout when there is nothing on stderr."""
    parts: Sequence[str | None] = (
        ending_text(remains.ending),
        remains.result.note,
        remains.stderr.tail_text(FAILURE_TAIL_BYTES)
        or remains.stdout.tail_text(FAILURE_TAIL_BYTES),
    )
    return "\n\n".join(part for part in parts if part)
