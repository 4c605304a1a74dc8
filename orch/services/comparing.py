"""`conflicts`: which attempts will not merge, before anyone has finished. Changes nothing."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..domain import integration
from ..domain.comparing import Conflicts, Pair, Side
from ..domain.limits import DEFAULT_PAIRS
from ..domain.model import Attempt, Run, Task
from ..domain.states import NEEDS_WORKTREE
from ..git import integrating as git_integrating
from ..git.comparing import comparison
from ..git.repository import Repository
from ..git.standing import require_here
from ..store import attempts, integrations, tasks
from .viewing import Viewing


class _Found(NamedTuple):
    """An attempt with the commit that it is at; `tree` is its worktree while it is live."""

    task: Task
    attempt: Attempt
    head: str
    tree: str | None


class Comparing(Viewing):
    """`conflicts`."""

    def conflicts(self, run: Run, *, most_pairs: int = DEFAULT_PAIRS) -> Conflicts:
        """Compare each two attempts that are live, or accepted and not integrated yet, and each
        with what was integrated; at most `most_pairs`, those with the integration first, then the
        oldest attempts.

        Of what is not committed only the names are compared. Errors: `usage` (a run without a
        repository), those of git.
        """
        stale = self.fold_if_writable(run)
        repository = self.repository(run)
        tip = repository.ref_commit(f"refs/heads/{integration.branch_of(run)}")
        sides = self._sides(run, repository, tip)
        pairs = list(_pairs(sides, tip))
        with comparison(repository) as compared:
            found = [
                Pair(one, other, _merge_paths(compared.conflicts, one, other, tip), overlap)
                for one, other, overlap in pairs[:most_pairs]
            ]
        items = tuple(pair for pair in found if pair.paths or pair.overlap)
        return Conflicts(run, sides, items, len(pairs), len(found), tip, stale)

    def _sides(self, run: Run, repository: Repository, tip: str | None) -> tuple[Side, ...]:
        found = self._found(run, repository)
        heads = list(dict.fromkeys(each.head for each in found))
        start = tip or run.base_commit or repository.commit_of("HEAD")
        history = git_integrating.missing_from(repository, start, heads)
        return tuple(
            Side(
                each.task,
                each.attempt,
                each.head,
                () if each.tree is None else _uncommitted(repository, each.tree),
                frozenset(git_integrating.reached(history, each.head) & history.keys()),
            )
            for each in found
            if each.tree is not None or each.head in history
        )

    def _found(self, run: Run, repository: Repository) -> list[_Found]:
        with self.database.snapshot() as connection:
            of_run = tasks.of_run(connection, run.id)
            dependencies = tasks.dependencies_of_run(connection, run.id)
            accepted = integrations.accepted(connection, run.id)
            live = attempts.live_of_run(connection, run.id)
        by_id = {task.id: task for task in of_run}
        pieces = integration.pieces(of_run, dependencies, accepted)
        found = [_Found(p.task, p.attempt, p.head, None) for p in pieces]
        trees = {
            os.path.realpath(tree.path): tree
            for tree in git_integrating.working_trees(repository)
            if tree.present and tree.head is not None
        }
        for attempt in live:
            tree = trees.get(os.path.realpath(attempt.worktree_path or "/"))
            if attempt.state in NEEDS_WORKTREE and tree is not None:
                found.append(_Found(by_id[attempt.task_id], attempt, str(tree.head), tree.path))
        return found


def _uncommitted(repository: Repository, tree: str) -> tuple[str, ...]:
    """What is not committed in a working tree; error `git_failed` when git looks elsewhere."""
    require_here(tree, repository.common_directory)
    return repository.dirty_paths(tree)


def _pairs(
    sides: Sequence[Side], tip: str | None
) -> Iterator[tuple[Side, Side | None, tuple[str, ...]]]:
    """Those that could conflict, and what both have changed without committing."""
    if tip is not None:
        for side in sides:
            if side.brings:
                yield side, None, ()
    for one, other in itertools.combinations(sides, 2):
        overlap = tuple(path for path in one.uncommitted if path in other.uncommitted)
        if overlap or _apart(one, other):
            yield one, other, overlap


def _apart(one: Side, other: Side) -> bool:
    """Whether each brings something that the other does not have."""
    return bool(one.brings - other.brings) and bool(other.brings - one.brings)


def _merge_paths(
    conflicts: Callable[[str, str], tuple[str, ...]], one: Side, other: Side | None, tip: str | None
) -> tuple[str, ...]:
    if other is None:
        assert tip is not None
        return conflicts(one.head, tip)
    return conflicts(one.head, other.head) if _apart(one, other) else ()
