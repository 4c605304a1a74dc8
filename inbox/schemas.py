"""The output contract of `inbox` as models: what `inbox schema` prints and the tests hold.

Every real output in the tests is validated against these models. They are never loaded by the
commands themselves (pydantic costs more than a command does) and know nothing of the database.
Unknown keys are accepted, because added keys do not raise the version; the tests accept none.
"""

from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from inbox_orch.shared.errors import EXIT_CODES

SCHEMA = "inbox/1"

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


Data = TypeVar("Data", bound=Shape)
Partial = TypeVar("Partial")


# -- things, each with one shape wherever it appears -----------------------------------------


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


# -- the `data` of each command --------------------------------------------------------------


class Help(Shape):
    """`--help` of any command."""

    help: str


class Version(Shape):
    """`--version`."""

    version: str


class Init(Shape):
    """`init`: `created` is false when the database was there already."""

    path: str
    id: Ulid
    created: bool


class Where(Shape):
    """`where`."""

    path: str
    rule: Literal["option", "environment", "folder", "worktree", "submodule", "bare_repository"]
    id: Ulid
    schema_version: Annotated[int, Field(ge=1)]
    writable: bool


class Sent(Shape):
    """`send`. `recipient_known`: somebody has read that mailbox before. `replayed`: with --key."""

    thread: Thread
    message: Message
    recipient_known: bool
    replayed: bool = False


class Unread(Shape):
    """An unread message with a summary of its thread."""

    message: Message
    thread: Thread


class Fetched(Shape):
    """`fetch`."""

    items: list[Unread]
    truncated: bool
    next_cursor: Serial


class Claimed(Shape):
    """`claim`: the task in full, then the newest. `redelivered`: it was held before."""

    thread: Thread
    lease: OwnLease
    messages: list[Message]
    messages_truncated: bool
    artifacts: list[Artifact]
    redelivered: bool


class Renewed(Shape):
    """`renew`. `late`: the lease had expired, but nobody had noticed."""

    thread: Thread
    lease: Lease
    late: bool


class Updated(Shape):
    """`update`."""

    thread: Thread
    message: Message
    lease: Lease
    late: bool
    replayed: bool = False


class Asked(Shape):
    """`ask`. `already`: this very question was open."""

    thread: Thread
    message: Message
    late: bool
    already: bool
    replayed: bool = False


class Replies(Shape):
    """`wait-reply`: every body in full."""

    thread: Thread
    messages: list[Message]
    truncated: bool
    next_cursor: Serial


class Replied(Shape):
    """`reply`. `answered`: it answered an open question."""

    thread: Thread
    message: Message
    answered: bool
    replayed: bool = False


class Finished(Shape):
    """`done`, `fail`, `release`. `already`: an exact repeat, nothing was changed."""

    thread: Thread
    message: Message
    late: bool
    already: bool


class Cancelled(Shape):
    """`cancel`; no message when it was cancelled `already`."""

    thread: Thread
    already: bool
    message: Message | None = None


class Unsealed(Shape):
    """`unseal`."""

    thread: Thread
    already: bool


class Listing(Shape):
    """`list`; `total` with --count."""

    items: list[Thread]
    truncated: bool
    next_cursor: Serial
    total: Count | None = None


class Shown(Shape):
    """`show`."""

    thread: Thread
    messages: list[Message]
    messages_truncated: bool
    artifacts: list[Artifact]


class HandedOut(Shape):
    """`show --artifact`; `path` is where it was written, null without --output."""

    artifact: Artifact
    path: str | None


class MailboxStats(Shape):
    """How many threads of a mailbox are in which state."""

    mailbox: Name
    pending: Count
    claimed: Count
    blocked: Count
    done: Count
    failed: Count
    cancelled: Count
    oldest_pending_at: Time | None


class Stats(Shape):
    """`stats`."""

    mailboxes: list[MailboxStats]
    database_bytes: Count
    wal_bytes: Count


class UnreadCount(Shape):
    """How many messages of a mailbox are unread; counting stops when `at_least` is true."""

    mailbox: Name
    count: Count
    at_least: bool


class Overview(Shape):
    """`inbox` by itself."""

    agent: Name
    leases: list[Thread]
    unread: list[UnreadCount]
    questions: list[Thread]


