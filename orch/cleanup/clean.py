"""`cleanup`: taking away the worktrees of ended attempts, without ever losing work.

One attempt at a time, in its lock: look, salvage (objects only), write the intent down, look
again in the repository's lock, then rename. Before the worktree is in the trash a removal that
was cut short is undone, afterwards it is finished.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..attempts import fold, moving, provision
from ..attempts import rows as attempts
from ..attempts.provision import LATER
from ..git import mending, removal, salvage, worktrees
from ..git.removal import Deleted, Trash
from ..git.repository import Repository
from ..journal import owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs import task_rows as tasks
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run
from . import inspect
from . import reasons as cleanup
from . import remaining as remaining_refs
from .cleaned import KEPT, REMOVED, WOULD_REMOVE, Cleaned, Item, merged_into, refusal, rest
from .inspect import Inspected
from .reasons import Reason, about
from .remove import Removal, deletions, is_contained, planned, removal_from


class Call(NamedTuple):
    """One clean-up: of which run, whether by force, and the folder in which it was called."""

    run: Run
    repository: Repository
    force: bool
    within: str | None


def clean_up(
    desk: Desk,
    run: Run,
    *,
    task_names: Sequence[str] = (),
    force: bool = False,
    dry_run: bool = False,
    within: str | None = None,
) -> Cleaned:
    """Take away the worktrees of ended attempts, of all tasks or of those named.

    Without names, what may not go is kept, and listed with its reasons. With names it is all
    or nothing: when one of their worktrees may not go, none does (error `live_attempt`,
    `unsafe_removal`, `dirty_repository` or `unmerged_work`, its `details` with every item).
    `force` overcomes what is not committed or not merged, which is salvaged before. `within`
    is the folder in which the command was called. Doing it again does nothing.
    Errors also: `usage`, `not_found`, and those of git.
    """
    if run.repository is None:
        _chosen_for_cleanup(desk, run, task_names)  # refuses names that are none
        return Cleaned((), dry_run, force, bool(task_names))
    repository = desk.repository(run)
    if not dry_run:
        mending.mend(repository)
        finish_cleanups(desk, run)
        fold.fold(desk, run)
    chosen = _chosen_for_cleanup(desk, run, task_names)
    inspect.require_mounted(desk, run, repository)
    call = Call(run, repository, force, within)
    if dry_run or task_names:
        looked = [_looked_at(desk, call, attempt, key) for attempt, key in chosen]
        refused = [item for item in looked if item.action == KEPT]
        if task_names and refused:
            raise refusal(looked, refused)
        if dry_run:
            return Cleaned(tuple(looked), True, force, bool(task_names))
    left = _delete_rest(desk, run, repository, task_names)
    items = [_clean(desk, call, attempt, key) for attempt, key in chosen]
    remaining_refs.release_base(
        desk, repository, run, [t.commit for t in inspect.targets(run, repository)]
    )
    emptied = _empty_trash(desk, run, repository)
    gone = (*(item for item in items if item is not None), *left)
    return Cleaned(gone, False, force, bool(task_names), tuple(emptied))


def _delete_rest(
    desk: Desk, run: Run, repository: Repository, task_names: Sequence[str]
) -> list[Item]:
    """Refs that an earlier clean-up could not delete; what became of those."""
    with desk.database.snapshot() as snapshot:
        named = [desk.task(snapshot, run, name).id for name in task_names] or None
    done = remaining_refs.delete_left(desk.database, repository, run, named)
    return [rest(each, deleted) for each, deleted in done if any(deleted)]


def _chosen_for_cleanup(
    desk: Desk, run: Run, task_names: Sequence[str]
) -> list[tuple[Attempt, str]]:
    with desk.database.snapshot() as snapshot:
        keys = {task.id: task.key for task in tasks.of_run(snapshot, run.id)}
        wanted = {desk.task(snapshot, run, name).id for name in task_names} or keys.keys()
        there = attempts.with_worktree(snapshot, run.id)
    return [(a, keys[a.task_id]) for a in there if a.task_id in wanted]


def _looked_at(desk: Desk, call: Call, attempt: Attempt, key: str) -> Item:
    """What would become of it."""
    seen = _inspected(desk, call, attempt)
    refused = cleanup.standing_in_the_way(seen.reasons, force=call.force)
    action = KEPT if refused else WOULD_REMOVE
    return Item(attempt, key, action, seen.reasons, merged_into=merged_into(seen))


def _inspected(desk: Desk, call: Call, attempt: Attempt) -> Inspected:
    return inspect.inspect(desk, call.run, call.repository, attempt, call.within)


# -- one worktree ------------------------------------------------------------------------


def _clean(desk: Desk, call: Call, attempt: Attempt, key: str) -> Item | None:
    """None when another clean-up has taken it away meanwhile."""
    if attempt.live:
        # The process that is making it may hold the attempt's lock; there is no need to wait.
        return Item(attempt, key, KEPT, _inspected(desk, call, attempt).reasons)
    with worktrees.alone(call.repository, place_of(desk, attempt)):
        if not _may_begin(desk, call.run, attempt):
            return None
        seen = _inspected(desk, call, attempt)
        refused = cleanup.standing_in_the_way(seen.reasons, force=call.force)
        if refused:
            return Item(attempt, key, KEPT, seen.reasons, merged_into=merged_into(seen))
        return _remove(desk, call, attempt, key, seen)


def _may_begin(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """In the attempt's lock: whether its worktree is there still, after finishing or undoing
    what a process that is gone has begun."""
    with desk.database.snapshot() as snapshot:
        intent = _cleanup_of(journal_rows.open_intents(snapshot, run.id), attempt.id)
    if intent is not None and provision.take_over(desk, intent):
        _settle(desk, run, attempt, removal_from(intent.data))
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, attempt.id)
    return present is not None and present.removed_at is None


def _remove(desk: Desk, call: Call, attempt: Attempt, key: str, seen: Inspected) -> Item:
    run, repository = call.run, call.repository
    try:
        plan = _plan(run, repository, attempt, key, seen)
    except InboxOrchError as error:
        # What cannot be salvaged is not removed.
        reason = about("failed", error.message[:500])
        return Item(attempt, key, KEPT, (*seen.reasons, reason))
    if not _begin_removal(desk, run, attempt, plan):
        reason = about("unfinished", "another process is working on it")
        return Item(attempt, key, KEPT, (*seen.reasons, reason))
    obstacle = _carry_out_removal(desk, call, attempt, seen, plan)
    if obstacle is not None:
        _undo(desk, repository, attempt, plan)
        return Item(attempt, key, KEPT, (*seen.reasons, obstacle))
    return _item(desk, attempt, key, seen, plan, _finish_removal(desk, run, attempt, plan))


def _plan(run: Run, repository: Repository, attempt: Attempt, key: str, seen: Inspected) -> Removal:
    commit = None
    gone = deletions(
        repository,
        attempt,
        inspect.targets(run, repository),
        _proven_head(seen),
        seen.proof,
    )
    if seen.condition is None:
        # Nothing is salvaged, so what goes must be elsewhere as the very same commit.
        gone = [each for each in gone if is_contained(repository, each)]
    else:
        title = f"Salvage of {key}/{attempt.number} of run {run.name}"
        path, leaving = str(attempt.worktree_path), {each.ref: each.commit for each in gone}
        commit = salvage.snapshot(repository, path, seen.condition, title, leaving)
    return planned(gone, commit, was_there=seen.condition is not None)


def _begin_removal(desk: Desk, run: Run, attempt: Attempt, plan: Removal) -> bool:
    """Write down what is about to be done; False when another process was quicker."""
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        begun = journal_rows.open_intents(tx, run.id)
        if (
            present is None
            or present.live
            or present.removed_at is not None
            or any(intent.attempt_id == attempt.id for intent in begun)
        ):
            return False
        journal_rows.open_intent(
            tx,
            attempt,
            "cleanup",
            plan.as_data(),
            owner=desk.database.owner(),
            now_ms=tx.now.wall_ms,
        )
        return True


def _carry_out_removal(
    desk: Desk, call: Call, attempt: Attempt, seen: Inspected, plan: Removal
) -> Reason | None:
    """Salvage ref and trash; returns what has come up meanwhile, with the worktree where it
    was."""
    if not plan.was_there:
        return None
    repository = call.repository
    place, trash = place_of(desk, attempt), _trash(call.run, repository, attempt)
    try:
        with worktrees.locked(repository) as lock:
            again = _inspected(desk, call, attempt)
            refused = cleanup.standing_in_the_way(again.reasons, force=call.force)
            if refused:
                return refused[0]
            if _fingerprint(again) != _fingerprint(seen):
                return about("changing", "it changed while it was looked at: try again")
            if plan.salvage is not None:
                repository.keep(salvage.ref_of(attempt.id), plan.salvage, (lock,))
            removal.move_worktree(place, trash)
    except InboxOrchError as error:
        return about("failed", error.message[:500])
    return None


def _undo(desk: Desk, repository: Repository, attempt: Attempt, plan: Removal) -> None:
    """The worktree is where it was: forget that it was to go."""
    if plan.salvage is not None:
        # In the lock: a git that was left behind may be about to make the ref.
        with worktrees.locked(repository):
            repository.drop(salvage.ref_of(attempt.id), plan.salvage)
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        journal_rows.close_intent(tx, attempt.id, "cleanup", "undone", me, tx.now.wall_ms)


def _finish_removal(desk: Desk, run: Run, attempt: Attempt, plan: Removal) -> Deleted:
    """After the worktree has gone into the trash: what is left to do. May be done again."""
    repository = desk.repository(run)
    place, trash = place_of(desk, attempt), _trash(run, repository, attempt)
    with worktrees.locked(repository) as lock:
        removal.move_admin(repository, place, trash)
        deleted = removal.delete_refs(repository, plan.deletions, (lock,))
    facts = {
        "worktree": attempt.worktree_path,
        "salvage": plan.salvage,
        "deleted_refs": {each.ref: each.commit for each in deleted.gone},
        "trash": trash.worktree if plan.was_there else None,
    }
    with desk.database.transaction() as tx:
        _confirm_removal(desk, tx, run, attempt, facts)
    return deleted


def _confirm_removal(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, facts: dict[str, Any]
) -> None:
    """Write down that it is gone; `facts` stand in the event."""
    me, now_ms = desk.database.owner(), tx.now.wall_ms
    if not journal_rows.close_intent(tx, attempt.id, "cleanup", "done", me, now_ms):
        return  # another leader has taken it over, and does the same
    present = attempts.get(tx, attempt.id)
    assert present is not None
    changes = {"removed_at": now_ms, "salvage_commit": facts["salvage"], "updated_at": now_ms}
    changed = attempts.update(tx, attempt.id, changes, expected_state=present.state)
    assert changed, "the attempt changed under the write lock"
    moving.record_attempt(desk, tx, run, present, "worktree_removed", facts)
    if facts["salvage"] is not None and attempt.thread_id is not None:
        desk.bus.reply(attempt.thread_id, body=_notice(attempt), agent=run.leader)


# -- after a crash -----------------------------------------------------------------------


def finish_cleanups(desk: Desk, run: Run) -> int:
    """Finish the removals whose worktree is in the trash already, and undo the others;
    returns how many there were. Begins no removal."""
    with desk.database.snapshot() as snapshot:
        begun = [
            (intent, attempts.get(snapshot, str(intent.attempt_id)))
            for intent in journal_rows.open_intents(snapshot, run.id)
            if intent.kind == "cleanup"
        ]
    return sum(
        _finish_cleanup(desk, run, intent, attempt)
        for intent, attempt in begun
        if attempt is not None and _is_left(desk, intent)
    )


def _is_left(desk: Desk, intent: Intent) -> bool:
    """Whether no process is working on it: this one, too, may have come to no end with it
    earlier. Should it still be working on it, it has the attempt's lock."""
    return intent.owner == desk.database.owner() or owners.is_abandoned(desk, intent)


