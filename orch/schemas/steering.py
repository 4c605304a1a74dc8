"""The `data` of the commands that steer runs and tasks."""

from typing import Literal

from inbox_orch.inbox.schemas import Shape, Ulid

from .envelope import Contract
from .things import (
    Condition,
    Dependency,
    Key,
    Outcome,
    Question,
    Run,
    Standing,
    StandingState,
    Task,
    WorkedOn,
)


class RunGoverned(Shape):
    """`run pause`, `run resume`, `run cancel`, `run close`, `run reopen`. `already`: it was so
    before. `cancelled`: keys of the tasks that this call cancelled; `ending`: of those whose
    worker has still to learn of it."""

    run: Run
    outcome: Outcome
    already: bool
    cancelled: list[Key]
    ending: list[Key]


class TasksSteered(Shape):
    """`cancel`, `skip`, `retry`, `reassign`. `already`: keys of those that were so before;
    `ending`: of those whose worker has still to learn of it; `left_behind`: files that the
    attempt to go on from has not committed."""

    items: list[Task]
    truncated: bool
    next_cursor: None
    already: list[Key]
    ending: list[Key]
    left_behind: list[str]


class DependencyRemoved(Shape):
    """`dep remove`: the edge as it was."""

    dependency: Dependency


class Edge(Shape):
    """The task at the other end of a dependency, and whether the condition is met."""

    task: Ulid
    key: Key
    standing: StandingState
    condition: Condition
    verdict: Literal["met", "never", "open"]


class TaskShown(Shape):
    """`task show`. `stale`: the database cannot be written here, so nothing was folded in."""

    task: Standing
    body: str
    depends_on: list[Edge]
    dependents: list[Edge]
    attempts: list[WorkedOn]
    question: Question | None
    stale: bool


COMMANDS: dict[str, Contract] = {
    "run pause": Contract((RunGoverned,)),
    "run resume": Contract((RunGoverned,)),
    "run cancel": Contract((RunGoverned,)),
    "run close": Contract((RunGoverned,)),
    "run reopen": Contract((RunGoverned,)),
    "task show": Contract((TaskShown,)),
    "dep remove": Contract((DependencyRemoved,)),
    "retry": Contract((TasksSteered,)),
    "reassign": Contract((TasksSteered,)),
    "cancel": Contract((TasksSteered,)),
    "skip": Contract((TasksSteered,)),
}
