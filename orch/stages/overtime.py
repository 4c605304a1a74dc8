"""The clock of a visit: `timeout_seconds` of the stage of an agent.

When it has run out the thread is cancelled, so that its worker is told, and what that hands in is
refused. The visit ends once no worker can be writing in the worktree any more, which is put back
then. All of it is noticed by whatever leader looks, as every clock.
"""

import functools
import json
from collections.abc import Mapping, Sequence

from inbox_orch.shared.store.engine import Session

from ..attempts import moving, stop, timing
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.clocks import Due, of_visit
from ..attempts.visits import Visit
from ..runs import blueprint_rows, states
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from .model import from_canonical

_OVER = "out_of_time"
"""In the result of a visit that lives: its clock has run out."""


def end_late(desk: Desk, run: Run, live: Sequence[Attempt]) -> list[Attempt]:
    """Stop the visits that take longer than their stages allow; returns their attempts, which lie
    with the leaders then. Errors: those of every write."""
    with desk.database.snapshot() as snapshot:
        now_ms = desk.database.now().wall_ms
        late = [a for a, due in _clocks(desk, snapshot, live) if due.at_ms <= now_ms]
    return [attempt for attempt in late if _stop(desk, run, attempt.id)]


def due_ms(desk: Desk, tx: Session, live: Sequence[Attempt]) -> int | None:
    """When the next such clock runs out, in wall-clock milliseconds; it may be over."""
    return min((due.at_ms for _, due in _clocks(desk, tx, live)), default=None)


def is_over(visit: Visit) -> bool:
    """Whether the clock of a visit has run out."""
    return _OVER in visit.found


def settles_ms(desk: Desk, run: Run, visit: Visit) -> int | None:
    """Until when a worker that was stopped may still write, in wall-clock milliseconds; None when
    it cannot be working on the visit any more."""
    if not is_over(visit):
        return None
    thread_id, now = str(visit.thread_id), desk.database.now()
    lease_ends = desk.bus.cancel_settles_at(thread_id)
    if lease_ends is None:
        return None
    stopped_at = desk.bus.threads([thread_id])[thread_id].finished_at or 0
    grace_ends = stopped_at + int(config_of(run).cancel_grace_seconds * 1000)
    at_ms = min(grace_ends, now.wall_ms + lease_ends - now.monotonic_ms)
    return at_ms if at_ms > now.wall_ms else None


def _clocks(desk: Desk, tx: Session, live: Sequence[Attempt]) -> list[tuple[Attempt, Due]]:
    """The attempts of one run for which such a clock runs now."""
    with_worker = [a for a in live if a.state in states.WITH_WORKER and not a.deciding]
    limits = _limits_of_run(tx, with_worker[0].run_id) if with_worker else {}
    if not any(limits.values()):
        return []
    found = [(a, _limit(tx, limits, a)) for a in with_worker]
    timed = [(a, seconds) for a, seconds in found if seconds is not None]
    wanted = [str(a.thread_id) for a, _ in timed]
    threads, times = desk.bus.threads(wanted), desk.bus.work_times(wanted)
    clocks = [
        (a, of_visit(seconds, timing.working(threads[str(a.thread_id)], times)))
        for a, seconds in timed
    ]
    return [(attempt, due) for attempt, due in clocks if due is not None]


def _limit(tx: Session, limits: Mapping[str, Mapping[str, float]], a: Attempt) -> float | None:
    return limits[str(tasks.by_id(tx, a.task_id).blueprint)].get(str(a.stage))


def _limits_of_run(tx: Session, run_id: str) -> dict[str, Mapping[str, float]]:
    return {name: _limits(text) for name, text in blueprint_rows.of_run(tx, run_id).items()}


@functools.lru_cache(maxsize=64)
def _limits(text: str) -> Mapping[str, float]:
    """How many seconds a visit of each stage may take, of those that say so."""
    stages = from_canonical(text).stages
    return {s.id: s.timeout_seconds for s in stages if s.type == "agent" and s.timeout_seconds}


def _stop(desk: Desk, run: Run, attempt_id: str) -> bool:
    """Decided anew under the write lock: the worker may have spoken meanwhile."""
    with desk.database.transaction() as tx:
        attempt = attempts.get(tx, attempt_id)
        if attempt is None or attempt.state not in states.WITH_WORKER or attempt.deciding:
            return False
        thread = stop.live_thread(desk, tx, attempt)
        clocks = [due for _, due in _clocks(desk, tx, [attempt])]
        visit = visits.live_of(tx, attempt_id)
        if thread is None or visit is None or not clocks or clocks[0].at_ms > tx.now.wall_ms:
            return False
        said = clocks[0].sentence()
        found = json.dumps({**visit.found, _OVER: clocks[0].limit_seconds})
        visits.update(tx, visit, {"reason": said, "result": found})
        desk.bus.cancel(thread.id, body=said, agent=run.leader)
        moved = moving.move_attempt(desk, tx, run, attempt, moving.Move("submitted", said))
        stop.task_follows(desk, tx, run, moved, "submitted")
        return True
