"""Carrying out what a dispatch has chosen: the worktree, then the thread.

Every step may be done again after a crash; no worktree is handed out before its thread is sent.
"""

import contextlib
from collections.abc import Collection
from typing import Any, cast

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Session, Transaction

from ..git import mending, worktrees
from ..git.commands import FAILURES
from ..git.worktrees import Hold
from ..journal import owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run, Task
from . import fold, kinds, moving, recount, work
from . import rows as attempts
from .equip import SetupFailed
from .kinds import FirstMessage, Kind
from .rows import Failure, failure_column

LATER = ("busy", "io_error", "outcome_unknown", "unsafe_link", *FAILURES)
"""What keeps something that was begun from being finished now, and may not do so the next time.
`doctor` tells of it; what else there is in the run must not have to wait for it."""

# The attempts that a thread of this process is making now: to another one, which is the same owner,
# they are like those of a process that lives.
_at_work: set[str] = set()
_CANCELLED = Failure("cancelled", {})
_CALLED_OFF = "it was cancelled before its worktree was there"


def may_carry_out(desk: Desk, run: Run, attempt_id: str) -> bool:
    """Whether the intent of an attempt is this process's, taking it over from a dead one."""
    with desk.database.snapshot() as snapshot:
        intent = _intent_of(snapshot, run, attempt_id)
    return intent is not None and _is_ours(desk, intent)


def _is_ours(desk: Desk, intent: Intent) -> bool:
    if intent.owner == desk.database.owner():
        return intent.attempt_id not in _at_work
    return owners.is_abandoned(desk, intent) and take_over(desk, intent)


def finish_dispatches(desk: Desk, run: Run) -> int:
    """Finish the dispatches that a process which is gone has begun, and clear away after
    those that failed; returns how many.

    What cannot be finished now is left to the next time, and keeps nothing else from it.
    """
    if run.repository is not None:
        # What a killed git has left would be in the way of ours.
        with contextlib.suppress(InboxOrchError):  # its repository is not there now
            mending.mend(desk.repository(run))
    with desk.database.snapshot() as snapshot:
        begun = [
            (intent, attempts.get(snapshot, intent.attempt_id))
            for intent in journal_rows.open_intents(snapshot, run.id)
            if intent.kind == "dispatch" and intent.attempt_id is not None
        ]
    finished = sum(
        _finish(desk, run, intent, attempt) for intent, attempt in begun if attempt is not None
    )
    if run.repository is not None:
        with contextlib.suppress(InboxOrchError):  # its repository is not there now
            worktrees.forget_locks(desk.repository(run), run.name)
    return finished


def _finish(desk: Desk, run: Run, intent: Intent, attempt: Attempt) -> bool:
    if attempt.state == "provision_failed":
        return take_over(desk, intent) and _clear_away(desk, run, attempt)
    if not _is_ours(desk, intent):  # it is, too, when an earlier call here came to no end
        return False
    try:
        return provision(desk, run, attempt).state != "allocating"
    except InboxOrchError as error:
        if error.code not in LATER:
            raise
        return False  # another process is working on it after all, say


def take_over(desk: Desk, intent: Intent) -> bool:
    """Become the process that carries an intent out; False when another was quicker."""
    with desk.database.transaction() as tx:
        return journal_rows.take_over_intent(tx, intent.number, intent.owner, desk.database.owner())


def provision(desk: Desk, run: Run, attempt: Attempt) -> Attempt:
    """Make the worktree and send the thread; on failure nothing is left behind.

    Doing it again after a crash at any point is safe: under the attempt's lock it is seen
    whether the worktree was handed out, and only if not is it made anew.
    Error `busy`: another process is working on it.
    """
    if attempt.worktree_path is None:
        return _carry_out(desk, run, attempt, None)
    try:
        repository = desk.repository(run)
    except InboxOrchError as error:
        return _give_up(desk, run, attempt, error, cleared=False)
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        _at_work.add(attempt.id)
        try:
            return _carry_out(desk, run, attempt, hold)
        finally:
            _at_work.discard(attempt.id)


def _carry_out(desk: Desk, run: Run, attempt: Attempt, hold: Hold | None) -> Attempt:
    """Make the worktree and send the thread. `hold` is the attempt's lock, which the caller keeps
    until the outcome is written down; None for work without a worktree."""
    with desk.database.snapshot() as snapshot:
        task = tasks.by_id(snapshot, attempt.task_id)
        present = attempts.get(snapshot, attempt.id)
        mine = journal_rows.owns_intent(snapshot, attempt.id, "dispatch", desk.database.owner())
        now = runs.get(snapshot, run.id)
    assert present is not None
    if present.state != "allocating" or not mine:
        return present
    if now is not None and now.state == "cancelling":
        cleared = hold is None or _cleared(desk, run, attempt)
        return _failed(desk, run, attempt, _CANCELLED, _CALLED_OFF, cleared=cleared)
    try:
        if hold is not None:
            attempt = _kind_of(task).prepare(desk, run, task, attempt, hold)
        text = _first_message(desk, run, task, attempt)
    except InboxOrchError as error:
        cleared = hold is None or _cleared(desk, run, attempt)
        return _give_up(desk, run, attempt, error, cleared=cleared)
    except SetupFailed as failure:
        cleared = _cleared(desk, run, attempt)
        if work.is_cancelled(desk, run):
            return _failed(desk, run, attempt, _CANCELLED, _CALLED_OFF, cleared=cleared)
        failed = Failure("setup_failed", failure.facts)
        return _failed(desk, run, attempt, failed, str(failure), cleared=cleared)
    return _hand_out(desk, run, task, attempt, text)