class Check(Shape):
    """One thing that `doctor` looked at. `items` are the first of `total` findings."""

    name: str
    status: Literal["ok", "warning", "problem"]
    text: str
    items: list[str]
    total: Count
    fixable: bool
    fixed: Count


class Examined(Shape):
    """`doctor`; also beside the error `problems_found`."""

    path: str
    id: Ulid
    verified: bool
    newest_event: Serial
    items: list[Check]
    truncated: bool
    next_cursor: None
    problems: Count
    warnings: Count


class BackedUp(Shape):
    """`backup`; `artifacts` counts the copied files, null when they were not asked for."""

    path: str
    database_id: Ulid
    bytes: Count
    sha256: Digest
    newest_event: Serial
    artifacts: Count | None
    artifact_folder: str | None
    missing: Count


class Pruned(Shape):
    """`prune`: what was removed, or with --dry-run would be."""

    dry_run: bool
    threads: Count
    messages: Count
    body_bytes: Count
    artifacts: Count
    keys: Count
    files: Count
    file_bytes: Count
    leftovers: Count


class CommandSchema(Shape):
    """The output of one command. `stream`: JSON Lines, and this is the schema of a line."""

    id: str
    stream: bool
    json_schema: dict[str, Any]


class OneSchema(Shape):
    """`schema COMMAND`."""

    command: CommandSchema


class AllSchemas(Shape):
    """`schema`."""

    items: list[CommandSchema]
    truncated: bool
    next_cursor: None


# -- streams ---------------------------------------------------------------------------------


class EventLine(Event):
    """An event in a stream."""

    type: Literal["event"]


class EndLine(Shape):
    """The last line of `watch`: where to go on."""

    type: Literal["end"]
    next_cursor: Serial


class MetaLine(Shape):
    """The first line of `export`."""

    type: Literal["meta"]
    database: Ulid
    created_at: Time | None
    exported_at: Time
    schema_version: Annotated[int, Field(ge=1)]
    newest_event: Serial


class ThreadLine(Thread):
    """A thread in an export."""

    type: Literal["thread"]


class MessageLine(Message):
    """A message in an export, with its whole body."""

    type: Literal["message"]


class ArtifactLine(Artifact):
    """An artifact in an export, without its content."""

    type: Literal["artifact"]
    thread: Ulid


class LeaseLine(Lease):
    """A lease in an export, without its token."""

    type: Literal["lease"]
    renewals: Count
    counted: bool
    ended_at: Time | None
    ended_by: Literal["expired", "released", "failed", "done", "cancelled"] | None


class CursorLine(Shape):
    """How far an agent has read a mailbox."""

    type: Literal["cursor"]
    agent: Name
    mailbox: Name
    position: Serial
    updated_at: Time


class ExportEnd(Shape):
    """The last line of `export`: how many lines of each type there were."""

    type: Literal["end"]
    counts: dict[str, Count]


class WorkClaimed(Shape):
    """The worker has taken a thread."""

    type: Literal["claimed"]
    thread: Ulid
    subject: str
    mailbox: Name
    delivery: Count
    max_deliveries: Annotated[int, Field(ge=1)]
    lease_seconds: Seconds


class WorkStarted(Shape):
    """A run of the command has started."""

    type: Literal["started"]
    thread: Ulid
    run: Annotated[int, Field(ge=1)]
    pid: int
    worktree: str


class WorkWaiting(Shape):
    """The command has asked a question and ended; it runs again once there is an answer."""

    type: Literal["waiting"]
    thread: Ulid
    question: Serial | None
    exit_status: int | None
    signal: int | None


class WorkFinished(Shape):
    """What has become of a thread. `by_command`: the command itself said so."""

    type: Literal["finished"]
    thread: Ulid
    outcome: str
    by_command: bool
    exit_status: int | None
    signal: int | None
    timed_out: bool
    runs: Count
    seconds: Seconds


class WorkCounts(Shape):
    """What a worker has done; beside the error when `work --once` found nothing in time."""

    claimed: Count
    runs: Count
    finished: Count
    outcomes: dict[str, Count]


