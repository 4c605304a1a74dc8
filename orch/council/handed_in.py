"""Where a reply is found: what a thread ended with, and what its worker left behind.

Reads threads and artifacts, writes nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.inbox import Bus
from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.inbox.domain.working import STAND_INS
from inbox_orch.shared.adapters.usage import is_usage
from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError

from .stored import MAX_REPLY_BYTES

_MOST_READ = 16 * 1024 * 1024
_REASON_LENGTH = 500
_LAST_LINES = 3


class Found(NamedTuple):
    """Something that may be a reply, and where it was."""

    source: str
    raw: bytes


class Outcome(NamedTuple):
    """What an attempt has come to."""

    state: str
    found: Found | None = None
    reason: str | None = None
    errors: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of what was sent."""
        return 0 if self.found is None else len(self.found.raw)

    @property
    def sha256(self) -> str:
        """Of all that was sent, also where only a part is kept."""
        return sha256_hex(b"" if self.found is None else self.found.raw)

    @property
    def kept(self) -> bytes | None:
        """At most 128 KiB of it."""
        return None if self.found is None else self.found.raw[:MAX_REPLY_BYTES]


def handed_in(bus: Bus, thread: Thread) -> Found:
    """The reply of a thread that is done: the payload, unless it only says what the work has cost,
    else the body, else the artifact `result`, else standard output."""
    message = bus.last_message(thread.id, "result")
    payload = None if message is None else message.payload
    if payload is not None and not is_usage(payload):
        return Found("payload", payload.encode())
    body = "" if message is None else message.body or ""
    if body.strip() and not body.startswith(STAND_INS):
        return Found("body", body.encode())
    for found in left_behind(bus, thread, message):
        if found.raw.strip():
            return found
    return Found("body", body.encode())


def left_behind(bus: Bus, thread: Thread, message: Message | None = None) -> Iterator[Found]:
    """The artifacts of a thread that may be a reply, the likelier first; those of one message
    if it is given."""
    for name in ("result", "stdout"):
        if message is not None and name not in {a.name for a in message.artifacts}:
            continue
        raw = _content(bus, thread, name)
        if raw is not None:
            yield Found(name, _end_of(raw) if name == "stdout" else raw)


def _end_of(output: bytes) -> bytes:
    """A command may have talked a lot before it came to the point: the last 128 KiB, from the
    beginning of a line, or at least of a character."""
    if len(output) <= MAX_REPLY_BYTES:
        return output
    end = output[-MAX_REPLY_BYTES:]
    line = end.find(b"\n") + 1
    return end[line:] if line else end.lstrip(bytes(range(0x80, 0xC0)))


def _content(bus: Bus, thread: Thread, name: str) -> bytes | None:
    try:
        artifact, content = bus.artifact(thread.id, name, agent=thread.sender)
    except InboxOrchError as error:
        if error.code != "not_found":
            raise
        return None
    with content:
        return content.read(min(artifact.bytes, _MOST_READ))


def failure_words(bus: Bus, thread: Thread) -> str:
    """What the message says with which a thread failed: how the command ended and the last lines
    of what it wrote, on one line."""
    if thread.state == "cancelled":
        return "its thread was cancelled"
    message = bus.last_message(thread.id, "failure")
    body = "" if message is None else message.body or ""
    lines = [" ".join(line.split()) for line in body.splitlines() if line.strip()]
    told = [*lines[:1], *lines[1:][-_LAST_LINES:]]
    if thread.reason == "exhausted":
        told.insert(0, f"no delivery left after {thread.deliveries}: its workers died or gave up")
    return " ".join(told)[:_REASON_LENGTH] or "it failed without a word"
