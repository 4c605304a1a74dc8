"""On which commit an attempt starts, so that it has the work that it depends on."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..git.repository import Repository
from ..runs import graph
from ..runs.model import Attempt, Dependency, Run, Task


class Base(NamedTuple):
    """The commit, the ref as it was asked for, where it came from.

    `source` is `option`, `run`, `HEAD`, `task`, `merge`, or where the task's own next base came
    from (`integration`, `attempt`); `heads` are the commits that it was computed from;
    `conflicts` are paths, and then there is no commit.
    """

    commit: str | None
    ref: str | None
    source: str
    heads: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class Heads:
    """The accepted heads that tasks of a run build on, as its tasks and edges stand."""

    def __init__(self, tasks: Sequence[Task], dependencies: Sequence[Dependency]) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._edges = graph.edges_of(dependencies) if dependencies else {}

    def of(self, task: Task) -> tuple[str, ...]:
        """Those of every code task that `task` depends on, directly or not, over any edge and
        through tasks without a worktree; in topological order."""
        if task.id not in self._edges:
            return ()
        upstream = [self._tasks[task_id] for task_id in graph.ancestors(self._edges, task.id)]
        by_age = [t.id for t in sorted(upstream, key=lambda t: t.number)]
        order = graph.ordered(by_age, self._edges)
        heads = (self._tasks[task_id].accepted_head for task_id in order)
        return tuple(dict.fromkeys(head for head in heads if head is not None))

    def basis(self, task: Task) -> tuple[str, ...]:
        """All that the base of its next attempt is computed from, as the task stands now: when
        that changes, the base has to be chosen anew and a stored conflict is void."""
        return _basis(self._tasks[task.id], self.of(task))


def base_for(
    repository: Repository,
    run: Run,
    task: Task,
    heads: tuple[str, ...],
    option: str | None,
    within: str | None = None,
) -> Base:
    """The base of the next attempt. Makes objects at most; no ref, no working tree is touched.

    `option` and HEAD are read in the folder `within`, where the call was made: a linked worktree
    has a HEAD of its own.
    Errors: `usage` (a ref that names no commit), `dep_not_in_base`.
    """
    basis = _basis(task, heads)
    if option is not None:
        commit = repository.commit_of(option, within)
        missing = [head for head in heads if not repository.contains(commit, head)]
        if missing:
            raise InboxOrchError(
                "dep_not_in_base",
                f"{option} lacks work that task {task.key} depends on: {', '.join(missing)}",
                hint="leave --base out, or merge that work into it first",
                details={"task": task.key, "base": commit, "missing": missing},
            )
        return Base(commit, option, "option", basis)
    if task.next_base is not None:
        return _own_base(repository, run, task, heads)
    if not heads:
        if run.base_commit is not None:
            return Base(run.base_commit, run.base_ref, "run")
        return Base(repository.commit_of("HEAD", within), "HEAD", "HEAD")
    independent = repository.independent(heads)
    if len(independent) == 1:
        return Base(independent[0], None, "task", heads)
    merged = repository.merge(independent, f"Base of task {task.key} in run {run.name}")
    return Base(merged.commit, None, "merge", heads, merged.conflicts)


def tip_of(repository: Repository, attempt: Attempt) -> str | None:
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


def _basis(task: Task, heads: tuple[str, ...]) -> tuple[str, ...]:
    if task.next_base is None:
        return heads
    return tuple(dict.fromkeys((task.next_base, *heads)))


def _own_base(repository: Repository, run: Run, task: Task, heads: tuple[str, ...]) -> Base:
    """Where the task is told to start, with what it depends on merged in as far as it is not
    there yet."""
    start, basis = task.next_base, _basis(task, heads)
    assert start is not None and task.next_base_source is not None
    missing = [head for head in heads if not repository.contains(start, head)]
    if not missing:
        return Base(start, None, task.next_base_source, basis)
    added = repository.independent(missing)
    merged = repository.merge((start, *added), f"Base of task {task.key} in run {run.name}")
    return Base(merged.commit, None, "merge", basis, merged.conflicts)
