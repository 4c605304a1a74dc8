"""The output contract of `orch` as models: what `orch schema` prints and the tests hold.

What both commands have in common comes from the models of the bus. Like those, these are never
loaded by the other commands, and know nothing of the database.
"""

from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter

from inbox_orch.inbox.schemas import (
    AllSchemas,
    Author,
    CommandSchema,
    Count,
    Error,
    Event,
    Examined,
    Help,
    Message,
    Name,
    OneSchema,
    Seconds,
    Serial,
    Shape,
    Thread,
    Time,
    Ulid,
    Version,
)

Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
Commit = Annotated[str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$", description="A commit id.")]
Positive = Annotated[int, Field(ge=1)]

RunState = Literal["open", "paused", "cancelling", "closed"]
TaskState = Literal["pending", "active", "blocked", "succeeded", "failed", "cancelled", "skipped"]
StandingState = Literal[
    "ready",
    "waiting",
    "backing_off",
    "base_conflict",
    "unreachable",
    "active",
    "blocked",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
]
AttemptState = Literal[
    "allocating",
    "provisioned",
    "offered",
    "running",
    "blocked",
    "submitted",
    "verifying",
    "ending",
    "succeeded",
    "rejected",
    "failed",
    "timed_out",
    "lost",
    "cancelled",
    "provision_failed",
]
Outcome = Literal["running", "succeeded", "failed", "partial", "cancelled", "stuck"]
BaseSource = Literal["option", "run", "HEAD", "task", "merge"]
Condition = Literal["success", "finished", "failed"]

Data = TypeVar("Data", bound=Shape)
Partial = TypeVar("Partial")


# -- things, each with one shape wherever it appears. `task` is an id, `key` a task's key -------


class Run(Shape):
    """A set of tasks for one repository (or for none)."""

    id: Ulid
    name: str
    title: str
    state: RunState
    leader: Name
    repository: str | None
    base_ref: str | None
    base_commit: Commit | None
    worktree_root: str | None
    on_failure: Literal["continue", "fail-fast", "abort"]
    max_parallel: Positive | None
    created_at: Time
    closed_at: Time | None


class Task(Shape):
    """One piece of work of a run."""

    id: Ulid
    key: Key
    title: str
    kind: str
    mailbox: Name
    state: TaskState
    priority: int
    worktree: bool
    allow_empty: bool
    attempts: Count
    max_attempts: Positive
    max_infra_attempts: Positive
    work_failures: Count
    infra_failures: Count
    not_before: Time | None
    accepted_attempt: Ulid | None
    accepted_head: Commit | None
    reason: str | None
    created_at: Time
    updated_at: Time


class Standing(Task):
    """A task, and how it stands now. `because`: keys of the tasks that it waits for, or that
    made it unreachable; `until`: the end of a back-off; `conflict_paths`: where what it depends
    on does not merge."""

    standing: StandingState
    because: list[Key]
    until: Time | None
    conflict_paths: list[str]


class Attempt(Shape):
    """One try at a task. `ending_as`: what it becomes once nobody can be working on it."""

    id: Ulid
    run: Ulid
    task: Ulid
    number: Positive
    state: AttemptState
    ending_as: Literal["cancelled", "timed_out"] | None
    mailbox: Name
    thread: Ulid | None
    branch: str | None
    worktree: str | None
    base_ref: str | None
    base_commit: Commit | None
    base_source: BaseSource | None
    dirty_paths: list[str]
    head_commit: Commit | None
    commits_ahead: Count | None
    reason: str | None
    details: dict[str, Any] | None
    fatal: bool
    created_at: Time
    updated_at: Time
    ended_at: Time | None


class HandedOut(Attempt):
    """An attempt with everything that its worker needs; no brief before it is offered."""

    key: Key
    db: str
    db_id: Ulid
    brief: str | None


class Planned(Shape):
    """An attempt that a dry run would make."""

    task: Ulid
    key: Key
    number: Positive
    state: Literal["planned"]
    mailbox: Name
    branch: str | None
    base_ref: str | None
    base_commit: Commit | None
    base_source: BaseSource | None


class BaseConflict(Shape):
    """A task whose base cannot be merged, and the paths."""

    task: Ulid
    key: Key
    paths: list[str]


class Dependency(Shape):
    """`key` waits for `upstream_key`."""

    task: Ulid
    key: Key
    upstream: Ulid
    upstream_key: Key
    condition: Condition


class Question(Shape):
    """A worker's open question; `attempt` is its id."""

    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive
    thread: Ulid
    asked_by: Author
    message: Message
    deadline: Time | None


class Change(Event):
    """An event about a task or an attempt, with the task's key."""

    key: Key


class StatusRow(Standing):
    """A task with its newest attempt and who holds it."""

    attempt: Attempt | None
    holder: Name | None
    progress: Annotated[int, Field(ge=0, le=100)] | None


# -- the `data` of each command --------------------------------------------------------------


class RunOpened(Shape):
    """`run init`. `database_created`: the project had no database before."""

    run: Run
    database_created: bool
    replayed: bool = False


class RunList(Shape):
    """`run list`."""

    items: list[Run]
    truncated: bool
    next_cursor: None


class RunShown(Shape):
    """`run show`."""

    run: Run


class TaskAdded(Shape):
    """`task add`."""

    task: Task
    depends_on: list[Key]
    replayed: bool = False


class DependencyAdded(Shape):
    """`dep add`. `already`: the edge was there."""

    dependency: Dependency
    already: bool


class Ready(Shape):
    """`ready`. `stale`: the database cannot be written here, so nothing was folded in."""

    items: list[Standing]
    truncated: bool
    next_cursor: None
    base_conflicts: list[BaseConflict]
    stale: bool


class Dispatched(Shape):
    """`dispatch`; also beside the error `degraded`."""

    items: list[HandedOut | Planned]
    truncated: bool
    next_cursor: None
    dry_run: bool
    base_conflicts: list[BaseConflict]
    replayed: bool = False


class Reconciled(Shape):
    """`reconcile`: how much there was to do. `obstacle`: why submitted work could not be
    looked at."""

    finished_intents: Count
    folded: Count
    verified: Count
    outcome: Outcome
    obstacle: str | None


class Waited(Shape):
    """`wait`; also beside the errors of exit 11. `items` only with `--until change`.
    `obstacle`: why submitted work could not be looked at."""

    run: Run
    until: str
    outcome: Outcome
    items: list[Change]
    truncated: bool
    questions: list[Question]
    unreachable: list[Key]
    next_cursor: Serial
    obstacle: str | None


class NotYet(Shape):
    """`wait` at its time-out: where to go on from."""

    next_cursor: Serial
    outcome: Outcome
    obstacle: str | None


class Status(Shape):
    """`status`. `counts`: how many tasks stand how; `obstacle`: why submitted work cannot be
    looked at now."""

    run: Run
    outcome: Outcome
    counts: dict[StandingState, Count]
    items: list[StatusRow]
    truncated: bool
    next_cursor: Serial
    stale: bool
    obstacle: str | None


class Blocked(Shape):
    """`blocked`."""

    items: list[Question]
    truncated: bool
    next_cursor: None
    stale: bool


class Answered(Shape):
    """`answer`."""

    task: Ulid
    key: Key
    thread: Thread
    message: Message
    answered: bool
    replayed: bool = False


class Expectation(Shape):
    """Something that must hold at the end of the demonstration."""

    text: str
    held: bool


class Demonstrated(Shape):
    """`demo`; also beside the error `problems_found`. The folder is gone without --keep."""

    held: bool
    expectations: list[Expectation]
    commits: list[str]
    seconds: Seconds
    folder: str


# -- envelope --------------------------------------------------------------------------------


class Success(Shape, Generic[Data]):
    """The one JSON value of a command that did what was asked."""

    schema_: Literal["orch/1"] = Field(alias="schema")
    ok: Literal[True]
    data: Data


class Failure(Shape):
    """The one JSON value of a command that failed."""

    schema_: Literal["orch/1"] = Field(alias="schema")
    ok: Literal[False]
    error: Error


class FailureWithData(Failure, Generic[Partial]):
    """A failure on exit 8 or 11, with what there is all the same."""

    data: Partial


class Contract(NamedTuple):
    """What `data` can be: on success, and beside an error on exits 8 and 11."""

    results: tuple[type[Shape], ...]
    beside_error: tuple[type[Shape], ...] = ()

    def adapter(self) -> TypeAdapter[Any]:
        """Validates the JSON value of the output."""
        # Models that are only known here: no type checker can follow.
        success: Any = Success
        with_data: Any = FailureWithData
        shapes: list[Any] = [success[result] for result in self.results]
        shapes += [with_data[data] for data in self.beside_error]
        union: Any = Failure
        for shape in reversed(shapes):
            union = shape | union
        return TypeAdapter(union)


COMMANDS: dict[str, Contract] = {
    "orch": Contract((Version,)),
    "run init": Contract((RunOpened,)),
    "run list": Contract((RunList,)),
    "run show": Contract((RunShown,)),
    "task add": Contract((TaskAdded,)),
    "dep add": Contract((DependencyAdded,)),
    "ready": Contract((Ready,)),
    "dispatch": Contract((Dispatched,), (Dispatched,)),
    "status": Contract((Status,)),
    "wait": Contract((Waited,), (Waited, NotYet)),
    "blocked": Contract((Blocked,)),
    "answer": Contract((Answered,)),
    "doctor": Contract((Examined,), (Examined,)),
    "reconcile": Contract((Reconciled,)),
    "schema": Contract((OneSchema, AllSchemas)),
    "demo": Contract((Demonstrated,), (Demonstrated,)),
    "help": Contract((Help,)),
}


def command_schema(name: str) -> CommandSchema:
    """The JSON Schema (draft 2020-12) of a command's output; KeyError for an unknown one."""
    document = COMMANDS[name].adapter().json_schema()
    return CommandSchema(
        id=name,
        stream=False,
        json_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "orch" if name == "orch" else f"orch {name}",
            **document,
        },
    )
