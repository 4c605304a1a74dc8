"""Which clocks of a run's attempts run, and which have run out. Only looks."""

from typing import NamedTuple

from inbox_orch.inbox.domain.model import Thread, WorkTimes
from inbox_orch.shared.store import waits
from inbox_orch.shared.store.engine import Session

from ..journal import rows as journal_rows
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.config import NoAnswer, config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import clocks, kinds
from . import rows as attempts
from . import visit_rows as visits
from .clocks import Due, Working
from .visits import heard_in

OTHERS_LOOK_SECONDS = 1.0
"""How often a wait looks whether another process that has begun something is still there."""
VERIFIER_LOOK_MS = 2000
"""So often a wait looks whether another process that runs checks is still there."""


class Timed(NamedTuple):
    """An attempt whose task has time limits, with its thread as it is."""

    attempt: Attempt
    task: Task
    working: Working

    def run_out(self, now_ms: int) -> Due | None:
        """The clock that ran out first, if one has."""
        return clocks.run_out(self.task.limits, self.working, now_ms)


def timed_attempts(desk: Desk, tx: Session, run: Run) -> list[Timed]:
    """The attempts of a run that a clock runs for."""
    of_tasks = tasks.of_live_attempts(tx, run.id)
    limited = {key: t for key, t in of_tasks.items() if clocks.has_any(t.limits)}
    if not limited:
        return []
    live = [
        a
        for a in attempts.live_of_run(tx, run.id)
        if a.task_id in limited and a.state in states.WITH_WORKER and not a.deciding
    ]
    wanted = [str(a.thread_id) for a in live]
    threads, times = desk.bus.threads(wanted), desk.bus.work_times(wanted)
    timed = [
        Timed(a, limited[a.task_id], working(threads[str(a.thread_id)], times))
        for a in live
        if threads[str(a.thread_id)].finished_at is None
    ]
    return [_with_earlier(tx, t) if t.attempt.staged else t for t in timed]


def _with_earlier(tx: Session, timed: Timed) -> Timed:
    """The run clock of an attempt with a blueprint runs over all of its visits."""
    earlier = sum(v.worked_ms or 0 for v in visits.of_attempt(tx, timed.attempt.id))
    before = timed.working
    return timed._replace(working=before._replace(blocked_ms=before.blocked_ms - earlier))


def next_clock(desk: Desk, run: Run) -> int | None:
    """When the next clock of a run runs out, in wall-clock milliseconds; it may be over."""
    with desk.database.snapshot() as snapshot:
        due = [
            clocks.running(timed.task.limits, timed.working)
            for timed in timed_attempts(desk, snapshot, run)
        ]
    return min((found[0].at_ms for found in due if found), default=None)


def working(thread: Thread, times: dict[str, WorkTimes]) -> Working:
    """How the work on a live thread stands."""
    worked = times.get(thread.id)
    heard = [] if worked is None or worked.settled_at is None else [worked.settled_at]
    if thread.lease is not None:
        heard += [thread.lease.acquired_at, thread.lease.renewed_at or 0]
    return Working(
        thread_state=thread.state,
        claimable_at=thread.available_at,
        first_claimed_at=None if worked is None else worked.first_claimed_at,
        blocked_ms=0 if worked is None else worked.blocked_ms,
        asked_at=None if worked is None else worked.asked_at,
        heard_at=max(heard, default=None),
        queued_ms=0 if worked is None else worked.queued_ms,
    )


def _is_left_to_another(attempt: Attempt) -> bool:
    """Whether, after a look at it, it has still to be harvested."""
    return attempt.state == "submitted" and attempt.harvest and not attempt.staged


def due(desk: Desk, run: Run, unanswered: NoAnswer | None = None) -> waits.Look:
    """When something of this run falls due by itself: a lease, a question, a clock, a grace, a
    stage, a decision (`unanswered` is the caller's own rule, beside the config's); or when to look
    again whether another process still carries out what it has begun."""
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        begun = journal_rows.open_intents(snapshot, run.id)
        live = attempts.live_of_run(snapshot, run.id)
        mailboxes = heard_in(live)
        due = desk.bus.due(snapshot, mailboxes, now)
        staged = [a for a in live if a.staged]
        stage = kinds.of_stages().due_ms(desk, snapshot, staged, unanswered) if staged else None
    ending = [a for a in live if a.state == "ending" and a.thread_id is not None]
    grace_ms = int(config_of(run).cancel_grace_seconds * 1000)
    graces = [a.updated_at + grace_ms for a in ending]
    if any(a.state == "verifying" or _is_left_to_another(a) for a in live):
        # No event tells of the death of the process that runs the checks, or harvests.
        graces.append(now.wall_ms + VERIFIER_LOOK_MS)
    # A question that is not of this run may be long overdue; a clock or a grace of this run that
    # has run out since the last look is worth another one at once.
    question = due.due_wall_ms
    if question is not None and question <= now.wall_ms:
        question = None
    wall = [t for t in (question, next_clock(desk, run), stage, *graces) if t is not None]
    ends = [desk.bus.cancel_settles_at(str(a.thread_id)) for a in ending]
    monotonic = [t for t in (due.due_monotonic_ms, *ends) if t is not None]
    if any(intent.owner != desk.database.owner() for intent in begun):
        # That a process has died is no change of the database: nothing else tells of it.
        monotonic.append(now.monotonic_ms + int(OTHERS_LOOK_SECONDS * 1000))
    return waits.Look(None, min(wall, default=None), min(monotonic, default=None))