def _finish_cleanup(desk: Desk, run: Run, intent: Intent, attempt: Attempt) -> bool:
    try:
        repository = desk.repository(run)
        with worktrees.alone(repository, place_of(desk, attempt)):
            if not provision.take_over(desk, intent):
                return False
            _settle(desk, run, attempt, removal_from(intent.data))
    except InboxOrchError as error:
        if error.code not in LATER:
            raise
        return False
    return True


def _settle(desk: Desk, run: Run, attempt: Attempt, plan: Removal) -> None:
    """In the attempt's lock, with the intent taken over."""
    repository = desk.repository(run)
    trash = _trash(run, repository, attempt)
    if plan.was_there and not removal.is_moved(trash):
        removal.give_up_trash(trash)
        _undo(desk, repository, attempt, plan)
    else:
        _finish_removal(desk, run, attempt, plan)


# -- trash -------------------------------------------------------------------------------


def _trash(run: Run, repository: Repository, attempt: Attempt) -> Trash:
    return removal.trash_of(repository, str(run.worktree_root), attempt.id)


def _empty_trash(desk: Desk, run: Run, repository: Repository) -> list[str]:
    """What this run has removed long enough ago goes for good."""
    there = removal.in_trash(repository, str(run.worktree_root))
    if not there:
        return []
    before = desk.database.now().wall_ms - int(cleanup.TRASH_SECONDS * 1000)
    with desk.database.snapshot() as snapshot:
        old = attempts.removed_before(snapshot, run.id, before)
    wanted = [attempt_id for attempt_id in old if attempt_id in there]
    return removal.empty_trash(repository, str(run.worktree_root), wanted)


