"""Ending attempts before their workers do: cancelled, out of time, their run cancelled.

An attempt that is stopped goes to `ending` in the transaction that cancels its thread, and keeps
its slot until no worker can be working on it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Thread
from inbox_orch.shared.store.engine import Transaction

from ..runs import run_rows as runs
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from . import moving, timing
from . import rows as attempts

STOPPABLE = (*states.WITH_WORKER, "submitted", "verifying")
RUN_CANCELLED = "the run was cancelled"


class Stop(NamedTuple):
    """How an attempt that is stopped will have ended, and why, on one line; with other columns of
    it that change."""

    ended_as: str
    cause: str
    changes: Mapping[str, Any] = MappingProxyType({})


def begin_ending(
    desk: Desk,
    tx: Transaction,
    run: Run,
    attempt: Attempt,
    how: Stop,
) -> Attempt:
    """The thread was cancelled: the attempt keeps its slot until its holder knows."""
    columns = {"ending_as": how.ended_as, "reason": how.cause[:1000], **how.changes}
    return moving.move_attempt(desk, tx, run, attempt, moving.Move("ending", how.cause, columns))


def task_follows(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, target: str) -> None:
    """A task is blocked exactly while its attempt is."""
    task = tasks.by_id(tx, attempt.task_id)
    wanted = "blocked" if target == "blocked" else "active"
    if task.state != wanted:
        moving.move_task(
            desk, tx, run, task, moving.Move(wanted, f"attempt {target}"), attempt=attempt
        )


def live_thread(desk: Desk, tx: Transaction, attempt: Attempt) -> Thread | None:
    """The thread of an attempt as it is in this transaction, what has run out on it noticed;
    None once it is final: then the attempt keeps the end that it came to."""
    thread = desk.bus.reap_thread(tx, desk.bus.desk.thread_now(tx, str(attempt.thread_id)))
    return thread if thread.finished_at is None else None


def stop(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, how: Stop) -> bool:
    """Cancel the thread of an attempt and let it end; False when it cannot be stopped now:
    it has ended on the bus, or has not been offered yet."""
    if attempt.state in states.WITH_WORKER:
        thread = live_thread(desk, tx, attempt)
        if thread is not None:
            desk.bus.cancel(thread.id, body=how.cause, agent=run.leader)
        elif not attempt.staged:
            return False
    elif attempt.state not in STOPPABLE and not is_between_stages(attempt):
        return False
    begin_ending(desk, tx, run, attempt, how)
    task_follows(desk, tx, run, attempt, "ending")
    return True


def is_between_stages(attempt: Attempt) -> bool:
    """Whether its worktree is there, and its blueprint has not sent a thread yet."""
    return attempt.staged and attempt.state == "provisioned"


# -- clocks ------------------------------------------------------------------------------


def stop_late(desk: Desk, run: Run) -> int:
    """End the attempts of which a clock has run out; returns how many."""
    with desk.database.snapshot() as snapshot:
        now_ms = desk.database.now().wall_ms
        late = [
            t for t in timing.timed_attempts(desk, snapshot, run) if t.run_out(now_ms) is not None
        ]
    return sum(_stop_late(desk, run, timed.attempt.id) for timed in late)


def _stop_late(desk: Desk, run: Run, attempt_id: str) -> bool:
    """Decided anew under the write lock: the worker may have spoken meanwhile."""
    with desk.database.transaction() as tx:
        found = [t for t in timing.timed_attempts(desk, tx, run) if t.attempt.id == attempt_id]
        due = found[0].run_out(tx.now.wall_ms) if found else None
        if due is None:
            return False
        how = Stop("timed_out", due.sentence(), {"clock": due.clock})
        return stop(desk, tx, run, found[0].attempt, how)


# -- a cancelled run ---------------------------------------------------------------------


def sweep(desk: Desk, tx: Transaction, run: Run) -> list[str]:
    """Cancel the pending tasks of a cancelled run and stop its attempts; the ids of the tasks
    that are cancelled now."""
    cancelled = []
    for task in tasks.pending_of_run(tx, run.id):
        columns = {"not_before": None, "reason": RUN_CANCELLED}
        moving.move_task(desk, tx, run, task, moving.Move("cancelled", "run cancel", columns))
        cancelled.append(task.id)
    for attempt in attempts.live_of_run(tx, run.id):
        stop(desk, tx, run, attempt, Stop("cancelled", RUN_CANCELLED))
    return cancelled


def sweep_again(desk: Desk, run: Run) -> int:
    """What came back or was offered after the run was cancelled; returns how many."""
    with desk.database.snapshot() as snapshot:
        if not _has_to_be_swept(runs.get(snapshot, run.id)):
            return 0
        pending = tasks.pending_of_run(snapshot, run.id)
        live = attempts.live_of_run(snapshot, run.id)
    left = len(pending) + sum(a.state in STOPPABLE for a in live)
    if left:
        with desk.database.transaction() as tx:
            if _has_to_be_swept(runs.get(tx, run.id)):
                sweep(desk, tx, run)
    return left


def close_cancelled(desk: Desk, run: Run) -> int:
    """Close a cancelled run once its last attempt has ended; returns whether that is now."""
    with desk.database.snapshot() as snapshot:
        if not _is_over(runs.get(snapshot, run.id), snapshot):
            return 0
    with desk.database.transaction() as tx:
        present = runs.get(tx, run.id)
        if present is None or not _is_over(present, tx):
            return 0  # another leader was quicker
        columns = {"closed_at": tx.now.wall_ms}
        desk.move_run(tx, present, "closed", cause="its last attempt has ended", changes=columns)
        return 1


def _is_over(run: Run | None, tx: Any) -> bool:
    if not _has_to_be_swept(run):
        return False
    assert run is not None
    return not (tasks.pending_of_run(tx, run.id) or attempts.live_of_run(tx, run.id))


def _has_to_be_swept(run: Run | None) -> bool:
    return run is not None and run.state == "cancelling"
