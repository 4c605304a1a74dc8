"""`adopt`: an ended attempt's commits become its task's accepted work.

They are verified as any other work, in the attempt's worktree or, where that is gone or has
something else checked out, in a temporary one. The attempt stays as it ended.
"""

from collections.abc import Sequence
from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.engine import Transaction

from ..gates.checks import Checked, objection, report
from ..gates.surroundings import command_environment
from ..gates.turns import finished
from ..git import borrowed, worktrees
from ..git.repository import Found, Repository
from ..git.worktrees import Place
from ..journal import rows as journal_rows
from ..runs import run_rows as runs
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import borrow, fold, harvesting, judge, keep, moving, patches
from . import rows as attempts
from .equip import Equipment, SetupFailed, equip
from .last_work import Work, choose
from .rows import Adopted, Details, details_with
from .verify import checks_of, objections, untracked_at_start

ADOPTABLE = ("pending", "failed", "cancelled")


def adopt(
    desk: Desk, run: Run, task_name: str, *, number: int | None = None, checks: bool = True
) -> dict[str, Any]:
    """Take the commits of attempt `number`, by default of the newest ended attempt that has
    some, as the accepted work of a task. Without `checks` those of the task are not run.

    Errors: `not_found` (the task, the attempt); `invalid_state` (the task has accepted work or
    was skipped, or has no worktree; the run is closed or being cancelled; the attempt has not
    ended); `live_attempt`; `work_rejected`, with what was found; `approval_needed`; `busy` (another
    process is adopting it); those of git. SIGINT and SIGTERM leave everything as it was.
    """
    judge.put_back_abandoned(desk, run)
    fold.fold(desk, run)
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, task_name)
        ended = attempts.of_task(snapshot, task.id)
        _require_adoptable(runs.get(snapshot, run.id) or run, task, ended)
    repository = desk.repository(run)
    attempt, work = choose(repository, task, ended, number)
    attempt, work = _harvested(desk, run, repository, task, attempt, work)
    _require_sound(repository, task, attempt, work)
    work = _allowed(desk, run, task, attempt, work)
    results: list[Checked] | None = None
    if checks and task.checks:
        results = _check_work(desk, run, repository, task, attempt, work)
        _require_passed(task, attempt, work, results)
    return _take(desk, run, task, attempt, work, results)


# -- choosing ----------------------------------------------------------------------------


def _require_adoptable(run: Run, task: Task, of_task: Sequence[Attempt]) -> None:
    if run.state in ("closed", "cancelling"):
        raise states.refuse("run", run.name, run.state, "adopt")
    if not task.worktree:
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} has no worktree, and so no commits to adopt",
            hint="`orch retry` has it done again, `orch skip` goes on without it",
            details={"task": task.id, "key": task.key},
        )
    live = [a for a in of_task if a.live]
    if live:
        raise InboxOrchError(
            "live_attempt",
            f"attempt {live[0].number} of task {task.key} is {live[0].state}",
            hint=f"`orch cancel {task.key}` ends it first",
            details={"task": task.id, "key": task.key, "attempt": live[0].id},
        )
    if task.state not in ADOPTABLE:
        hint = f"`orch retry {task.key} --force` takes that back"
        raise states.refuse("task", task.key, task.state, "adopt", hint)


# -- verifying ---------------------------------------------------------------------------


def _harvested(
    desk: Desk, run: Run, repository: Repository, task: Task, attempt: Attempt, work: Work
) -> tuple[Attempt, Work]:
    """The work with what its worker has left in the worktree, where that is to be committed."""
    if work.folder is None or not attempt.harvest:
        return attempt, work
    after, obstacle = harvesting.commit_left(desk, run, task, attempt)
    base, known = str(attempt.base_commit), untracked_at_start(attempt)
    found = repository.look_at(work.folder, base, known)
    if found is None or found.head is None:
        return after, work
    ahead = found.commits_ahead
    return after, work._replace(head=found.head, commits_ahead=ahead, obstacle=obstacle)


def _require_sound(repository: Repository, task: Task, attempt: Attempt, work: Work) -> None:
    base = str(attempt.base_commit)
    found, known = None, untracked_at_start(attempt)
    if work.folder is not None:
        found = repository.look_at(work.folder, base, known)
    if found is None or found.head != work.head:
        contains = repository.contains(work.head, base)
        found = Found(work.head, work.commits_ahead, (), contains)
    reasons, details = objections(found, task.allow_empty, work.obstacle)
    if reasons:
        raise _rejected(task, attempt, work, "; ".join(reasons), details)


