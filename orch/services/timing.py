"""Which clocks of a run's attempts run, and which have run out. Only looks."""

from typing import NamedTuple

from inbox_orch.inbox.domain.model import Thread, WorkTimes
from inbox_orch.shared.store.engine import Session

from ..domain import clocks, states
from ..domain.clocks import Due, Working
from ..domain.model import Attempt, Run, Task
from ..store import attempts, tasks
from .desk import Desk


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
        if a.task_id in limited and a.state in states.WITH_WORKER
    ]
    wanted = [str(a.thread_id) for a in live]
    threads, times = desk.bus.threads(wanted), desk.bus.work_times(wanted)
    return [
        Timed(a, limited[a.task_id], working(threads[str(a.thread_id)], times))
        for a in live
        if threads[str(a.thread_id)].finished_at is None
    ]


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
    )
