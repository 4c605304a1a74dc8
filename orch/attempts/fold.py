"""What happened on the bus, carried over to attempts and tasks.

Folding reads the thread's present state and may skip states on the way. It runs nothing: what
a worker says is done is only `submitted`.
"""

from typing import Any

from inbox_orch.inbox.domain.model import Thread
from inbox_orch.shared.store.engine import Transaction

from ..patches.hiding import hidden
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..runs.retries import consequence
from . import moving, stop
from . import rows as attempts
from .stop import Stop
from .visits import heard_in


def fold(desk: Desk, run: Run) -> int:
    """Carry over what has changed on the threads of live attempts; returns how many had.

    Each attempt is one transaction, guarded by the state that was seen, so that two leaders
    may fold at once.
    """
    reap(desk, run)
    changed = _follow_all(desk, run)
    stopped = stop.stop_late(desk, run) + _abort(desk, run) + stop.sweep_again(desk, run)
    if stopped:
        # Those that are not held have ended with that.
        changed += _follow_all(desk, run)
    return changed + stopped + stop.close_cancelled(desk, run)


def _follow_all(desk: Desk, run: Run) -> int:
    return sum(_follow_one(desk, run, a, thread) for a, thread in _with_threads(desk, run))


def _follow_one(desk: Desk, run: Run, attempt: Attempt, thread: Thread | None) -> bool:
    if attempt.state == "ending":
        return _settle_ending(desk, run, attempt, thread)
    if thread is None or attempt.state not in states.WITH_WORKER:
        return False
    return _target(attempt, thread) != attempt.state and follow(desk, run, attempt.id)


def _target(attempt: Attempt, thread: Thread) -> str:
    """What the thread of an attempt makes of its state."""
    if attempt.staged:
        return states.staged_state_for(thread.state, deciding=attempt.deciding)
    return states.attempt_state_for(thread.state, thread.reason)


def reap(desk: Desk, run: Run) -> None:
    """Notice leases of this run that have run out."""
    with desk.database.snapshot() as snapshot:
        live = attempts.live_of_run(snapshot, run.id)
    mailboxes = heard_in(live)
    if mailboxes:
        desk.bus.reap(mailboxes)


def end_attempt(
    desk: Desk,
    tx: Transaction,
    run: Run,
    attempt: Attempt,
    move: moving.Move,
    *,
    called_off: bool = False,
) -> Attempt:
    """An attempt ends without success; its task gets another try, or has failed. One that
    was `called_off` before a worker had it counts nothing: its task is pending again."""
    import random

    ended = moving.move_attempt(desk, tx, run, attempt, move)
    task = tasks.by_id(tx, attempt.task_id)
    outcome = consequence(
        task,
        "cancelled" if called_off else move.to,
        fatal=ended.fatal,
        jitter=random.random(),
        goes_back=called_off or ended.goes_back,
    )
    columns: dict[str, Any] = {
        "work_failures": outcome.work_failures,
        "infra_failures": outcome.infra_failures,
        "reason": f"attempt {attempt.number} {move.to}: {ended.reason or move.cause}"[:1000],
    }
    if outcome.delay_seconds is not None:
        columns["not_before"] = tx.now.wall_ms + int(outcome.delay_seconds * 1000)
    moving.move_task(
        desk,
        tx,
        run,
        task,
        moving.Move(outcome.state, f"attempt {move.to}", columns),
        attempt=attempt,
    )
    if outcome.state == "failed" and run.on_failure == "abort":
        _cancel_the_others(desk, tx, run, task.key)
    return ended


def _abort(desk: Desk, run: Run) -> int:
    """Policy `abort`, for attempts that were being provisioned when the task failed."""
    if run.on_failure != "abort":
        return 0
    with desk.database.snapshot() as snapshot:
        failed = tasks.failed_of_run(snapshot, run.id)
        running = [
            a for a in attempts.live_of_run(snapshot, run.id) if a.state in states.WITH_WORKER
        ]
    if not failed or not running:
        return 0
    with desk.database.transaction() as tx:
        # One that was retried meanwhile stops nothing any more.
        failed = tasks.failed_of_run(tx, run.id)
        return _cancel_the_others(desk, tx, run, failed[0]) if failed else 0


