"""Driving a run: reconcile, dispatch what is ready, wait; again, until there is nothing more to do.

A drive keeps nothing that a crash could lose: what it knows is how far it has told. Several at
once share the work, since each step of theirs is guarded by the state that it expects.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_name, plain_number
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.events import Event

from ..attempts import dispatch, gate_slots, moving, provision, rework, timing
from ..attempts import rows as attempts
from ..git.commands import FAILURES
from ..runs import run_rows as runs
from ..runs.config import NoAnswer
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.readiness import Picture, Standing, taken_by
from ..views import status
from ..views.status import Question
from . import wait
from .until import Goal, Seen, conflicts, unreachable, verdict_on
from .wait import CHANGES

_MOST_EVENTS = 500
_FIRST_HOLD_SECONDS, _MOST_HOLD_SECONDS = 2.0, 30.0
_MOST_TRIES = 3
_TOLD = (*CHANGES, "attempt_offered", "visit_begun")
_HOLDS = ("dirty_repository", "git_missing", *FAILURES)
"""Why nothing can be dispatched for now, while what runs goes on."""


class Line(NamedTuple):
    """One thing that has happened in a drive: `dispatched`, `change`, `question`,
    `base_conflict` or `notice`."""

    type: str
    facts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, **self.facts}


class Driven(NamedTuple):
    """How a drive has ended. `failure` is the error to end with, unless all is well;
    `overrun_seconds` by how much a check that had begun outlasted the drive."""

    run: Run
    until: str
    outcome: str
    counts: dict[str, int]
    questions: tuple[Question, ...]
    conflicts: tuple[Standing, ...]
    unreachable: tuple[str, ...]
    next_cursor: str
    obstacle: str | None
    failure: InboxOrchError | None = None
    overrun_seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "until": self.until,
            "outcome": self.outcome,
            "counts": self.counts,
            "questions": [question.as_json() for question in self.questions],
            "base_conflicts": [conflict_as_json(standing) for standing in self.conflicts],
            "unreachable": list(self.unreachable),
            "next_cursor": self.next_cursor,
            "obstacle": self.obstacle,
            "overrun_seconds": self.overrun_seconds,
        }


class Step(NamedTuple):
    """What is to be told next, and up to which event; `ending` is there in the last one."""

    run: Run
    lines: tuple[Line, ...]
    next_cursor: str
    ending: Driven | None = None


class Drive(NamedTuple):
    """What a drive is asked for: until what (`run`, `blocked`, `change`, `task:KEY`), and for how
    long; `after` is an event id, `agent` whose cursor tells what has been told. `mailbox`,
    `allow_dirty`, `within`, `harvest` and `unsaid_harvest` are those of `dispatch`, `checks` is
    that of `wait`. `blueprint`: id and text of the one that tasks go by which name none and have
    not begun. `gate_slots`: so many checks and gates at once, None: see `slots_of`. `unanswered`:
    what becomes of decisions that nobody takes, beside what the run's config says. `on_look` is
    called after each look at the database, `pulse` whenever the wait wakes up."""

    until: str = "run"
    after: str | None = None
    mailbox: str | None = None
    allow_dirty: bool = False
    within: str | None = None
    wait_seconds: float = float("inf")
    checks: bool = True
    agent: str | None = None
    on_look: Callable[[], None] | None = None
    pulse: Callable[[], None] | None = None
    harvest: bool | None = None
    unsaid_harvest: bool | None = None
    blueprint: tuple[str, str] | None = None
    unanswered: NoAnswer | None = None
    gate_slots: int | None = None

    def pulsing(self, also: Callable[[], None]) -> "Drive":
        """The same, with something more to do whenever the wait wakes up."""
        before = self.pulse

        def both() -> None:
            if before is not None:
                before()
            also()

        return self._replace(pulse=both)


def drive(desk: Desk, run: Run, wanted: Drive) -> Generator[Step, None, None]:
    """Bring a run forward until what is wanted has come, or until nothing moves any more without
    a decision, or for as long as is wanted.

    Yields what happens, from what `agent` has not been told yet (or from `after`) on; hand
    each step to `mark_told` once it has been written. The last step has the `ending`, with
    the error to end with in its `failure` (`run_unsuccessful`, `needs_decision`, `timeout`,
    or why nothing can be dispatched). One check at a time is run, and none is cut short;
    meanwhile the drive goes on to dispatch and to tell.
    Errors: `usage`, `not_found`, those of every write, and of git.
    """
    if wanted.mailbox is not None:
        check_name(wanted.mailbox, "mailbox")
    goal = wait.goal_of(desk, run, wanted.until)
    start = wait.start_of(desk, run, wanted.after, wanted.agent)
    deadline = _monotonic(desk) + wanted.wait_seconds * 1000
    course = _Course(run, wanted, goal, start, deadline)
    topics = (events.run_topic(run.id), run.leader)
    while True:
        left = (deadline - _monotonic(desk)) / 1000
        seen = waits.wait(
            desk.database,
            topics,
            lambda: _advance(desk, course),
            wait_seconds=max(0.0, left),
            pulse=wanted.pulse,
        )
        if isinstance(seen, Generator):
            yield from _during(desk, course, seen)
            continue
        if seen is not None:
            assert isinstance(seen, Step)
            yield seen
            if seen.ending is not None:
                return
        if seen is None or left <= 0:
            yield _out_of_time(desk, course)
            return


# -- one look ----------------------------------------------------------------------------


def _advance(desk: Desk, course: "_Course") -> waits.Look:
    """Do what can be done now; something to tell, a check that runs, or when there is a
    reason to look again."""
    while True:
        seen = _look_once(desk, course)
        if seen.found is not None or not course.wanted.checks:
            return seen
        slots = gate_slots.slots_of(course.wanted.gate_slots)
        check = gate_slots.working(desk, course.run, course.deadline, slots, refill=True)
        try:
            next(check)
        except StopIteration as end:
            if end.value is None:
                return seen
            _note_overrun(desk, course)  # it was over before it gave a turn
        else:
            return waits.Look(check)


def _look_once(desk: Desk, course: "_Course") -> waits.Look:
    with desk.database.snapshot() as snapshot:
        course.run = runs.get(snapshot, course.run.id) or course.run
    course.obstacle = wait.reconcile(desk, course.run, checks=False).obstacle
    wait.end_unanswered(desk, course.run, course.wanted.unanswered)
    _dispatch_ready(desk, course)
    if course.wanted.on_look is not None:
        course.wanted.on_look()
    # Last, since what was seen counts as told from now on.
    step = _see_on(desk, course)
    return _next_look(desk, course) if step is None else waits.Look(step)


def _during(desk: Desk, course: "_Course", check: Generator[None, None, Any]) -> Iterator[Step]:
    """Let a check come to its end. Meanwhile nothing is to wait for it: no worker for the
    next task, no question for its answer. How the drive ends is seen after it."""
    version, seen = None, waits.Look(None)
    with contextlib.closing(check):
        for _ in check:
            if _monotonic(desk) >= course.deadline:
                continue
            if not waits.has_reason(desk.database, version, seen):
                if course.wanted.pulse is not None:
                    course.wanted.pulse()
                continue
            version = waits.version(desk.database)
            seen, busy = waits.look_once(lambda: _look_once(desk, course))
            if busy is not None or seen.found is not None:
                version = None  # there may be more at once
            if isinstance(seen.found, Step) and seen.found.lines:
                yield seen.found._replace(ending=None)
    _note_overrun(desk, course)


def _note_overrun(desk: Desk, course: "_Course") -> None:
    late_ms = _monotonic(desk) - course.deadline
    course.overrun = round(late_ms / 1000, 3) if late_ms > 0 else None


def _dispatch_ready(desk: Desk, course: "_Course") -> None:
    """Dispatch, if there is something to dispatch and nothing is known to keep it back."""
    run, now = course.run, desk.database.now()
    if run.state != "open" or now.monotonic_ms < course.held_until:
        return
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, now.wall_ms)
        live = len(taken_by(attempts.live_of_run(snapshot, run.id)))
        newest = events.latest(snapshot)
    if course.wanted.blueprint is not None:
        rework.give_blueprint(desk, run, picture, course.wanted.blueprint)
    full = run.max_parallel is not None and live >= run.max_parallel
    if full or not any(s.state == "ready" for s in picture.standings):
        course.let_go()
        return
    if newest == course.in_vain_at:
        return  # it would come to the same as the last time
    try:
        done = dispatch.dispatch(
            desk,
            run,
            mailbox=course.wanted.mailbox,
            allow_dirty=course.wanted.allow_dirty,
            within=course.wanted.within,
            harvest=course.wanted.harvest,
            unsaid_harvest=course.wanted.unsaid_harvest,
        )
    except InboxOrchError as error:
        _hold(desk, course, error)
    else:
        course.let_go()
        course.in_vain_at = None if done.items else newest


def _hold(desk: Desk, course: "_Course", error: InboxOrchError) -> None:
    """Another leader has closed or paused the run, or git refuses: later, perhaps."""
    if error.code == "invalid_state":
        return
    if error.code not in _HOLDS:
        raise error
    if course.held is None or course.held.message != error.message:
        course.notices.append(error)
    course.hold(error, _monotonic(desk))


def _see_on(desk: Desk, course: "_Course") -> Step | None:
    """Look on, past events that say nothing."""
    before, step = -1, None
    while step is None and course.position != before:
        before, step = course.position, _see(desk, course)
    return step


def _see(desk: Desk, course: "_Course") -> Step | None:
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, course.run, desk.database.now().wall_ms)
        found = events.after(
            snapshot,
            course.position,
            limit=_MOST_EVENTS,
            matching=events.Matching(run_id=course.run.id, kinds=_TOLD),
        )
        latest = events.latest(snapshot)
    cursor = found[-1].seq if len(found) == _MOST_EVENTS else latest
    told = [event for event in found if wait.tells(event, picture)]
    course.changed = course.changed or any(event.kind in CHANGES for event in told)
    driven = _driven(desk, course, picture, str(cursor))
    lines = [*_lines_of(desk, course, picture, told), *course.news(driven)]
    ending = _ending(desk, course, picture, driven)
    if len(found) == _MOST_EVENTS:
        ending = None  # the rest of what happened comes first
    course.position = cursor
    if not lines and ending is None:
        return None
    return Step(course.run, tuple(lines), str(cursor), ending)


def _driven(desk: Desk, course: "_Course", picture: Picture, cursor: str) -> Driven:
    return Driven(
        run=course.run,
        until=course.goal.until,
        outcome=picture.outcome,
        counts=dict(Counter(s.state for s in picture.standings)),
        questions=tuple(status.questions(desk, course.run)),
        conflicts=conflicts(picture),
        unreachable=unreachable(picture),
        next_cursor=cursor,
        obstacle=course.held.message if course.held is not None else course.obstacle,
        overrun_seconds=course.overrun,
    )


def _lines_of(
    desk: Desk, course: "_Course", picture: Picture, found: list[Event]
) -> Iterator[Line]:
    for event in found:
        key = picture.of(str(event.task_id)).task.key
        if event.kind != "attempt_offered":
            yield Line("change", {**event.as_json(), "key": key})
        elif event.data.get("from") == "provisioned":  # not when a worker handed it back
            with desk.database.snapshot() as snapshot:
                attempt = attempts.get(snapshot, str(event.attempt_id))
            assert attempt is not None
            yield Line("dispatched", provision.handed_out(desk, course.run, attempt))


# -- the end -----------------------------------------------------------------------------


def _ending(desk: Desk, course: "_Course", picture: Picture, driven: Driven) -> Driven | None:
    """How the drive ends, if it does now."""
    free, unanswered = course.held is None, course.wanted.unanswered
    moves = wait.may_move(desk, picture, dispatching=free, unanswered=unanswered)
    asking = wait.asking(driven.questions)
    deciding = wait.deciding(driven.questions)
    verdict = verdict_on(course.goal, Seen(picture, asking, moves, course.changed, deciding))
    if verdict is not None:
        return driven._replace(failure=verdict.failure())
    if course.gave_up and not moves and all(s.state != "blocked" for s in picture.standings):
        return driven._replace(failure=course.held)
    return None


def _out_of_time(desk: Desk, course: "_Course") -> Step:
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, course.run, desk.database.now().wall_ms)
    driven = _driven(desk, course, picture, str(course.position))
    message = f"run {driven.run.name}: not over within {plain_number(course.wanted.wait_seconds)} s"
    hint = driven.obstacle or "call again to drive on; nothing is missed in between"
    failure = InboxOrchError("timeout", message, hint=hint, details={"run": driven.run.name})
    ending = driven._replace(failure=failure)
    return Step(course.run, (), driven.next_cursor, ending)


# -- waiting -----------------------------------------------------------------------------


def _next_look(desk: Desk, course: "_Course") -> waits.Look:
    """When something falls due by itself; to dispatch after a back-off is this drive's."""
    due = timing.due(desk, course.run, course.wanted.unanswered)
    now = desk.database.now()
    wall, monotonic = [due.due_wall_ms], [due.due_monotonic_ms]
    if course.run.state == "open":
        with desk.database.snapshot() as snapshot:
            picture = moving.picture(desk, snapshot, course.run, now.wall_ms)
        wall += [s.until for s in picture.standings]
        if course.held is not None:
            monotonic.append(int(course.held_until))
    return waits.Look(
        None,
        min((t for t in wall if t is not None), default=None),
        min((t for t in monotonic if t is not None), default=None),
    )


