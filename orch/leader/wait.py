"""Reconciling, and waiting for something to decide. A wait reconciles as it goes."""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

from inbox_orch.inbox.domain.limits import parse_cursor
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.events import Event

from ..attempts import fold, gate_slots, judge, kinds, moving, timing, verify
from ..attempts import late as late_work
from ..attempts import rows as attempts
from ..gates.turns import finished
from ..journal import finishing
from ..runs import readiness
from ..runs import run_rows as runs
from ..runs.config import NoAnswer, config_of
from ..runs.desk import Desk
from ..runs.limits import DEFAULT_WAIT_SECONDS
from ..runs.model import Run
from ..runs.readiness import Picture
from ..views import status
from ..views.stage_words import says_nothing
from ..views.status import Question
from .until import Goal, Seen, unreachable, verdict_on

CHANGES = (
    "attempt_blocked",
    "attempt_submitted",
    "attempt_succeeded",
    "attempt_rejected",
    "attempt_failed",
    "attempt_timed_out",
    "attempt_lost",
    "attempt_cancelled",
    "attempt_provision_failed",
    "attempt_conflict",
    "task_succeeded",
    "task_failed",
    "task_cancelled",
    "task_skipped",
    "visit_ended",
)
"""The kinds of events that a wait for a change tells, unless `tells` says that another one does."""
OF_VISITS = ("visit_begun", "visit_ended")
_MOST_CHANGES = 1000


class Reconciled(NamedTuple):
    """How much a reconciliation did. `late`: attempts of which late work was kept; `unchecked`:
    those whose checks are still to be run; `obstacle` is why submitted work could not be looked
    at."""

    finished_intents: int
    folded: int
    verified: int
    late: int
    unchecked: int
    outcome: str
    obstacle: str | None

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class Waited(NamedTuple):
    """What a wait has come to. `next_cursor` is where the next one goes on from; `keys` are the
    keys of the run's tasks by their ids; `obstacle` is why submitted work could not be looked
    at; `overrun_seconds` by how much a check that had begun outlasted the wait."""

    run: Run
    until: str
    outcome: str
    changes: tuple[Event, ...]
    questions: tuple[Question, ...]
    unreachable: tuple[str, ...]
    keys: dict[str, str]
    next_cursor: str
    obstacle: str | None
    failure: InboxOrchError | None = None
    overrun_seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "until": self.until,
            "outcome": self.outcome,
            "items": [
                {**event.as_json(), "key": self.keys[str(event.task_id)]} for event in self.changes
            ],
            "truncated": len(self.changes) == _MOST_CHANGES,
            "questions": [question.as_json() for question in self.questions],
            "unreachable": list(self.unreachable),
            "next_cursor": self.next_cursor,
            "obstacle": self.obstacle,
            "overrun_seconds": self.overrun_seconds,
        }


class Told(Protocol):
    """Something that is told about a run, and up to which event."""

    @property
    def run(self) -> Run: ...

    @property
    def next_cursor(self) -> str: ...


def reconcile(desk: Desk, run: Run, *, checks: bool = True) -> Reconciled:
    """Finish what a killed process has begun, carry over what happened on the bus, and look
    at what workers say is done, with the checks unless `checks` is False. Doing it again
    changes nothing.

    Errors: those of every write, of git, and of `check_next`.
    """
    finished = finishing.finish_intents(desk, run)
    folded = fold.fold(desk, run)
    with desk.database.snapshot() as snapshot:
        kind = kinds.of_run(snapshot, run.id)
    verified = kind.take_in(desk, run)
    if checks:
        verified += judge.check_all(desk, run)
    late = late_work.keep_late_work(desk, run)
    unchecked = judge.unchecked(desk, run)
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
    obstacle = verify.obstacle(desk, run)
    return Reconciled(finished, folded, verified, late, unchecked, picture.outcome, obstacle)


def end_unanswered(desk: Desk, run: Run, unanswered: NoAnswer | None) -> None:
    """Settle the decisions that nobody has taken in time by the caller's rule; that of the config
    holds without it. Errors: those of git and of every write."""
    if unanswered is None:
        return
    with desk.database.snapshot() as snapshot:
        staged = [a for a in attempts.live_of_run(snapshot, run.id) if a.staged]
    if staged:
        kinds.of_stages().end_unanswered(desk, run, staged, unanswered)


def wait(
    desk: Desk,
    run: Run,
    *,
    until: str = "change",
    after: str | None = None,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    agent: str | None = None,
    checks: bool | int = True,
) -> Waited:
    """Block until something has happened: `change`, `blocked`, `run`, or `task:KEY`.

    `change` tells what `agent` has not been told yet (or what came `after` an event id); hand
    the result to `mark_told` once it has been written. `failure` in the result is the error
    to end with when the outcome is not a plain success (`run_unsuccessful`,
    `needs_decision`). Errors: `usage`, `not_found`; `timeout`, with the cursor to go on from.

    While there is nothing to tell, the checks of submitted attempts and the gates of blueprints are
    run, unless `checks` is False; so many at once as it says if it is a number. None starts after
    the deadline; one that has begun is not cut short.
    """
    goal = goal_of(desk, run, until)
    start = start_of(desk, run, after, agent)
    deadline = desk.database.now().monotonic_ms + wait_seconds * 1000

    slots = gate_slots.slots_of(None if isinstance(checks, bool) else checks)

    def at_once(deadline: float) -> Generator[None, None, bool | None]:
        return gate_slots.working(desk, run, deadline, slots, refill=False)

    def look() -> waits.Look:
        while True:
            reconcile(desk, run, checks=False)
            waited = _look(desk, run, goal, start)
            if waited is not None:
                return waits.Look(waited)
            if not checks or finished(at_once(deadline)) is None:
                return timing.due(desk, run)
            ended.append(desk.database.now().monotonic_ms)

    ended: list[int] = []  # when checks did
    topics = (events.run_topic(run.id), run.leader)
    found = waits.wait(desk.database, topics, look, wait_seconds=wait_seconds)
    late_ms = max(ended, default=0) - deadline
    overrun = round(late_ms / 1000, 3) if late_ms > 0 else None
    if found is None:
        raise _timed_out(desk, run, until, start, wait_seconds, overrun)
    assert isinstance(found, Waited)
    return _with_overrun(found, overrun)


