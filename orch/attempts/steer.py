"""Single tasks: cancel, skip, retry, reassign, and edges taken away again.

Each call is one transaction over all the tasks that it names: all of it happens, or none.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import check_name, counted
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from ..git.repository import Repository
from ..journal import finishing
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import fold, moving, provision, stop
from . import rows as attempts
from .stop import Stop
from .verify import untracked_at_start

_ENDS = "cancelled by the leader"
_ENDS_FIRST = "`orch cancel {key}` ends its attempt first"
_HINTS = {
    "skip": {
        "active": _ENDS_FIRST,
        "blocked": _ENDS_FIRST,
        "failed": "`orch retry {key}` makes it pending; then skip it",
        "cancelled": "`orch retry {key}` makes it pending; then skip it",
    },
    "retry": {
        "pending": "it is tried again by itself",
        "active": _ENDS_FIRST,
        "blocked": _ENDS_FIRST,
        "skipped": "what depends on it goes on without it; add another task instead",
        "succeeded": "--force does it all over again",
    },
}


class Steered(NamedTuple):
    """Tasks after a call about them. `already`: the keys of those that were so before; `ending`:
    of those whose attempt still has to end; `left_behind`: files that an attempt whose work goes
    on has not committed."""

    tasks: tuple[Task, ...]
    already: tuple[str, ...]
    ending: tuple[str, ...]
    left_behind: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [task.as_json() for task in self.tasks],
            "truncated": False,
            "next_cursor": None,
            "already": list(self.already),
            "ending": list(self.ending),
            "left_behind": list(self.left_behind),
        }


def cancel(desk: Desk, run: Run, names: Sequence[str]) -> Steered:
    """Cancel tasks: one that is pending at once, one with an attempt when that has ended.

    Errors: `usage`, `not_found`, `invalid_state` (one is final), `busy` (the attempt is being
    made by another leader).
    """
    with desk.database.snapshot() as snapshot:
        named = {desk.task(snapshot, run, name).id for name in names}
    provision.call_off(desk, run, named)
    return _each(desk, run, names, _cancel)


def skip(desk: Desk, run: Run, names: Sequence[str]) -> Steered:
    """Count pending tasks as done: what depends on their success may start.

    Errors: `usage`, `not_found`, `invalid_state` (one is not pending).
    """
    return _each(desk, run, names, _skip)


def reassign(desk: Desk, run: Run, names: Sequence[str], mailbox: str) -> Steered:
    """Let other workers have tasks. An attempt that is with a worker is stopped, and counts
    nothing; the next one goes to `mailbox`.

    Errors: `usage`, `not_found`, `invalid_state` (its work is submitted, or it is being
    cancelled), `busy`.
    """
    check_name(mailbox, "mailbox")

    def change(desk: Desk, tx: Transaction, run: Run, task: Task) -> bool:
        return _reassign(desk, tx, run, task, mailbox)

    return _each(desk, run, names, change)


def retry(
    desk: Desk,
    run: Run,
    names: Sequence[str],
    *,
    from_attempt: int | None = None,
    force: bool = False,
) -> Steered:
    """Make failed and cancelled tasks pending again, with fresh budgets; with `force`
    succeeded ones too. `from_attempt` is the number of an attempt whose work the next one
    goes on with; without it the next one starts anew.

    Errors: `usage`, `not_found` (also such an attempt), `invalid_state`.
    """
    if from_attempt is not None and len(set(names)) != 1:
        raise usage("--from-attempt is the number of an attempt of one task: name one")
    start, left_behind = (
        _tip_to_go_on_from(desk, run, names[0], from_attempt) if names else (None, ())
    )

    def change(desk: Desk, tx: Transaction, run: Run, task: Task) -> bool:
        return _retry(desk, tx, run, task, start, force)

    steered = _each(desk, run, names, change)
    return steered._replace(left_behind=left_behind)


def remove_dependency(desk: Desk, run: Run, task_name: str, upstream_name: str) -> dict[str, Any]:
    """Let a pending task wait no more for another.

    Errors: `not_found` (also the edge), `invalid_state` (the task is not pending).
    """
    with desk.database.transaction() as tx:
        task = desk.task(tx, run, task_name)
        upstream = desk.task(tx, run, upstream_name)
        desk.require_open(tx, run)
        edge = tasks.dependency(tx, task.id, upstream.id)
        if edge is None:
            raise not_found(
                "dependency",
                f"{task.key} on {upstream.key}",
                hint=f"`orch task show {task.key}` lists what it waits for",
            )
        if task.state != "pending":
            raise states.refuse("task", task.key, task.state, "dep remove")
        tasks.delete_dependency(tx, edge)
        facts = {"upstream": upstream.id, "condition": edge.condition}
        about = events.About(run_id=run.id, task_id=task.id)
        events.append(tx, "dependency_removed", desk.actor(run), facts, about)
    shape = {
        "task": task.id,
        "key": task.key,
        "upstream": upstream.id,
        "upstream_key": upstream.key,
        "condition": edge.condition,
    }
    return {"dependency": shape}


# -- one task ----------------------------------------------------------------------------


def _cancel(desk: Desk, tx: Transaction, run: Run, task: Task) -> bool:
    if task.state == "cancelled":
        return False
    if task.state == "pending":
        columns = {"not_before": None, "reason": _ENDS}
        moving.move_task(desk, tx, run, task, moving.Move("cancelled", "cancel", columns))
        return True
    attempt = _stoppable(desk, tx, run, task, "cancel")
    if attempt is None:
        return _cancel(desk, tx, run, tasks.by_id(tx, task.id))
    if attempt.state != "ending":
        stop.stop(desk, tx, run, attempt, Stop("cancelled", _ENDS))
    elif attempt.ending_as == "cancelled" and not attempt.goes_back:
        return False
    else:
        # It was ending to be tried again; now it is to end for good.
        how = Stop("cancelled", _ENDS, {"goes_back": 0, "clock": None})
        stop.begin_ending(desk, tx, run, attempt, how)
    return True


def _skip(desk: Desk, tx: Transaction, run: Run, task: Task) -> bool:
    if task.state == "skipped":
        return False
    if task.state != "pending":
        raise _refused(task, "skip")
    columns = {"not_before": None, "reason": "skipped by the leader"}
    moving.move_task(desk, tx, run, task, moving.Move("skipped", "skip", columns))
    return True


def _reassign(desk: Desk, tx: Transaction, run: Run, task: Task, mailbox: str) -> bool:
    attempt = None
    if task.state in ("active", "blocked"):
        attempt = _stoppable(desk, tx, run, task, "reassign")
        task = tasks.by_id(tx, task.id)
    changed = task.mailbox != mailbox
    if attempt is not None:
        changed = _take_back(desk, tx, run, task, attempt, mailbox) or changed
        task = tasks.by_id(tx, task.id)
    if task.mailbox != mailbox:
        columns = {"mailbox": mailbox, "updated_at": tx.now.wall_ms}
        tasks.update(tx, task.id, columns, expected_state=task.state)
        facts = {"mailbox": mailbox, "was": task.mailbox}
        moving.record_task(desk, tx, run, tasks.by_id(tx, task.id), "task_reassigned", facts)
    return changed


def _take_back(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, mailbox: str
) -> bool:
    """Stop an attempt that is with a worker of another mailbox; the task is pending again
    once it has ended."""
    if attempt.state == "ending":
        if attempt.ending_as == "cancelled" and not attempt.goes_back:
            raise states.refuse("task", task.key, "being cancelled", "reassign")
        return False
    if attempt.mailbox == mailbox:
        return False
    if attempt.state not in states.WITH_WORKER and not stop.is_between_stages(attempt):
        raise states.refuse(
            "attempt",
            f"{task.key}/{attempt.number}",
            attempt.state,
            "reassign",
            "its worker has finished; `orch wait` tells what comes of it",
        )
    how = Stop("cancelled", f"reassigned to {mailbox}", {"goes_back": 1})
    stop.stop(desk, tx, run, attempt, how)
    return True


def _retry(
    desk: Desk, tx: Transaction, run: Run, task: Task, start: str | None, force: bool
) -> bool:
    again = ("failed", "cancelled", "succeeded") if force else ("failed", "cancelled")
    if task.state not in again:
        raise _refused(task, "retry")
    columns: dict[str, Any] = {
        "work_failures": 0,
        "infra_failures": 0,
        "not_before": None,
        "accepted_attempt": None,
        "accepted_head": None,
        "reason": None,
    }
    if start is not None:
        columns |= {"next_base": start, "next_base_source": "attempt"}
    elif task.next_base_source == "attempt":
        columns |= {"next_base": None, "next_base_source": None}
    moving.move_task(desk, tx, run, task, moving.Move("pending", "retry", columns))
    return True


# -- steps -------------------------------------------------------------------------------


def _each(
    desk: Desk,
    run: Run,
    names: Sequence[str],
    change: Callable[[Desk, Transaction, Run, Task], bool],
) -> Steered:
    """Change each task that is named, all in one transaction; `change` returns whether there
    was anything to do."""
    if not names:
        raise usage("name a task", hint="`orch status` lists them")
    finishing.finish_intents(desk, run)
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        named = {t.id: t for t in (desk.task(tx, run, n) for n in names)}
        present = desk.require_open(tx, run)
        already = [
            task.key
            for task in named.values()
            if not change(desk, tx, present, tasks.by_id(tx, task.id))
        ]
    # What is not held has ended with that.
    fold.fold(desk, run)
    with desk.database.snapshot() as snapshot:
        there = (tasks.anywhere(snapshot, task_id) for task_id in named)
        changed = tuple(task for task in there if task is not None)
        ending = [a.task_id for a in attempts.live_of_run(snapshot, run.id) if a.state == "ending"]
    keys = tuple(task.key for task in changed if task.id in ending)
    return Steered(changed, tuple(already), keys)


def _stoppable(desk: Desk, tx: Transaction, run: Run, task: Task, verb: str) -> Attempt | None:
    """The live attempt of a task, as its thread is in this transaction; None when it has
    ended with that. Errors: `invalid_state` (the task is final), `busy`."""
    if task.state not in ("active", "blocked"):
        raise states.refuse("task", task.key, task.state, verb)
    attempt = attempts.live_of_task(tx, task.id)
    assert attempt is not None, "a task that is active has a live attempt"
    if attempt.state in ("allocating", "provisioned") and not stop.is_between_stages(attempt):
        raise InboxOrchError(
            "busy",
            f"attempt {task.key}/{attempt.number} is being made by another leader",
            hint="try again in a moment",
            details={"task": task.key, "attempt": attempt.id},
        )
    if attempt.state in states.WITH_WORKER and stop.live_thread(desk, tx, attempt) is None:
        fold.follow(desk, run, attempt.id)
        return attempts.live_of_task(tx, task.id)
    return attempt


def _tip_to_go_on_from(
    desk: Desk, run: Run, name: str, from_attempt: int | None
) -> tuple[str | None, tuple[str, ...]]:
    """The commit that an attempt of a task has come to, and the files that it has not
    committed; looked up outside of the transaction, since that asks git."""
    if from_attempt is None:
        return None, ()
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, name)
        found = [a for a in attempts.of_task(snapshot, task.id) if a.number == from_attempt]
    if not found:
        raise not_found(
            "attempt",
            f"{task.key}/{from_attempt}",
            hint=f"task {task.key} has had {counted(task.attempts, 'attempt')}",
        )
    if found[0].branch is None:
        raise usage(f"task {task.key} has no worktree, so that no attempt left a commit")
    repository = desk.repository(run)
    commit = _tip_of(repository, found[0])
    if commit is None:
        raise InboxOrchError(
            "invalid_state",
            f"attempt {task.key}/{from_attempt} left no commit",
            hint="retry without --from-attempt",
            details={"attempt": found[0].id},
        )
    return commit, _left_behind(repository, found[0])


def _refused(task: Task, verb: str) -> InboxOrchError:
    """A call that the state of the task does not allow, with what can be done instead."""
    hint = _HINTS[verb].get(task.state)
    return states.refuse(
        "task", task.key, task.state, verb, None if hint is None else hint.format(key=task.key)
    )


def _left_behind(repository: Repository, attempt: Attempt) -> tuple[str, ...]:
    """What an ended attempt has not committed: in its worktree, or in what was salvaged of it."""
    if attempt.salvage_commit is not None:
        return repository.changed_paths(attempt.salvage_commit, f"{attempt.salvage_commit}^1")
    return repository.uncommitted(str(attempt.worktree_path), untracked_at_start(attempt))


def _tip_of(repository: Repository, attempt: Attempt) -> str | None:
    """The newest commit that an ended attempt came to: the one that was accepted; else what came
    late, what HEAD was when its files were salvaged, its branch, or what was seen at its end.

    Never the salvage itself: that has ignored files in it, and sides of merges that were given
    up, which must not get into the history of accepted work.
    """
    seen = attempt.head_commit
    if attempt.state == "succeeded":
        return seen
    later = [repository.ref_commit(f"refs/orch/late/{attempt.id}")]
    if attempt.salvage_commit is not None:
        later.append(repository.ref_commit(f"{attempt.salvage_commit}^1"))
    later.append(repository.ref_commit(f"refs/heads/{attempt.branch}"))
    for commit in later:
        # A worker may have committed after its end, or have left its branch before.
        if commit is not None and (seen is None or repository.contains(commit, seen)):
            return commit
    return seen