def _allowed(desk: Desk, run: Run, task: Task, attempt: Attempt, work: Work) -> Work:
    """The work, if the policy lets it in; what it says is written down, whatever that is. Errors:
    `work_rejected`, `approval_needed`."""
    judged = patches.judge(desk, run, task, attempt, work.head)
    if judged is None or not (judged.denied or judged.asked):
        return work._replace(judged=judged)
    with desk.database.transaction() as tx:
        patch, state = patches.record(desk, tx, run, judged)
    if judged.denied:
        raise _rejected(task, attempt, work, judged.rejection, Details())
    if state == "queued":
        name = f"{task.key}/{attempt.number}/{patch.number}"
        raise InboxOrchError(
            "approval_needed",
            f"patch {name} has to be approved: {judged.examined.reason}",
            hint=f"`orch patch show {name} --diff` shows it; `orch patch approve {name} --agent"
            f" NAME`, by another than {patch.author}, and then `orch adopt {task.key}` again",
            details={"task": task.id, "key": task.key, "attempt": attempt.id, "patch": patch.id},
            data=_facts(task, attempt, work, str(judged.examined.reason), Details()),
        )
    return work._replace(judged=judged)


def _require_passed(task: Task, attempt: Attempt, work: Work, results: Sequence[Checked]) -> None:
    reason = objection(results)
    if reason is not None:
        raise _rejected(task, attempt, work, reason, Details(checks=tuple(results)))


def _check_work(
    desk: Desk, run: Run, repository: Repository, task: Task, attempt: Attempt, work: Work
) -> list[Checked]:
    """Run the task's checks where the work is checked out."""
    from ..gates.running import Interrupted, Withdrawn

    place = None if work.folder is not None else borrow.place_of(desk, run, attempt, work.head)
    _begin_adoption(desk, run, task, attempt, place)
    try:
        if place is not None:
            _make_borrowed(desk, run, repository, task, attempt, place)
        results = finished(
            judge.run_checks(
                desk,
                judge.Subject(
                    run,
                    task,
                    attempt._replace(head_commit=work.head),
                    work.folder or str(place and place.path),
                ),
                passed=(),
                note=lambda results: _is_still_adoptable(desk, task, attempt),
                wanted=lambda: _is_still_adoptable(desk, task, attempt),
                starts_before_ms=None,
            )
        )
    except SetupFailed as failure:
        raise _rejected(task, attempt, work, str(failure), Details()) from failure
    except Interrupted as interrupted:
        raise Signalled(interrupted.number) from None
    except Withdrawn as withdrawn:
        raise _changed(task, str(withdrawn)) from withdrawn
    finally:
        try:
            if place is not None:
                borrowed.remove(repository, place)
            with desk.database.transaction() as tx:
                keep.close_verification(desk, tx, attempt, "done")
        finally:
            keep.AT_WORK.discard(attempt.id)
    assert results is not None  # nothing limits when a check may start
    return results


def _begin_adoption(
    desk: Desk, run: Run, task: Task, attempt: Attempt, place: Place | None
) -> None:
    """Write down that this process adopts it, and what it is about to make."""
    data = {} if place is None else {"borrowed": place.base_commit}
    with desk.database.transaction() as tx:
        _open_adoption(desk, tx, run, task, attempt, data)


def _open_adoption(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, data: dict[str, Any]
) -> None:
    if keep.is_open(tx, attempt):
        raise InboxOrchError(
            "busy",
            f"another process is adopting attempt {attempt.number} of task {task.key}",
            hint="try again when that has ended",
            details={"task": task.id, "key": task.key, "attempt": attempt.id},
        )
    keep.open_verification(desk, tx, attempt, data)


def _is_still_adoptable(desk: Desk, task: Task, attempt: Attempt) -> bool:
    """Whether nothing else has been begun or decided meanwhile."""
    with desk.database.snapshot() as snapshot:
        present = tasks.by_id(snapshot, task.id)
        live = attempts.live_of_task(snapshot, task.id)
        mine = journal_rows.owns_intent(snapshot, attempt.id, "verify", desk.database.owner())
    return mine and live is None and present.state in ADOPTABLE


def _make_borrowed(
    desk: Desk, run: Run, repository: Repository, task: Task, attempt: Attempt, place: Place
) -> None:
    config = config_of(run)
    environment = command_environment(desk.database, run, task, attempt, config, place.path)
    with worktrees.alone(repository, place) as hold:
        equip(
            desk.database,
            repository,
            place,
            hold,
            Equipment(config, environment),
            is_wanted=lambda: _is_still_adoptable(desk, task, attempt),
        )
        borrowed.detach(repository, place)


# -- taking ------------------------------------------------------------------------------


