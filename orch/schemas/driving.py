"""The lines of `drive` and `worker`, each with its `type`, and the `data` of the last one."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Name, Seconds, Serial, Shape

from .integration import Integrated
from .things import BaseConflict, Change, HandedOut, Key, Outcome, Question, Run, StandingState


class DispatchedLine(HandedOut):
    """An attempt is with its worker's mailbox; whichever leader has dispatched it."""

    type: Literal["dispatched"]


class ChangeLine(Change):
    """An attempt was submitted or ended, a question was asked, a task is final."""

    type: Literal["change"]


class QuestionLine(Question):
    """A question is open; `orch answer` answers it, also while the drive goes on."""

    type: Literal["question"]


class ConflictLine(BaseConflict):
    """A task cannot be dispatched, since what it depends on does not merge."""

    type: Literal["base_conflict"]


class NoticeLine(Shape):
    """Something is in the way; the drive goes on with everything else, and tries again."""

    type: Literal["notice"]
    code: str
    message: str
    hint: str | None


class Driven(Shape):
    """How a drive has ended. `counts`: how many tasks stand how; `obstacle`: why submitted work
    cannot be looked at, or nothing can be dispatched; `overrun_seconds`: by how much a check that
    had begun outlasted the drive."""

    run: Run
    until: str
    outcome: Outcome
    counts: dict[StandingState, Count]
    questions: list[Question]
    base_conflicts: list[BaseConflict]
    unreachable: list[Key]
    next_cursor: Serial
    obstacle: str | None
    overrun_seconds: Seconds | None


class Done(Shape):
    """`do`; also beside the errors of exit 11. `integrated` is null if it did not come to that;
    `closed`: whether the run is, since all of it is on its branch."""

    run: Run
    outcome: Outcome
    counts: dict[StandingState, Count]
    questions: list[Question]
    integrated: Integrated | None
    closed: bool
    database_created: bool


class ServingLine(Shape):
    """A role has a worker in its mailbox, which runs `command` for each thread, or the agent
    `adapter`; the other one is null."""

    type: Literal["serving"]
    role: Name
    mailbox: Name
    adapter: str | None
    command: str | None


class Served(Shape):
    """How the run stands whose roles were served."""

    run: Name
    outcome: Outcome
