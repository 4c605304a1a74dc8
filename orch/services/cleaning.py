"""`cleanup`: taking away the worktrees of ended attempts, without ever losing work.

One attempt at a time, in its lock: look, salvage (objects only), write the intent down, look
again in the repository's lock, then rename. Before the worktree is in the trash a removal that
was cut short is undone, afterwards it is finished.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..domain import cleanup
from ..domain.cleanup import Reason, about
from ..domain.model import Attempt, Run
from ..git import mending, removal, salvage, worktrees
from ..git.failures import shown
from ..git.removal import Deleted, Deletion, Trash
from ..git.repository import Repository
from ..store import attempts, tasks
from ..store.attempts import Intent
from . import remaining as remaining_refs
from .inspecting import Inspected, Inspecting
from .provisioning import LATER
from .remaining import Remaining
from .removing import Removal, deletions, is_contained, planned, removal_from

KEPT, REMOVED, WOULD_REMOVE = "kept", "removed", "would_remove"


class Item(NamedTuple):
    """What became, or would become, of one worktree. `salvage` is the commit that keeps what
    existed only there; `deleted_refs` are gone because their work is in `merged_into`."""

    attempt: Attempt
    key: str
    action: str
    reasons: tuple[Reason, ...]
    merged_into: str | None = None
    salvage: str | None = None
    deleted_refs: tuple[Deletion, ...] = ()
    trash: str | None = None

    def as_json(self) -> dict[str, Any]:
        kept = self.salvage is not None
        return {
            "attempt": self.attempt.id,
            "task": self.attempt.task_id,
            "key": self.key,
            "number": self.attempt.number,
            "state": self.attempt.state,
            "branch": self.attempt.branch,
            "worktree": self.attempt.worktree_path,
            "action": self.action,
            "reasons": [reason.as_json() for reason in self.reasons],
            "merged_into": self.merged_into,
            "salvage_ref": salvage.ref_of(self.attempt.id) if kept else None,
            "salvage_commit": self.salvage,
            "deleted_refs": [{"ref": d.ref, "commit": d.commit} for d in self.deleted_refs],
            "trash": self.trash,
        }


class Cleaned(NamedTuple):
    """What a clean-up did. `emptied` are the attempts whose trash was old enough to go."""

    items: tuple[Item, ...]
    dry_run: bool
    forced: bool
    named: bool
    emptied: tuple[str, ...] = ()

    @property
    def degraded(self) -> bool:
        """Whether something that was asked for by its name stayed after all."""
        return self.named and any(item.action == KEPT for item in self.items)

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [item.as_json() for item in self.items],
            "truncated": False,
            "next_cursor": None,
            "dry_run": self.dry_run,
            "forced": self.forced,
            "emptied": list(self.emptied),
        }


class Cleaning(Inspecting):
    """`cleanup`."""

    def cleanup(
        self,
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
            self._chosen_for_cleanup(run, task_names)  # refuses names that are none
            return Cleaned((), dry_run, force, bool(task_names))
        repository = self.repository(run)
        if not dry_run:
            mending.mend(repository)
            self._finish_cleanups(run)
            self.fold(run)
        chosen = self._chosen_for_cleanup(run, task_names)
        self.require_mounted(run, repository)
        if dry_run or task_names:
            looked = [
                self._looked_at(run, repository, attempt, key, force=force, within=within)
                for attempt, key in chosen
            ]
            refused = [item for item in looked if item.action == KEPT]
            if task_names and refused:
                raise _refusal(looked, refused)
            if dry_run:
                return Cleaned(tuple(looked), True, force, bool(task_names))
        rest = self._delete_rest(run, repository, task_names)
        items = [
            self._clean(run, repository, attempt, key, force=force, within=within)
            for attempt, key in chosen
        ]
        emptied = self._empty_trash(run, repository)
        gone = (*(item for item in items if item is not None), *rest)
        return Cleaned(gone, False, force, bool(task_names), tuple(emptied))

    def _delete_rest(
        self, run: Run, repository: Repository, task_names: Sequence[str]
    ) -> list[Item]:
        """Refs that an earlier clean-up could not delete; what became of those."""
        with self.database.snapshot() as snapshot:
            named = [self.task(snapshot, run, name).id for name in task_names] or None
        done = remaining_refs.delete_left(self.database, repository, run, named)
        return [_rest(each, deleted) for each, deleted in done if any(deleted)]

    def _chosen_for_cleanup(self, run: Run, task_names: Sequence[str]) -> list[tuple[Attempt, str]]:
        with self.database.snapshot() as snapshot:
            keys = {task.id: task.key for task in tasks.of_run(snapshot, run.id)}
            wanted = {self.task(snapshot, run, name).id for name in task_names} or keys.keys()
            there = attempts.with_worktree(snapshot, run.id)
        return [(a, keys[a.task_id]) for a in there if a.task_id in wanted]

    def _looked_at(
        self,
        run: Run,
        repository: Repository,
        attempt: Attempt,
        key: str,
        *,
        force: bool,
        within: str | None,
    ) -> Item:
        """What would become of it."""
        seen = self.inspect(run, repository, attempt, within)
        refused = cleanup.standing_in_the_way(seen.reasons, force=force)
        action = KEPT if refused else WOULD_REMOVE
        return Item(attempt, key, action, seen.reasons, merged_into=_merged_into(seen))

    # -- one worktree ------------------------------------------------------------------------

    def _clean(
        self,
        run: Run,
        repository: Repository,
        attempt: Attempt,
        key: str,
        *,
        force: bool,
        within: str | None,
    ) -> Item | None:
        """None when another clean-up has taken it away meanwhile."""
        if attempt.live:
            # Whoever is making it may hold the attempt's lock; there is no need to wait.
            reasons = self.inspect(run, repository, attempt, within).reasons
            return Item(attempt, key, KEPT, reasons)
        with worktrees.alone(repository, self.place_of(attempt)):
            if not self._may_begin(run, attempt):
                return None
            seen = self.inspect(run, repository, attempt, within)
            refused = cleanup.standing_in_the_way(seen.reasons, force=force)
            if refused:
                return Item(attempt, key, KEPT, seen.reasons, merged_into=_merged_into(seen))
            return self._remove(run, repository, attempt, key, seen, force=force, within=within)

    def _may_begin(self, run: Run, attempt: Attempt) -> bool:
        """In the attempt's lock: whether its worktree is there still, after finishing or undoing
        what a process that is gone has begun."""
        with self.database.snapshot() as snapshot:
            intent = _cleanup_of(attempts.open_intents(snapshot, run.id), attempt.id)
        if intent is not None and self._take_over(intent):
            self._settle(run, attempt, removal_from(intent.data))
        with self.database.snapshot() as snapshot:
            present = attempts.get(snapshot, attempt.id)
        return present is not None and present.removed_at is None

    def _remove(
        self,
        run: Run,
        repository: Repository,
        attempt: Attempt,
        key: str,
        seen: Inspected,
        *,
        force: bool,
        within: str | None,
    ) -> Item:
        try:
            plan = self._plan(run, repository, attempt, key, seen)
        except InboxOrchError as error:
            # What cannot be salvaged is not removed.
            reason = about("failed", error.message[:500])
            return Item(attempt, key, KEPT, (*seen.reasons, reason))
        if not self._begin_removal(run, attempt, plan):
            reason = about("unfinished", "another process is at it")
            return Item(attempt, key, KEPT, (*seen.reasons, reason))
        obstacle = self._carry_out_removal(run, repository, attempt, seen, plan, force, within)
        if obstacle is not None:
            self._undo(repository, attempt, plan)
            return Item(attempt, key, KEPT, (*seen.reasons, obstacle))
        return self._item(attempt, key, seen, plan, self._finish_removal(run, attempt, plan))

    def _plan(
        self, run: Run, repository: Repository, attempt: Attempt, key: str, seen: Inspected
    ) -> Removal:
        commit = None
        gone = deletions(
            repository, attempt, self.targets(run, repository), _proven_head(seen), seen.proof
        )
        if seen.condition is None:
            # Nothing is salvaged, so what goes must be elsewhere as the very same commit.
            gone = [each for each in gone if is_contained(repository, each)]
        else:
            title = f"Salvage of {key}/{attempt.number} of run {run.name}"
            path, leaving = str(attempt.worktree_path), {each.ref: each.commit for each in gone}
            commit = salvage.snapshot(repository, path, seen.condition, title, leaving)
        return planned(gone, commit, was_there=seen.condition is not None)

    def _begin_removal(self, run: Run, attempt: Attempt, plan: Removal) -> bool:
        """Write down what is about to be done; False when somebody was quicker."""
        with self.database.transaction() as tx:
            present = attempts.get(tx, attempt.id)
            begun = attempts.open_intents(tx, run.id)
            if (
                present is None
                or present.live
                or present.removed_at is not None
                or any(intent.attempt_id == attempt.id for intent in begun)
            ):
                return False
            attempts.open_intent(
                tx,
                run_id=run.id,
                attempt_id=attempt.id,
                kind="cleanup",
                data=plan.as_data(),
                owner=self.this_process(),
                now_ms=tx.now.wall_ms,
            )
            return True

    def _carry_out_removal(
        self,
        run: Run,
        repository: Repository,
        attempt: Attempt,
        seen: Inspected,
        plan: Removal,
        force: bool,
        within: str | None,
    ) -> Reason | None:
        """Salvage ref and trash; returns what has come up meanwhile, with the worktree where it
        was."""
        if not plan.was_there:
            return None
        place, trash = self.place_of(attempt), self._trash(run, repository, attempt)
        try:
            with worktrees.locked(repository) as lock:
                again = self.inspect(run, repository, attempt, within)
                refused = cleanup.standing_in_the_way(again.reasons, force=force)
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

    def _undo(self, repository: Repository, attempt: Attempt, plan: Removal) -> None:
        """The worktree is where it was: forget that it was to go."""
        if plan.salvage is not None:
            # In the lock: a git that was left behind may be about to make the ref.
            with worktrees.locked(repository):
                repository.drop(salvage.ref_of(attempt.id), plan.salvage)
        with self.database.transaction() as tx:
            me = self.this_process()
            attempts.close_intent(tx, attempt.id, "cleanup", "undone", me, tx.now.wall_ms)

    def _finish_removal(self, run: Run, attempt: Attempt, plan: Removal) -> Deleted:
        """After the worktree has gone into the trash: what is left to do. May be done again."""
        repository = self.repository(run)
        place, trash = self.place_of(attempt), self._trash(run, repository, attempt)
        with worktrees.locked(repository) as lock:
            removal.move_admin(repository, place, trash)
            deleted = removal.delete_refs(repository, plan.deletions, (lock,))
        with self.database.transaction() as tx:
            self._confirm_removal(tx, run, attempt, plan, deleted.gone, trash)
        return deleted

    def _confirm_removal(
        self,
        tx: Transaction,
        run: Run,
        attempt: Attempt,
        plan: Removal,
        deleted: Sequence[Deletion],
        trash: Trash,
    ) -> None:
        me, now_ms = self.this_process(), tx.now.wall_ms
        if not attempts.close_intent(tx, attempt.id, "cleanup", "done", me, now_ms):
            return  # another leader has taken it over, and does the same
        present = attempts.get(tx, attempt.id)
        assert present is not None
        changes = {"removed_at": now_ms, "salvage_commit": plan.salvage, "updated_at": now_ms}
        changed = attempts.update(tx, attempt.id, changes, expected_state=present.state)
        assert changed, "the attempt changed under the write lock"
        facts = {
            "worktree": attempt.worktree_path,
            "salvage": plan.salvage,
            "deleted_refs": {d.ref: d.commit for d in deleted},
            "trash": trash.worktree if plan.was_there else None,
        }
        self.record_attempt(tx, run, present, "worktree_removed", facts)
        if plan.salvage is not None and attempt.thread_id is not None:
            self.bus.reply(attempt.thread_id, body=_notice(attempt), agent=run.leader)

    # -- after a crash -----------------------------------------------------------------------

    def finish_intents(self, run: Run) -> int:
        return super().finish_intents(run) + self._finish_cleanups(run)

    def _finish_cleanups(self, run: Run) -> int:
        """Finish the removals whose worktree is in the trash already, and undo the others;
        returns how many there were. Begins no removal."""
        with self.database.snapshot() as snapshot:
            begun = [
                (intent, attempts.get(snapshot, str(intent.attempt_id)))
                for intent in attempts.open_intents(snapshot, run.id)
                if intent.kind == "cleanup"
            ]
        return sum(
            self._finish_cleanup(run, intent, attempt)
            for intent, attempt in begun
            if attempt is not None and self._is_left(intent)
        )

    def _is_left(self, intent: Intent) -> bool:
        """Whether nobody is at it: this process, too, may have come to no end with it earlier.
        Should it be at it after all, it has the attempt's lock."""
        return intent.owner == self.this_process() or self.is_abandoned(intent)

    def _finish_cleanup(self, run: Run, intent: Intent, attempt: Attempt) -> bool:
        try:
            repository = self.repository(run)
            with worktrees.alone(repository, self.place_of(attempt)):
                if not self._take_over(intent):
                    return False
                self._settle(run, attempt, removal_from(intent.data))
        except InboxOrchError as error:
            if error.code not in LATER:
                raise
            return False
        return True

    def _settle(self, run: Run, attempt: Attempt, plan: Removal) -> None:
        """In the attempt's lock, with the intent taken over."""
        repository = self.repository(run)
        trash = self._trash(run, repository, attempt)
        if plan.was_there and not removal.is_moved(trash):
            removal.give_up_trash(trash)
            self._undo(repository, attempt, plan)
        else:
            self._finish_removal(run, attempt, plan)

    # -- trash -------------------------------------------------------------------------------

    def _trash(self, run: Run, repository: Repository, attempt: Attempt) -> Trash:
        return removal.trash_of(repository, str(run.worktree_root), attempt.id)

    def _empty_trash(self, run: Run, repository: Repository) -> list[str]:
        """What this run has removed long enough ago goes for good."""
        there = removal.in_trash(repository, str(run.worktree_root))
        if not there:
            return []
        before = self.database.clock.now().wall_ms - int(cleanup.TRASH_SECONDS * 1000)
        with self.database.snapshot() as snapshot:
            old = attempts.removed_before(snapshot, run.id, before)
        wanted = [attempt_id for attempt_id in old if attempt_id in there]
        return removal.empty_trash(repository, str(run.worktree_root), wanted)

    def _item(
        self,
        attempt: Attempt,
        key: str,
        seen: Inspected,
        plan: Removal,
        deleted: Deleted,
    ) -> Item:
        run = self.run(attempt.run_id)
        trash = self._trash(run, self.repository(run), attempt).worktree
        return Item(
            attempt,
            key,
            KEPT if deleted.failed else REMOVED,
            (*seen.reasons, *remaining_refs.could_not_go(deleted.failed)),
            merged_into=_merged_into(seen),
            salvage=plan.salvage,
            deleted_refs=tuple(deleted.gone),
            trash=trash if plan.was_there else None,
        )