def _take(
    desk: Desk,
    run: Run,
    task: Task,
    attempt: Attempt,
    work: Work,
    results: Sequence[Checked] | None,
) -> dict[str, Any]:
    taken: dict[str, Any] = {}

    def settled(tx: Transaction) -> bool:
        taken.update(_settle(desk, tx, run, attempt, work, results))
        return True

    def begin(tx: Transaction) -> bool:
        _require_adoptable_now(tx, run, task)
        _open_adoption(desk, tx, run, task, attempt, keep.facts_of(work.accepted, before))
        return True

    before = desk.repository(run).ref_commit(keep.ref_of(attempt))
    if not keep.begin_and_accept(desk, run, attempt, work.accepted, begin, settled):
        raise _changed(task, "another leader has taken it over")
    return taken


def _require_adoptable_now(tx: Transaction, run: Run, task: Task) -> Task:
    """The task as it is in this transaction."""
    present = tasks.by_id(tx, task.id)
    of_task = attempts.of_task(tx, task.id)
    _require_adoptable(runs.get(tx, run.id) or run, present, of_task)
    return present


def _settle(
    desk: Desk,
    tx: Transaction,
    run: Run,
    attempt: Attempt,
    work: Work,
    results: Sequence[Checked] | None,
) -> dict[str, Any]:
    present = _require_adoptable_now(tx, run, tasks.by_id(tx, attempt.task_id))
    adopted = _mark_adopted(desk, tx, run, attempt, work, results)
    after = moving.move_task(
        desk,
        tx,
        run,
        present,
        moving.Move(
            "succeeded",
            f"attempt {attempt.number} is adopted",
            {
                "accepted_attempt": attempt.id,
                "accepted_head": work.accepted,
                "next_base": None,
                "next_base_source": None,
                "not_before": None,
                "reason": None,
            },
        ),
        attempt=attempt,
    )
    return {
        "task": after.as_json(),
        "attempt": adopted.as_json(),
        "source": work.source,
        "checked": results is not None,
    }


def _changed(task: Task, why: str) -> InboxOrchError:
    return InboxOrchError(
        "busy",
        f"task {task.key} has changed meanwhile: {why}",
        hint="`orch status` shows how it stands; nothing was adopted",
        details={"task": task.id, "key": task.key},
    )


def _mark_adopted(
    desk: Desk,
    tx: Transaction,
    run: Run,
    attempt: Attempt,
    work: Work,
    results: Sequence[Checked] | None,
) -> Attempt:
    before = attempts.get(tx, attempt.id)
    assert before is not None
    if work.judged is not None:
        patches.record(desk, tx, run, work.judged)
        patches.accepted(desk, tx, run, before, gates=bool(results))
    adopted = Adopted(work.accepted, work.source, desk.actor(run))
    shown = tuple(results or checks_of(before))
    made = work.accepted != work.head
    handed_in = work.head if made else None
    details = details_with(before, Details(adopted=adopted, checks=shown, handed_in=handed_in))
    columns = {
        "head_commit": work.accepted,
        "commits_ahead": 1 if made else work.commits_ahead,
        "details": details,
        "updated_at": tx.now.wall_ms,
    }
    attempts.update(tx, attempt.id, columns, expected_state=before.state)
    after = attempts.get(tx, attempt.id)
    assert after is not None
    moving.record_attempt(desk, tx, run, after, "attempt_adopted", {"adopted": adopted._asdict()})
    if attempt.thread_id is not None:
        told = f"Attempt {attempt.number} is adopted: {work.accepted}.\n\n{report(results or ())}"
        judge.tell(desk, run, attempt, told.strip(), results or ())
    return after


def _facts(
    task: Task, attempt: Attempt, work: Work, reason: str, details: Details
) -> dict[str, Any]:
    """What was looked at, and what is in the way."""
    return {
        "task": task.id,
        "key": task.key,
        "attempt": attempt.id,
        "number": attempt.number,
        "head": work.head,
        "source": work.source,
        "reason": reason,
        "dirty_paths": list(details.dirty_paths or ()),
        "unpushed_submodules": list(details.unpushed_submodules or ()),
        "checks": [check.as_json() for check in details.checks or ()],
    }


def _rejected(
    task: Task, attempt: Attempt, work: Work, reason: str, details: Details
) -> InboxOrchError:
    return InboxOrchError(
        "work_rejected",
        f"attempt {attempt.number} of task {task.key} cannot be adopted: {reason}",
        hint="put that right in its worktree and commit, or `orch retry` has it done again",
        details={"task": task.id, "key": task.key, "attempt": attempt.id},
        data=_facts(task, attempt, work, reason, details),
    )
