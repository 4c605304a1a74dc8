"""What a board shows: one look at a run and all about it. Folds in what happened, else reads."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.inbox.services.waiting import visible_events
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

MOST_EVENTS = 100
_MOST_THREADS = 60
_MOST_TEXTS = 20
_TOLD_WITH_TEXT = ("question_asked", "thread_updated")


class Board(NamedTuple):
    """A run as it stands, its open questions, its newest events with those of its threads, and the
    other open runs. `verdict` is what a wait for the end of the run would say; None while there is
    something to wait for. `texts` are what was written with the newest questions and updates, by
    the ids of the messages; `progress` is what was last said of how it goes, by the ids of the
    threads that somebody works on."""

    status: Status
    questions: tuple[Question, ...]
    events: tuple[Event, ...]
    runs: tuple[Run, ...]
    verdict: Verdict | None
    texts: Mapping[int, str] = {}
    progress: Mapping[str, str] = {}

    @property
    def keys(self) -> dict[str, str]:
        """The keys of the tasks by their ids."""
        return {row.standing.task.id: row.standing.task.key for row in self.status.rows}


def board(desk: Desk, run: Run) -> Board:
    """One look. Errors: those of folding, which writes."""
    status = viewing.status(desk, run)
    questions = tuple(viewing.questions(desk, run))
    newest = _newest(desk, run, status)
    verdict = _verdict(desk, status, questions)
    return Board(
        status,
        questions,
        tuple(newest),
        tuple(govern.list_runs(desk)),
        verdict,
        _texts(desk, newest),
        _progress(desk, status),
    )


def _newest(desk: Desk, run: Run, status: Status) -> list[Event]:
    """Of the run, and of the threads that were last moved, which is where workers are named."""
    threads = [row.thread for row in status.rows if row.thread is not None]
    moved = sorted(threads, key=lambda thread: thread.updated_at)[-_MOST_THREADS:]
    with desk.database.snapshot() as snapshot:
        found = events.newest(snapshot, run.id, MOST_EVENTS)
        if moved:
            ids = [thread.id for thread in moved]
            found += events.newest_of_threads(snapshot, ids, MOST_EVENTS)
        newest = sorted(found)[-MOST_EVENTS:]
        return visible_events(desk.bus.desk, snapshot, newest, desk.actor(run), ())


def _texts(desk: Desk, newest: Sequence[Event]) -> dict[int, str]:
    wanted = [e.data["message"] for e in newest if e.kind in _TOLD_WITH_TEXT]
    found = {number: desk.bus.message(number) for number in wanted[-_MOST_TEXTS:]}
    return {n: message.body for n, message in found.items() if message and message.body}


def _progress(desk: Desk, status: Status) -> dict[str, str]:
    live = [row for row in status.rows if row.attempt is not None and row.attempt.live]
    threads = [row.thread for row in live if row.thread is not None and not row.thread.sealed]
    said = {t.id: desk.bus.last_message(t.id, "progress") for t in threads if t.deliveries}
    return {name: message.body for name, message in said.items() if message and message.body}


def _verdict(desk: Desk, status: Status, questions: Sequence[Question]) -> Verdict | None:
    """Of what is shown, so that the rows and the verdict are of one moment."""
    standings = tuple(row.standing for row in status.rows)
    picture = Picture(status.run, standings, {s.task.id: s for s in standings}, status.outcome)
    moves, asking = wait.may_move(desk, picture), wait.asking(questions)
    seen = Seen(picture, asking, moves, deciding=wait.deciding(questions))
    return verdict_on(END_OF_RUN, seen)


def board_due(desk: Desk, run: Run) -> waits.Look:
    """When something of the run falls due by itself, as a wait takes it."""
    return timing.due(desk, run)


def board_topics(run: Run) -> tuple[str, ...]:
    """The bells to listen to."""
    return (events.run_topic(run.id), run.leader)