# -- one attempt -------------------------------------------------------------------------


def _with_threads(desk: Desk, run: Run) -> list[tuple[Attempt, Thread | None]]:
    with desk.database.snapshot() as snapshot:
        every = attempts.live_of_run(snapshot, run.id)
        live = [a for a in every if a.thread_id is not None or a.state == "ending"]
        threads = desk.bus.threads([a.thread_id for a in live if a.thread_id is not None])
    return [(a, None if a.thread_id is None else threads[a.thread_id]) for a in live]


def follow(desk: Desk, run: Run, attempt_id: str) -> bool:
    """Carry one attempt over to where its thread is; returns whether it was elsewhere."""
    with desk.database.transaction() as tx:
        attempt = attempts.get(tx, attempt_id)
        assert attempt is not None
        if attempt.state not in states.WITH_WORKER:
            return False  # another leader was quicker
        thread = desk.bus.threads([str(attempt.thread_id)])[str(attempt.thread_id)]
        target = _target(attempt, thread)
        if target == attempt.state:
            return False
        _move_with_thread(desk, tx, run, attempt, thread, target)
        return True


def _move_with_thread(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, thread: Thread, target: str
) -> None:
    cause = f"thread {thread.state}"
    if target == "ending":
        stop.begin_ending(desk, tx, run, attempt, Stop("cancelled", cause))
    elif target in ("failed", "lost"):
        end_attempt(
            desk,
            tx,
            run,
            attempt,
            moving.Move(
                target, cause, {"fatal": thread.fatal, "reason": _last_words(desk, thread)}
            ),
        )
        return
    else:
        moving.move_attempt(desk, tx, run, attempt, moving.Move(target, cause))
    stop.task_follows(desk, tx, run, attempt, target)


def _last_words(desk: Desk, thread: Thread) -> str:
    """The beginning of the message with which a thread ended, on one line."""
    if thread.reason == "exhausted":
        return f"no delivery left after {thread.deliveries} (workers died or handed it back)"
    # It may have been written on since.
    failure = desk.bus.last_message(thread.id, "failure")
    return "" if failure is None else hidden(" ".join((failure.body or "").split()))[:300]


# -- endings -----------------------------------------------------------------------------


def _settle_ending(desk: Desk, run: Run, attempt: Attempt, thread: Thread | None) -> bool:
    """An ending attempt has ended once no worker can be working on it any more."""
    finished_at = 0 if thread is None else thread.finished_at or 0
    grace_over = finished_at + config_of(run).cancel_grace_seconds * 1000
    if (
        thread is not None
        and desk.bus.cancel_settles_at(thread.id) is not None
        and desk.database.now().wall_ms < grace_over
    ):
        return False
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        assert present is not None
        if present.state != "ending":
            return False
        assert present.ending_as is not None
        end_attempt(desk, tx, run, present, moving.Move(present.ending_as, "nobody works on it"))
        return True


def _cancel_the_others(desk: Desk, tx: Transaction, run: Run, failed_key: str) -> int:
    """Policy `abort`: what still runs is cancelled in the transaction of the failure.

    What has ended on the bus and is not folded in yet keeps the end that it came to.
    """
    cause = f"task {failed_key} failed, and the run's policy is abort"
    others = attempts.live_of_run(tx, run.id)
    running = [other for other in others if other.state in states.WITH_WORKER]
    how = Stop("cancelled", cause)
    return sum(stop.stop(desk, tx, run, other, how) for other in running)


def fold_if_writable(desk: Desk, run: Run) -> bool:
    """Fold, unless the database cannot be written here; returns whether that was so."""
    if not desk.database.may_note:
        return True
    fold(desk, run)
    return False
