"""Attempts and tasks as they change: one guarded transition, with its event, at a time; and the
run as it stands.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session, Transaction

from ..runs import readiness, states
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.readiness import Heads, Picture
from . import kinds
from . import rows as attempts
from . import visit_rows as visits
from .visits import ended_with, seats_of


class Move(NamedTuple):
    """Where an attempt or a task goes, why, and which of its columns change with it."""

    to: str
    cause: str
    changes: Mapping[str, Any] | None = None


def picture(desk: Desk, tx: Session, run: Run, now_ms: int) -> Picture:
    """The run as it stands, also if it was paused, cancelled or closed since `run` was read."""
    return picture_of(tx, runs.get(tx, run.id) or run, now_ms)


def picture_of(tx: Session, run: Run, now_ms: int) -> Picture:
    """The tasks of a run as they stand, for a run that was read just now."""
    conflicts = {}
    of_run = tasks.of_run(tx, run.id, bodies=False)
    dependencies = tasks.dependencies_of_run(tx, run.id)
    found = tasks.base_conflicts(tx, run.id)
    heads = Heads(of_run, dependencies) if found else None
    for task in of_run if heads is not None else ():
        # Void as soon as the heads are not those any more for which it was found.
        if heads is not None and task.id in found and task.state == "pending":
            conflicting, paths = found[task.id]
            if set(conflicting) == set(heads.basis(task)):
                conflicts[task.id] = paths
    return readiness.picture(run, of_run, dependencies, conflicts, now_ms)


def record_attempt(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, kind: str, data: Mapping[str, Any]
) -> None:
    """Append an event about an attempt. Every one carries its state after the change."""
    facts = {
        "to": attempt.state,
        "number": attempt.number,
        "reason": attempt.reason,
        "head": attempt.head_commit,
    }
    about = events.About(
        run_id=run.id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        thread_id=thread_behind(tx, attempt),
    )
    events.append(tx, kind, desk.actor(run), {**facts, **data}, about)


def thread_behind(tx: Transaction, attempt: Attempt) -> str | None:
    """The thread on which events about an attempt stand, so that who may not see a sealed one
    does not see them either.
    """
    if attempt.thread_id is not None or attempt.number == 1:
        return attempt.thread_id
    return kinds.of_run(tx, attempt.run_id).thread_behind(tx, attempt)


def record_task(
    desk: Desk,
    tx: Transaction,
    run: Run,
    task: Task,
    kind: str,
    data: Mapping[str, Any],
) -> None:
    """Append an event about a task. Every one carries its state after the change."""
    about = events.About(run_id=run.id, task_id=task.id)
    events.append(tx, kind, desk.actor(run), {**_facts_of(task), **data}, about)


def _facts_of(task: Task) -> dict[str, Any]:
    return {"to": task.state, "key": task.key, "reason": task.reason, "tries": task.attempts}


def move_attempt(
    desk: Desk,
    tx: Transaction,
    run: Run,
    attempt: Attempt,
    move: Move,
) -> Attempt:
    """One transition of an attempt, guarded, with its event; returns it as it is then."""
    if (attempt.state, move.to) not in states.MOVES["attempt"]:
        states.require("attempt", attempt.state, move.to)
    columns: dict[str, Any] = {**(move.changes or {}), "state": move.to}
    columns["updated_at"] = tx.now.wall_ms
    if move.to in states.ATTEMPT_ENDED:
        columns["ended_at"] = tx.now.wall_ms
        if attempt.staged:
            _call_off_seats(desk, tx, run, attempt)
        if attempt.thread_id is not None or attempt.staged:  # else it never had a visit
            visits.end_live(tx, attempt.id, ended_with(move.to), tx.now.wall_ms)
    after = attempts.move(tx, attempt.id, columns, expected_state=attempt.state)
    assert after is not None, "the attempt changed under the write lock"
    facts = {"from": attempt.state, "cause": move.cause}
    record_attempt(desk, tx, run, after, f"attempt_{move.to}", facts)
    return after


def _call_off_seats(desk: Desk, tx: Transaction, run: Run, attempt: Attempt) -> None:
    """Nobody waits any more for what the seats of a live council would say."""
    live = visits.live_of(tx, attempt.id)
    for thread_id in [] if live is None else seats_of(live):
        if desk.bus.desk.thread_now(tx, thread_id).finished_at is None:
            desk.bus.cancel(thread_id, agent=run.leader)


def hand_out(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, thread_id: str) -> Attempt:
    """The thread of an attempt without a blueprint is sent: its one visit begins."""
    visits.begin_work(tx, attempt.id, attempt.mailbox, thread_id, tx.now.wall_ms)
    sent = Move("offered", "the thread is sent", {"thread_id": thread_id})
    return move_attempt(desk, tx, run, attempt, sent)


def move_task(
    desk: Desk,
    tx: Transaction,
    run: Run,
    task: Task,
    move: Move,
    *,
    attempt: Attempt | None = None,
) -> Task:
    """One transition of a task, guarded, with its event; returns it as it is then."""
    if (task.state, move.to) not in states.MOVES["task"]:
        states.require("task", task.state, move.to)
    columns = {**(move.changes or {}), "state": move.to, "updated_at": tx.now.wall_ms}
    after = tasks.move(tx, task.id, columns, expected_state=task.state)
    assert after is not None, "the task changed under the write lock"
    facts = {**_facts_of(after), "from": task.state, "cause": move.cause}
    about = events.About(run_id=run.id, task_id=task.id)
    if attempt is not None:
        about.attempt_id, about.thread_id = attempt.id, thread_behind(tx, attempt)
    events.append(tx, f"task_{move.to}", desk.actor(run), facts, about)
    return after