def _kind_of(task: Task) -> Kind:
    """Plain work needs no look at any other kind."""
    plain = task.kind not in kinds.OF_TASKS and task.blueprint is None
    return cast(Kind, work) if plain else kinds.of_task(task)


def _first_message(desk: Desk, run: Run, task: Task, attempt: Attempt) -> FirstMessage:
    if attempt.number == 1:
        return FirstMessage(recount.text_of(run, task))
    return recount.first_message(desk, run, task)


def call_off(desk: Desk, run: Run, task_ids: Collection[str]) -> None:
    """Clear away what a process that is gone has begun for these tasks, instead of finishing
    it, as far as that can be done now."""
    with desk.database.snapshot() as snapshot:
        begun = [
            (intent, attempts.get(snapshot, intent.attempt_id))
            for intent in journal_rows.open_intents(snapshot, run.id)
            if intent.kind == "dispatch" and intent.attempt_id is not None
        ]
    for intent, attempt in begun:
        if attempt is None or attempt.task_id not in task_ids:
            continue
        if attempt.state != "allocating" or not _is_ours(desk, intent):
            continue
        try:
            cleared = attempt.worktree_path is None or _cleared_alone(desk, run, attempt)
        except InboxOrchError as error:
            if error.code not in LATER:
                raise
            continue  # what cannot be cleared away now is left to its finisher
        _failed(desk, run, attempt, _CANCELLED, _CALLED_OFF, cleared=cleared)


def _hand_out(desk: Desk, run: Run, task: Task, attempt: Attempt, text: FirstMessage) -> Attempt:
    with desk.database.transaction() as tx:
        present = _confirmed(desk, tx, attempt, "done")
        if present is None:
            return _as_it_is(tx, attempt)
        changes = {} if attempt.details is None else {"details": attempt.details}
        provisioned = moving.move_attempt(
            desk, tx, run, present, moving.Move("provisioned", "the worktree is there", changes)
        )
        return _kind_of(task).offer(desk, tx, run, task, provisioned, text)


def _give_up(
    desk: Desk, run: Run, attempt: Attempt, error: InboxOrchError, *, cleared: bool
) -> Attempt:
    failed = Failure(error.code, error.details)
    return _failed(desk, run, attempt, failed, error.message, cleared=cleared)


def _failed(
    desk: Desk,
    run: Run,
    attempt: Attempt,
    failed: Failure,
    reason: str,
    *,
    cleared: bool,
) -> Attempt:
    """The attempt has failed. What could not be cleared away stays written down."""
    with desk.database.transaction() as tx:
        present = _confirmed(desk, tx, attempt, "undone" if cleared else None)
        if present is None:
            return _as_it_is(tx, attempt)
        changes = {
            "reason": reason[:1000],
            "details": failure_column(failed),
        }
        return fold.end_attempt(
            desk,
            tx,
            run,
            present,
            moving.Move("provision_failed", failed.code, changes),
            called_off=failed.code == "cancelled",
        )


def _confirmed(
    desk: Desk, tx: Transaction, attempt: Attempt, outcome: str | None
) -> Attempt | None:
    """Close the intent, if there is an outcome of it; None when another leader has taken it
    over meanwhile: what becomes of the attempt is that one's affair."""
    present = _as_it_is(tx, attempt)
    if present.state != "allocating":
        return None
    me = desk.database.owner()
    if outcome is None:
        mine = journal_rows.owns_intent(tx, attempt.id, "dispatch", me)
    else:
        mine = journal_rows.close_intent(tx, attempt.id, "dispatch", outcome, me, tx.now.wall_ms)
    return present if mine else None


def _as_it_is(tx: Transaction, attempt: Attempt) -> Attempt:
    present = attempts.get(tx, attempt.id)
    assert present is not None
    return present


def _clear_away(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """After an attempt that failed to be provisioned; False when that cannot be done now."""
    try:
        if not _cleared_alone(desk, run, attempt):
            return False
    except InboxOrchError:
        return False
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        return journal_rows.close_intent(tx, attempt.id, "dispatch", "undone", me, tx.now.wall_ms)


def _cleared_alone(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """Take away what was made, in the attempt's lock; error `busy`."""
    with worktrees.alone(desk.repository(run), place_of(desk, attempt)):
        return _cleared(desk, run, attempt)


def _cleared(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """Take away, in the attempt's lock, what was made; False when that fails too."""
    try:
        repository = desk.repository(run)
        worktrees.unmake(repository, place_of(desk, attempt))
        if attempt.base_source in ("merge", "attempt"):  # it may be a merge, too
            assert attempt.base_commit is not None
            return repository.drop(f"refs/orch/base/{attempt.id}", attempt.base_commit)
    except InboxOrchError:
        return False
    return True


# -- what a worker needs -----------------------------------------------------------------


def handed_out(desk: Desk, run: Run, attempt: Attempt) -> dict[str, Any]:
    """An attempt with the brief and everything else that a worker needs."""
    with desk.database.snapshot() as snapshot:
        task = tasks.by_id(snapshot, attempt.task_id)
    return shown_to_worker(desk, run, task, attempt)


def shown_to_worker(desk: Desk, run: Run, task: Task, attempt: Attempt) -> dict[str, Any]:
    """An attempt at a task, which may be without its body, as `handed_out` gives it."""
    shape = attempt.as_json() | {
        "key": task.key,
        "db": desk.database.address,
        "db_id": desk.database.id,
        "brief": None,
    }
    if attempt.thread_id is not None:
        shape["brief"] = work.brief_of(desk, run, task, attempt, attempt.thread_id)
    return shape


def _intent_of(tx: Session, run: Run, attempt_id: str) -> Intent | None:
    """What was begun for an attempt and is not confirmed."""
    found = journal_rows.open_intents(tx, run.id)
    return next((intent for intent in found if intent.attempt_id == attempt_id), None)
