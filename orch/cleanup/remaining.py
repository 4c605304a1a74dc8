"""Refs that have outlived their worktree: a clean-up was to delete them, and could not.

What it had proven is looked at again when they are deleted.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inbox_orch.shared.store.engine import Engine

from ..attempts import rows as attempts
from ..git import removal, worktrees
from ..git.failures import shown
from ..git.removal import Deleted, Deletion
from ..git.repository import Repository
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from .reasons import Reason, about
from .remove import removal_from


class Remaining(NamedTuple):
    """What is left of an attempt without a worktree; `key` is that of its task."""

    attempt: Attempt
    key: str
    deletions: tuple[Deletion, ...]


def refs_left(
    database: Engine, repository: Repository, run: Run, task_ids: Iterable[str] | None
) -> list[Remaining]:
    """By the attempts of all tasks, or of those with these ids, oldest first."""
    with database.snapshot() as snapshot:
        keys = {task.id: task.key for task in tasks.of_run(snapshot, run.id, bodies=False)}
        wanted = keys.keys() if task_ids is None else set(task_ids)
        planned = attempts.done_removals(snapshot, run.id)
        removed = [a for a in attempts.of_run(snapshot, run.id) if a.id in planned]
    meant = {a.id: removal_from(planned[a.id]).deletions for a in removed if a.task_id in wanted}
    there = set(removal.still_there(repository, (d for each in meant.values() for d in each)))
    left = (
        Remaining(a, keys[a.task_id], tuple(d for d in meant.get(a.id, ()) if d in there))
        for a in removed
    )
    return [each for each in left if each.deletions]


def delete_left(
    database: Engine, repository: Repository, run: Run, task_ids: Iterable[str] | None
) -> list[tuple[Remaining, Deleted]]:
    """Delete them, in the lock of the repository; what became of each."""
    remaining = refs_left(database, repository, run, task_ids)
    if not remaining:
        return []
    with worktrees.locked(repository) as lock:
        return [(r, removal.delete_refs(repository, r.deletions, (lock,))) for r in remaining]


def could_not_go(failed: dict[str, str]) -> tuple[Reason, ...]:
    """Of refs that git failed to delete, with its words."""
    if not failed:
        return ()
    words = next(iter(failed.values()))[:400]
    text = f"its worktree is gone, but git could not delete its refs ({words}); repeat the clean-up"
    return (about("failed", text, sorted(failed)),)


def merged_into(deletions: Sequence[Deletion]) -> str | None:
    """A ref that has the work of those that go."""
    return next((shown(d.target.ref) for d in deletions if d.target is not None), None)


def release_base(desk: Desk, repository: Repository, run: Run, stays: Sequence[str]) -> None:
    """Let the base of a closed run go, or what stands for one that was never named, if it is in
    the history of a commit that stays. The repository of a run that is open, or has salvage that
    can be restored, is known by it."""
    if run.state != "closed" or _has_salvage(desk, run):
        return
    commit = repository.ref_commit(run.mark)
    if commit is not None and any(repository.contains(other, commit) for other in stays):
        repository.drop(run.mark, commit)


def _has_salvage(desk: Desk, run: Run) -> bool:
    with desk.database.snapshot() as snapshot:
        return any(a.salvage_commit is not None for a in attempts.of_run(snapshot, run.id))