class WorkSummary(WorkCounts):
    """The last line of `work`."""

    type: Literal["summary"]


# -- `data` beside an error (exits 8 and 11) --------------------------------------------------


class Cursor(Shape):
    """Where to go on from."""

    next_cursor: Serial


# -- envelope --------------------------------------------------------------------------------


class Nothing(Shape):
    """There is no result, and nothing to go on from."""


class Error(Shape):
    """Why a command failed; the exit code follows from `code` (see docs/exit-codes.md)."""

    code: Annotated[str, Field(json_schema_extra={"examples": sorted(EXIT_CODES)})]
    message: str
    hint: str | None
    retryable: bool
    details: dict[str, Any]


class Success(Shape, Generic[Data]):
    """The one JSON value of a command that did what was asked."""

    schema_: Literal["inbox/1"] = Field(alias="schema")
    ok: Literal[True]
    data: Data


class Failure(Shape):
    """The one JSON value of a command that failed."""

    schema_: Literal["inbox/1"] = Field(alias="schema")
    ok: Literal[False]
    error: Error


class FailureWithData(Failure, Generic[Partial]):
    """A failure on exit 8 or 11, with what there is all the same."""

    data: Partial


class Contract(NamedTuple):
    """What a command puts on standard output with --json.

    `results` are the possible shapes of `data` on success; `beside_error` those of `data` on
    exits 8 and 11. A stream has `lines` instead, and its errors before the first line are an
    envelope like any other.
    """

    results: tuple[type[Shape], ...] = ()
    beside_error: tuple[type[Shape], ...] = ()
    lines: tuple[type[Shape], ...] = ()

    @property
    def stream(self) -> bool:
        """Whether the output is JSON Lines."""
        return bool(self.lines)

    def adapter(self) -> TypeAdapter[Any]:
        """Validates one JSON value of the output, a line of it for a stream."""
        shapes: list[Any] = [Success[result] for result in self.results]  # type: ignore[valid-type]
        shapes += [FailureWithData[data] for data in self.beside_error]  # type: ignore[valid-type]
        shapes += [*self.lines, Failure]
        union: Any = shapes[0]
        for shape in shapes[1:]:
            union = union | shape
        return TypeAdapter(union)


COMMANDS: dict[str, Contract] = {
    "inbox": Contract((Overview, Version)),
    "init": Contract((Init,)),
    "where": Contract((Where,)),
    "send": Contract((Sent,)),
    "fetch": Contract((Fetched,), (Fetched,)),
    "claim": Contract((Claimed,), (Nothing,)),
    "renew": Contract((Renewed,)),
    "update": Contract((Updated,)),
    "ask": Contract((Asked,)),
    "wait-reply": Contract((Replies,), (Cursor,)),
    "reply": Contract((Replied,)),
    "done": Contract((Finished,)),
    "fail": Contract((Finished,)),
    "release": Contract((Finished,)),
    "cancel": Contract((Cancelled,)),
    "unseal": Contract((Unsealed,)),
    "list": Contract((Listing,)),
    "show": Contract((Shown, HandedOut)),
    "watch": Contract(lines=(EventLine, EndLine)),
    "work": Contract(
        beside_error=(WorkCounts,),
        lines=(WorkClaimed, WorkStarted, WorkWaiting, WorkFinished, WorkSummary),
    ),
    "stats": Contract((Stats,)),
    "doctor": Contract((Examined,), (Examined,)),
    "backup": Contract((BackedUp,)),
    "export": Contract(
        lines=(
            MetaLine,
            ThreadLine,
            MessageLine,
            ArtifactLine,
            LeaseLine,
            CursorLine,
            EventLine,
            ExportEnd,
        )
    ),
    "prune": Contract((Pruned,)),
    "schema": Contract((OneSchema, AllSchemas)),
    "help": Contract((Help,)),
}


def command_schema(name: str) -> CommandSchema:
    """The JSON Schema (draft 2020-12) of a command's output; KeyError for an unknown one."""
    contract = COMMANDS[name]
    document = contract.adapter().json_schema()
    title = "inbox" if name == "inbox" else f"inbox {name}"
    return CommandSchema(
        id=name,
        stream=contract.stream,
        json_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": title,
            **document,
        },
    )