def _rest(left: Remaining, deleted: Deleted) -> Item:
    return Item(
        left.attempt,
        left.key,
        KEPT if deleted.failed else REMOVED,
        remaining_refs.could_not_go(deleted.failed),
        merged_into=remaining_refs.merged_into(left.deletions),
        deleted_refs=tuple(deleted.gone),
    )


def _cleanup_of(begun: Sequence[Intent], attempt_id: str) -> Intent | None:
    found = (i for i in begun if i.attempt_id == attempt_id and i.kind == "cleanup")
    return next(found, None)


def _fingerprint(seen: Inspected) -> str | None:
    return None if seen.condition is None else seen.condition.fingerprint


def _proven_head(seen: Inspected) -> str | None:
    return None if seen.condition is None or seen.proof is None else seen.condition.head


def _merged_into(seen: Inspected) -> str | None:
    if seen.proof is None or seen.proof.target is None:
        return None
    return shown(seen.proof.target.ref)


def _notice(attempt: Attempt) -> str:
    return (
        f"The worktree of attempt {attempt.number} was taken away. What was only there"
        f" is kept at {salvage.ref_of(attempt.id)};"
        f" `orch attempt restore {attempt.id}` brings it back."
    )


def _refusal(looked: Sequence[Item], refused: Sequence[Item]) -> InboxOrchError:
    """Of a call for certain tasks: nothing was removed."""
    reasons = [reason for item in refused for reason in item.reasons]
    told = [
        f"{item.key}/{item.attempt.number}: {'; '.join(r.message for r in item.reasons)}"
        for item in refused
    ]
    overridable = all(reason.overridable for reason in reasons)
    return InboxOrchError(
        cleanup.error_code(reasons),
        f"nothing was removed. {'. '.join(told)}"[:2000],
        hint="--force removes it all the same, after salvaging what is not committed"
        if overridable
        else "no flag overrides this",
        details={
            "reasons": sorted({reason.code for reason in reasons}),
            "items": [item.as_json() for item in looked],
        },
    )
