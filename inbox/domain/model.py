"""The things of the bus as frozen values, and their one shape in JSON.

Plain named tuples: they load in a tenth of the time of the alternatives, and every command
pays for that.
"""

import json
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

from .limits import SHOWN_BODY_BYTES


class Artifact(NamedTuple):
    """A file attached to a thread; its content lies in the artifact folder."""

    name: str
    sha256: str
    bytes: int
    message_id: int | None
    created_at: int
    pruned: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "sha256": self.sha256,
            "bytes": self.bytes,
            "message": None if self.message_id is None else str(self.message_id),
            "created_at": rfc3339(self.created_at),
            "pruned": self.pruned,
        }


class Message(NamedTuple):
    """One message of a thread. `body` is None once it has been pruned."""

    id: int
    thread_id: str
    kind: str
    sender: str
    to: tuple[str, ...]
    body: str | None
    body_sha256: str
    body_bytes: int
    payload: str | None
    options: tuple[str, ...]
    deadline: int | None
    progress: int | None
    answers: int | None
    epoch: int | None
    created_at: int
    artifacts: tuple[Artifact, ...] = ()

    def as_json(self, *, full: bool = False) -> dict[str, Any]:
        """The body in full, or its first 4 KiB."""
        body, truncated = (self.body, False) if full else _shown(self.body)
        return {
            "id": str(self.id),
            "thread": self.thread_id,
            "kind": self.kind,
            "sender": self.sender,
            "to": list(self.to),
            "created_at": rfc3339(self.created_at),
            "body": body,
            "body_bytes": self.body_bytes,
            "body_sha256": self.body_sha256,
            "body_truncated": truncated,
            "payload": None if self.payload is None else json.loads(self.payload),
            "options": list(self.options),
            "deadline": rfc3339(self.deadline),
            "progress": self.progress,
            "answers": None if self.answers is None else str(self.answers),
            "artifacts": [a.as_json() for a in self.artifacts],
        }


class Lease(NamedTuple):
    """Who holds a thread. `token` is set only for the holder itself, when it claims."""

    thread_id: str
    epoch: int
    holder: str
    lease_ms: int
    acquired_at: int
    renewed_at: int | None
    expires_at: int
    expired: bool
    token: str | None = None

    def as_json(self) -> dict[str, Any]:
        shape = {
            "thread": self.thread_id,
            "epoch": self.epoch,
            "holder": self.holder,
            "lease_seconds": self.lease_ms / 1000,
            "acquired_at": rfc3339(self.acquired_at),
            "renewed_at": rfc3339(self.renewed_at),
            "expires_at": rfc3339(self.expires_at),
            "expired": self.expired,
        }
        if self.token is not None:
            shape["token"] = self.token
        return shape


class Thread(NamedTuple):
    """A unit of work between a sender and a mailbox. `has_schema`: one judges its result."""

    id: str
    number: int
    subject: str
    sender: str
    mailbox: str
    state: str
    priority: int
    sealed: bool
    available_at: int
    deliveries: int
    max_deliveries: int
    epoch: int
    holder: str | None
    question: int | None
    question_deadline: int | None
    progress: int | None
    reason: str | None
    fatal: bool
    late: bool
    created_at: int
    updated_at: int
    finished_at: int | None
    pruned: bool
    uncounted: bool
    cancel_seen: bool
    has_schema: bool
    lease: Lease | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "subject": self.subject,
            "sender": self.sender,
            "mailbox": self.mailbox,
            "state": self.state,
            "priority": self.priority,
            "sealed": self.sealed,
            "available_at": rfc3339(self.available_at),
            "deliveries": self.deliveries,
            "max_deliveries": self.max_deliveries,
            "epoch": self.epoch,
            "holder": self.holder,
            "question": None if self.question is None else str(self.question),
            "question_deadline": rfc3339(self.question_deadline),
            "progress": self.progress,
            "reason": self.reason,
            "fatal": self.fatal,
            "late": self.late,
            "created_at": rfc3339(self.created_at),
            "updated_at": rfc3339(self.updated_at),
            "finished_at": rfc3339(self.finished_at),
            "pruned": self.pruned,
            "lease": None if self.lease is None else self.lease.as_json(),
        }


def schema_json(schema: str | None) -> dict[str, Any]:
    """How the schema of a thread's result stands beside the thread: not at all without one."""
    return {} if schema is None else {"result_schema": json.loads(schema)}


class WorkTimes(NamedTuple):
    """When a thread was worked on, for schedulers. Wall-clock milliseconds.

    `first_claimed_at`; `blocked_ms`: how long questions were open that are settled now;
    `asked_at`: since when one is open; `settled_at`: when the last one was settled; `queued_ms`:
    how long it waited for the next holder after it had one, questions apart.
    """

    first_claimed_at: int
    blocked_ms: int
    asked_at: int | None
    settled_at: int | None
    queued_ms: int = 0


class Holders(NamedTuple):
    """Who has held a thread, the newest last, and how many of those leases have run out."""

    names: tuple[str, ...]
    lost: int


def _shown(body: str | None) -> tuple[str | None, bool]:
    """The body cut to what is shown by default, never inside a character."""
    if body is None or len(body) * 4 <= SHOWN_BODY_BYTES:
        return body, False
    encoded = body.encode("utf-8")
    if len(encoded) <= SHOWN_BODY_BYTES:
        return body, False
    return encoded[:SHOWN_BODY_BYTES].decode("utf-8", "ignore"), True


class Written(NamedTuple):
    """What a writing call did. Fields that do not apply are None and left out of the JSON.

    `late`: the lease had expired, but nobody had noticed. `already`: an exact repeat that
    changed nothing. `replayed`: the stored first result of a call with this key.
    """

    thread: Thread
    message: Message | None = None
    lease: Lease | None = None
    late: bool | None = None
    already: bool | None = None
    replayed: bool | None = None
    recipient_known: bool | None = None
    answered: bool | None = None

    def as_json(self) -> dict[str, Any]:
        shape: dict[str, Any] = {"thread": self.thread.as_json()}
        if self.message is not None:
            shape["message"] = self.message.as_json()
        if self.lease is not None:
            shape["lease"] = self.lease.as_json()
        for name in ("late", "already", "replayed", "recipient_known", "answered"):
            value = getattr(self, name)
            if value is not None:
                shape[name] = value
        return shape
