"""What every output is made of: threads, messages, leases, artifacts, events.

A thing has the same shape wherever it appears. Unknown keys are accepted, because added keys do
not raise the version; the tests accept none.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Ulid = Annotated[str, Field(pattern="^[0-9A-HJKMNP-TV-Z]{26}$")]
Serial = Annotated[
    str, Field(pattern="^[0-9]{1,19}$", description="A number, as a string; they rise.")
]
Name = Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Messages and events of the bus itself name `_system`, which no agent can be called.
Author = Annotated[str, Field(pattern="^(_system|[A-Za-z0-9][A-Za-z0-9._-]{0,63})$")]
Time = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        description="RFC 3339, UTC, milliseconds.",
    ),
]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="SHA-256 in hexadecimal.")]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]

State = Literal["pending", "claimed", "blocked", "done", "failed", "cancelled"]
MessageKind = Literal[
    "task",
    "progress",
    "question",
    "reply",
    "result",
    "failure",
    "release",
    "cancel",
    "system",
]


class Shape(BaseModel):
    """The base: exact types, unknown keys kept."""

    model_config = ConfigDict(strict=True, extra="allow", protected_namespaces=())


class Artifact(Shape):
    """A file attached to a thread. `message` is null for what a worker's command left behind."""

    name: str
    sha256: Digest
    bytes: Count
    message: Serial | None
    created_at: Time
    pruned: bool


class Message(Shape):
    """A message of a thread. `body` is null once pruned; `answers` is the question's id."""

    id: Serial
    thread: Ulid
    kind: MessageKind
    sender: Author
    to: list[Name]
    created_at: Time
    body: str | None
    body_bytes: Count
    body_sha256: Digest
    body_truncated: bool
    payload: dict[str, Any] | None
    options: list[str]
    deadline: Time | None
    progress: Annotated[int, Field(ge=0, le=100)] | None
    answers: Serial | None
    artifacts: list[Artifact]


class Lease(Shape):
    """Who holds a thread and until when."""

    thread: Ulid
    epoch: Annotated[int, Field(ge=1)]
    holder: Name
    lease_seconds: Seconds
    acquired_at: Time
    renewed_at: Time | None
    expires_at: Time
    expired: bool


class OwnLease(Lease):
    """A lease as its holder gets it: the token goes with every later command."""

    token: str


class Thread(Shape):
    """A unit of work between a sender and a mailbox. `question` is the open question's id."""

    id: Ulid
    subject: str
    sender: Name
    mailbox: Name
    state: State
    priority: int
    sealed: bool
    available_at: Time
    deliveries: Count
    max_deliveries: Annotated[int, Field(ge=1)]
    epoch: Count
    holder: Name | None
    question: Serial | None
    question_deadline: Time | None
    progress: Annotated[int, Field(ge=0, le=100)] | None
    reason: str | None
    fatal: bool
    late: bool
    created_at: Time
    updated_at: Time
    finished_at: Time | None
    pruned: bool
    lease: Lease | None


class Event(Shape):
    """One recorded change; `data` depends on `kind`."""

    id: Serial
    at: Time
    kind: str
    actor: Author
    thread: Ulid | None
    mailbox: Name | None
    run: Ulid | None
    task: Ulid | None
    attempt: Ulid | None
    data: dict[str, Any]
