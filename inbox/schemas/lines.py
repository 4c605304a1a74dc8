"""The lines of the streams: `watch`, `export`, `work`. Each has its `type`."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .things import (
    Artifact,
    Count,
    Event,
    Lease,
    Message,
    Name,
    Seconds,
    Serial,
    Shape,
    Thread,
    Time,
    Ulid,
)


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
    """A thread in an export. `result_schema`: what its result has to satisfy, if anything."""

    type: Literal["thread"]
    result_schema: dict[str, Any] | None = None


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
