"""What a board shows: one look at a run and all about it. Folds in what happened, else reads."""

from typing import NamedTuple

from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.events import Event

from ..attempts import govern, timing
from ..runs.desk import Desk
from ..runs.model import Run
from ..views import status as viewing
from ..views.status import Question, Status

MOST_EVENTS = 50


class Board(NamedTuple):
    """A run as it stands, its open questions, its newest events, and the other open runs."""

    status: Status
    questions: tuple[Question, ...]
    events: tuple[Event, ...]
    runs: tuple[Run, ...]

    @property
    def keys(self) -> dict[str, str]:
        """The keys of the tasks by their ids."""
        return {row.standing.task.id: row.standing.task.key for row in self.status.rows}


def board(desk: Desk, run: Run) -> Board:
    """One look. Errors: those of folding, which writes."""
    status = viewing.status(desk, run)
    with desk.database.snapshot() as snapshot:
        newest = events.newest(snapshot, run.id, MOST_EVENTS)
    return Board(
        status, tuple(viewing.questions(desk, run)), tuple(newest), tuple(govern.list_runs(desk))
    )


def board_due(desk: Desk, run: Run) -> waits.Look:
    """When something of the run falls due by itself, as a wait takes it."""
    return timing.due(desk, run)


def board_topics(run: Run) -> tuple[str, ...]:
    """The bells to listen to."""
    return (events.run_topic(run.id), run.leader)
