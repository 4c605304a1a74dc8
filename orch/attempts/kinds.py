"""What differs between the kinds of work: one table, and a module for each kind.

Dispatching, judging and recording ask here, so that nothing of one kind stands in the way of
another, and a plain task is carried out without a look at any other kind.
"""

from collections.abc import Generator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from inbox_orch.shared.store.artifacts import Stored
from inbox_orch.shared.store.engine import Session, Transaction

from ..runs import run_rows as runs
from ..runs.config import NoAnswer
from ..runs.model import Attempt, Run, Task

if TYPE_CHECKING:
    from ..git.worktrees import Hold
    from ..runs.desk import Desk

_WORK = "inbox_orch.orch.attempts.work"
_COUNCIL = "inbox_orch.orch.council.seats"
_STAGED = "inbox_orch.orch.stages.attempt"
# Users may give their own tasks these words, too: the module itself knows its own.
OF_TASKS = {"review": _COUNCIL, "ballot": _COUNCIL}
_OF_RUNS = {"council": _COUNCIL}


class Staged(Protocol):
    """What is done about attempts that go by a blueprint, beside what every kind does."""

    def advance(self, desk: "Desk", run: Run, live: Sequence[Attempt]) -> int:
        """Carry each as far as it goes without running a gate; returns how many were moved."""

    def working(
        self, desk: "Desk", run: Run, live: Sequence[Attempt], starts_before_ms: float | None
    ) -> Generator[None, None, bool | None]:
        """Run the gates of one stage, with turns for the caller; returns whether it was decided,
        None when there are none to run."""

    def ask_approval(self, desk: "Desk", tx: Transaction, run: Run, attempt: Attempt) -> None:
        """Ask whoever has to approve of what a submitted attempt has handed in, though it goes by
        no blueprint: it is blocked until then, and waits for that as one that goes by one does."""

    def due_ms(
        self, desk: "Desk", tx: Session, live: Sequence[Attempt], unanswered: NoAnswer | None
    ) -> int | None:
        """When the next of them falls due by itself, in wall-clock milliseconds; `unanswered`
        counts beside what the run's config says of decisions that nobody takes."""

    def end_unanswered(
        self, desk: "Desk", run: Run, live: Sequence[Attempt], unanswered: NoAnswer | None
    ) -> int:
        """Settle the decisions that nobody has taken in time; returns how many."""


class FirstMessage(NamedTuple):
    """The text of a task's thread, and what is attached to it."""

    body: str
    files: tuple[Stored, ...] = ()


class Kind(Protocol):
    """What a kind of work does in its own way."""

    def prepare(
        self, desk: "Desk", run: Run, task: Task, attempt: Attempt, hold: "Hold"
    ) -> Attempt:
        """Fill the worktree of an attempt; returns the attempt with details of it."""

    def offer(
        self,
        desk: "Desk",
        tx: Transaction,
        run: Run,
        task: Task,
        attempt: Attempt,
        text: FirstMessage,
    ) -> Attempt:
        """Send the first message and say so, in one transaction."""

    def take_in(self, desk: "Desk", run: Run) -> int:
        """Judge what has come; returns how many attempts were decided."""

    def thread_behind(self, tx: Session, attempt: Attempt) -> str | None:
        """The thread on which events about an attempt stand, so that who may not see a sealed
        one does not see them either."""


def of_task(task: Task) -> Kind:
    """The kind of a task."""
    return _load(OF_TASKS.get(task.kind, _WORK) if task.blueprint is None else _STAGED)


def of_stages() -> Staged:
    """What carries attempts through their stages; loaded where there is one."""
    return cast(Staged, import_module(_STAGED))


def of_run(tx: Session, run_id: str) -> Kind:
    """The kind of a whole run."""
    return _load(_OF_RUNS.get(runs.kind(tx, run_id), _WORK))


def _load(module: str) -> Kind:
    return cast(Kind, import_module(module))
