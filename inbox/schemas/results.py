"""The `data` of each command, and what stands beside the errors of exits 8 and 11."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .things import (
    Artifact,
    Count,
    Digest,
    Lease,
    Message,
    Name,
    OwnLease,
    Serial,
    Shape,
    Thread,
    Time,
    Ulid,
)


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
    """`send`. `recipient_known`: that mailbox has been read before. `replayed`: with --key."""

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
    """`claim`: the task in full, then the newest. `redelivered`: it was held before;
    `result_schema`: what the result has to satisfy, where there is one."""

    thread: Thread
    lease: OwnLease
    messages: list[Message]
    messages_truncated: bool
    artifacts: list[Artifact]
    redelivered: bool
    result_schema: dict[str, Any] | None = None


class Renewed(Shape):
    """`renew`. `late`: the lease had expired, but that had not been noticed."""

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
    """`show`. `result_schema`: what the result has to satisfy, where there is one."""

    thread: Thread
    messages: list[Message]
    messages_truncated: bool
    artifacts: list[Artifact]
    result_schema: dict[str, Any] | None = None


class HandedOut(Shape):
    """`show --artifact`; `path` is where it was written, null without --output."""

    artifact: Artifact
    path: str | None


class BodyWritten(Shape):
    """`show --body-to`; `path` is the file that the whole body was written into."""

    message: Message
    path: str


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
    unread_threads: Count
    unread: list[Ulid]


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


class Cursor(Shape):
    """Where to go on from."""

    next_cursor: Serial


class Nothing(Shape):
    """There is no result, and nothing to go on from."""