def _item(
    desk: Desk,
    attempt: Attempt,
    key: str,
    seen: Inspected,
    plan: Removal,
    deleted: Deleted,
) -> Item:
    run = desk.run(attempt.run_id)
    trash = _trash(run, desk.repository(run), attempt).worktree
    return Item(
        attempt,
        key,
        KEPT if deleted.failed else REMOVED,
        (*seen.reasons, *remaining_refs.could_not_go(deleted.failed)),
        merged_into=merged_into(seen),
        salvage=plan.salvage,
        deleted_refs=tuple(deleted.gone),
        trash=trash if plan.was_there else None,
    )


def _cleanup_of(begun: Sequence[Intent], attempt_id: str) -> Intent | None:
    found = (i for i in begun if i.attempt_id == attempt_id and i.kind == "cleanup")
    return next(found, None)


def _fingerprint(seen: Inspected) -> str | None:
    return None if seen.condition is None else seen.condition.fingerprint


def _proven_head(seen: Inspected) -> str | None:
    return None if seen.condition is None or seen.proof is None else seen.condition.head


def _notice(attempt: Attempt) -> str:
    return (
        f"The worktree of attempt {attempt.number} was taken away. What was only there"
        f" is kept at {salvage.ref_of(attempt.id)};"
        f" `orch attempt restore {attempt.id}` brings it back."
    )
