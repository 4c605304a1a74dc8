"""What a board shows: one look at a run and all about it. Folds in what happened, else reads."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.events import Event

from ..attempts import govern, timing
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.readiness import Picture
from ..views import status as viewing
from ..views.status import Question, Status
from . import wait
from .until import END_OF_RUN, Seen, Verdict, verdict_on

MOST_EVENTS = 50


class Board(NamedTuple):
    """A run as it stands, its open questions, its newest events, and the other open runs.
    `verdict` is what a wait for the end of the run would say; None while there is something to
    wait for."""

    status: Status
    questions: tuple[Question, ...]
    events: tuple[Event, ...]
    runs: tuple[Run, ...]
    verdict: Verdict | None

    @property
    def keys(self) -> dict[str, str]:
        """The keys of the tasks by their ids."""
        return {row.standing.task.id: row.standing.task.key for row in self.status.rows}


def board(desk: Desk, run: Run) -> Board:
    """One look. Errors: those of folding, which writes."""
    status = viewing.status(desk, run)
    questions = tuple(viewing.questions(desk, run))
    with desk.database.snapshot() as snapshot:
        newest = events.newest(snapshot, run.id, MOST_EVENTS)
    verdict = _verdict(desk, status, questions)
    return Board(status, questions, tuple(newest), tuple(govern.list_runs(desk)), verdict)


def _verdict(desk: Desk, status: Status, questions: Sequence[Question]) -> Verdict | None:
    """Of what is shown, so that the rows and the verdict are of one moment."""
    standings = tuple(row.standing for row in status.rows)
    picture = Picture(status.run, standings, {s.task.id: s for s in standings}, status.outcome)
    moves = wait.may_move(desk, picture)
    return verdict_on(END_OF_RUN, Seen(picture, wait.asking(questions), moves))


def board_due(desk: Desk, run: Run) -> waits.Look:
    """When something of the run falls due by itself, as a wait takes it."""
    return timing.due(desk, run)


def board_topics(run: Run) -> tuple[str, ...]:
    """The bells to listen to."""
    return (events.run_topic(run.id), run.leader)