def _monotonic(desk: Desk) -> float:
    return desk.database.now().monotonic_ms


class _Course:
    """Where a drive is: up to which event it has told, and what keeps it from dispatching."""

    def __init__(self, run: Run, wanted: Drive, goal: Goal, position: int, deadline: float) -> None:
        self.run, self.wanted, self.goal = run, wanted, goal
        self.position, self.deadline = position, deadline
        self.changed = False
        self.overrun: float | None = None
        self.notices: list[InboxOrchError] = []
        self.in_vain_at: int | None = None
        self.held: InboxOrchError | None = None
        self.held_until = 0.0
        self._tries = 0
        self.obstacle: str | None = None
        self._told_obstacle: str | None = None
        self._told: set[tuple[str, ...]] = set()

    def hold(self, error: InboxOrchError, now_ms: float) -> None:
        """Dispatch no more for a while, longer each time."""
        seconds = min(_MOST_HOLD_SECONDS, _FIRST_HOLD_SECONDS * 2.0**self._tries)
        self.held, self.held_until = error, now_ms + seconds * 1000
        self._tries += 1
        self.in_vain_at = None

    def let_go(self) -> None:
        """Nothing keeps it from dispatching."""
        self.held, self.held_until, self._tries = None, 0.0, 0

    @property
    def gave_up(self) -> bool:
        """Whether trying again is no use until something has been done about it."""
        if self.held is None:
            return False
        return self.held.code == "dirty_repository" or self._tries >= _MOST_TRIES

    def news(self, driven: Driven) -> Iterator[Line]:
        """What has not been told before, though no event of its own may say it: open questions,
        what does not merge, what is in the way."""
        for question in driven.questions:
            if self._is_new("question", str(question.message.id)):
                yield Line("question", question.as_json())
        for standing in driven.conflicts:
            if self._is_new("conflict", standing.task.id, *standing.conflict_paths):
                yield Line("base_conflict", conflict_as_json(standing))
        while self.notices:
            error = self.notices.pop(0)
            yield Line("notice", {"code": error.code, "message": error.message, "hint": error.hint})
        if self.obstacle != self._told_obstacle:
            self._told_obstacle = self.obstacle
            if self.obstacle is not None:
                yield Line("notice", {"code": "obstacle", "message": self.obstacle, "hint": None})

    def _is_new(self, *what: str) -> bool:
        known = what in self._told
        self._told.add(what)
        return not known


def conflict_as_json(standing: Standing) -> dict[str, Any]:
    """A task whose dependencies do not merge."""
    paths = list(standing.conflict_paths)
    return {"task": standing.task.id, "key": standing.task.key, "paths": paths}