def mark_told(desk: Desk, told: Told, agent: str | None = None) -> None:
    """Move the agent's cursor in the run, forward only."""
    name = agent or desk.actor(told.run)
    with desk.database.transaction(durable=False) as tx:
        runs.advance_cursor(tx, name, told.run.id, int(told.next_cursor), tx.now.wall_ms)


# -- looking -----------------------------------------------------------------------------


def goal_of(desk: Desk, run: Run, until: str) -> Goal:
    """What is waited for. Errors: `usage`, `not_found`."""
    if until in ("change", "blocked", "run"):
        return Goal(until)
    if not until.startswith("task:"):
        raise usage(
            f"{until[:60]!r} cannot be waited for",
            hint="--until change, blocked, run, or task:KEY",
        )
    with desk.database.snapshot() as snapshot:
        return Goal(until, desk.task(snapshot, run, until.removeprefix("task:")).id)


def start_of(desk: Desk, run: Run, after: str | None, agent: str | None) -> int:
    """From which event on is told: behind `after`, else behind what the agent has been told. Error
    `usage`."""
    if after is not None:
        return parse_cursor(after)
    with desk.database.snapshot() as snapshot:
        return runs.cursor(snapshot, agent or desk.actor(run), run.id)


def _look(desk: Desk, run: Run, goal: Goal, start: int) -> Waited | None:
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        matching = events.Matching(run_id=run.id, kinds=CHANGES)
        found = events.after(snapshot, start, limit=_MOST_CHANGES, matching=matching)
        latest = events.latest(snapshot)
    changes = [event for event in found if tells(event, picture)]
    questions = tuple(status.questions(desk, run))
    moves = may_move(desk, picture)
    seen = Seen(picture, asking(questions), moves, bool(changes), deciding(questions))
    verdict = verdict_on(goal, seen)
    if verdict is None:
        return None
    waited = Waited(
        run=picture.run,
        until=goal.until,
        outcome=picture.outcome,
        changes=tuple(changes) if goal.until == "change" else (),
        questions=questions,
        unreachable=unreachable(picture),
        keys={s.task.id: s.task.key for s in picture.standings},
        next_cursor=str(found[-1].seq if len(found) == _MOST_CHANGES else latest),
        obstacle=verify.obstacle(desk, run),
    )
    return waited._replace(failure=verdict.failure(waited.as_json()))


def asking(questions: Sequence[Question]) -> tuple[str, ...]:
    """The keys of the tasks whose questions these are."""
    return tuple(question.task.key for question in questions)


def deciding(questions: Sequence[Question]) -> tuple[str, ...]:
    """The keys of those tasks among them whose blueprints ask for a decision."""
    return tuple(question.task.key for question in questions if question.decision is not None)


def tells(event: Event, picture: Picture) -> bool:
    """Whether an event says something of its own about a task of the run: where a blueprint says
    how attempts go, their visits tell what was handed in."""
    standing = picture.by_id.get(str(event.task_id))
    if standing is None:
        return False  # the task was removed
    if event.kind == "attempt_submitted":
        return standing.task.blueprint is None
    return not (event.kind in OF_VISITS and says_nothing(event.kind, event.data))


def may_move(
    desk: Desk, picture: Picture, *, dispatching: bool = True, unanswered: NoAnswer | None = None
) -> bool:
    """Whether a run can go on without a decision; `dispatching` is False when nothing can be
    dispatched for now. `unanswered`: what the caller does about decisions that nobody takes."""
    with desk.database.snapshot() as snapshot:
        live = attempts.live_of_run(snapshot, picture.run.id)
    if any(a.deciding and a.state == "blocked" for a in live):
        policies = (config_of(picture.run).decisions, unanswered or NoAnswer())
        if any(policy.on_no_answer != "wait" for policy in policies):
            return True  # it ends by itself
    taken = readiness.taken_by(live)
    return readiness.may_move(picture, taken, dispatching=dispatching)


def _timed_out(
    desk: Desk, run: Run, until: str, start: int, wait_seconds: float, overrun: float | None
) -> InboxOrchError:
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
    ready = [s.task.key for s in picture.standings if s.state == "ready"]
    obstacle = verify.obstacle(desk, run)
    hint = obstacle or "call again to go on waiting; nothing is missed in between"
    if ready and obstacle is None:
        what = f"{ready[0]} is ready" if len(ready) == 1 else f"{len(ready)} tasks are ready"
        hint = f"{what}: `orch dispatch` dispatches what is ready"
    return InboxOrchError(
        "timeout",
        f"run {run.name}: nothing to tell within {plain_number(wait_seconds)} s (until {until})",
        hint=hint,
        details={"run": run.name, "ready": ready[:20]},
        data={
            "next_cursor": str(start),
            "outcome": picture.outcome,
            "obstacle": obstacle,
            "overrun_seconds": overrun,
        },
    )


def _with_overrun(waited: Waited, overrun: float | None) -> Waited:
    """The result with the time by which a check outlasted the wait, in seconds; also in the error
    that it ends with."""
    if overrun is None:
        return waited
    found = waited._replace(overrun_seconds=overrun)
    if found.failure is not None and found.failure.data is not None:
        found.failure.data["overrun_seconds"] = overrun
    return found
