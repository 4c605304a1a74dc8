"""The `data` of the commands that build a run, hand it out and look at it."""

from typing import Annotated

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Message, Name, Seconds, Serial, Shape, Thread, Ulid

from .plans import Config
from .things import (
    BaseConflict,
    Change,
    Dependency,
    HandedOut,
    Key,
    Outcome,
    Planned,
    Positive,
    Question,
    Run,
    Standing,
    StandingState,
    StatusRow,
    Task,
)


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
    """`run show`. The values of secrets are masked in `config`."""

    run: Run
    config: Config


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


class HeldBack(Shape):
    """How many ready tasks found no slot, and the limits that keep them out, in words."""

    tasks: Count
    limits: list[str]


class Dispatched(Shape):
    """`dispatch`; also beside the error `degraded`."""

    items: list[HandedOut | Planned]
    truncated: bool
    next_cursor: None
    dry_run: bool
    base_conflicts: list[BaseConflict]
    taken_over: list[HandedOut]
    held_back: HeldBack
    replayed: bool = False


class Reconciled(Shape):
    """`reconcile`: how much there was to do. `late`: ended attempts of which late commits were
    kept; `unchecked`: attempts whose checks are still to be run; `obstacle`: why submitted work
    could not be looked at."""

    finished_intents: Count
    folded: Count
    verified: Count
    late: Count
    unchecked: Count
    outcome: Outcome
    obstacle: str | None


class Waited(Shape):
    """`wait`; also beside the errors of exit 11. `items` only with `--until change`.
    `obstacle`: why submitted work could not be looked at; `overrun_seconds`: by how much a check
    that had begun outlasted the wait."""

    run: Run
    until: str
    outcome: Outcome
    items: list[Change]
    truncated: bool
    questions: list[Question]
    unreachable: list[Key]
    next_cursor: Serial
    obstacle: str | None
    overrun_seconds: Seconds | None


class NotYet(Shape):
    """`wait` at its time-out: where to go on from."""

    next_cursor: Serial
    outcome: Outcome
    obstacle: str | None
    overrun_seconds: Seconds | None


class Need(Shape):
    """A task that goes no further without somebody, and why."""

    key: Key
    title: str
    standing: StandingState
    why: str


class OpenRun(Shape):
    """A run that is not closed. `next`: the call that most likely comes next, in words; `stale`:
    the database cannot be written here, so nothing was folded in."""

    run: Run
    outcome: Outcome
    counts: dict[StandingState, Count]
    needs: list[Need]
    next: str
    stale: bool


class Overview(Shape):
    """`orch` by itself: the open runs, oldest first."""

    items: list[OpenRun]
    truncated: bool
    next_cursor: None


class BriefRow(Shape):
    """A task of a brief status. `why`: what it needs of somebody, None when it needs nothing.
    `stage` and `visits` as in a whole one."""

    key: Key
    standing: StandingState
    attempts: Count
    holder: Name | None
    progress: Annotated[int, Field(ge=0, le=100)] | None
    why: str | None
    stage: str | None = None
    visits: Count | None = None


class BriefStatus(Shape):
    """`status --brief`: in `items`, those that need somebody come first."""

    run: str
    outcome: Outcome
    counts: dict[StandingState, Count]
    items: list[BriefRow]
    needs: list[Key]
    truncated: bool
    next_cursor: Serial
    stale: bool
    obstacle: str | None


class Status(Shape):
    """`status`. `needs`: the keys of the tasks that go no further without somebody, the most
    urgent first; `counts`: how many tasks stand how; `obstacle`: why submitted work cannot be
    looked at now."""

    run: Run
    outcome: Outcome
    counts: dict[StandingState, Count]
    items: list[StatusRow]
    needs: list[Key]
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


class Decided(Shape):
    """`answer --decide`: the number of the visit that asked, its thread, and what was answered.
    `rule`: the one that was released, and `left` those that still keep the patch out; `parts`: the
    keys of the tasks that the task was split into."""

    task: Ulid
    key: Key
    decision: Positive
    thread: Ulid
    answer: str
    rule: str | None = None
    left: list[str] | None = None
    parts: list[Key] | None = None
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
