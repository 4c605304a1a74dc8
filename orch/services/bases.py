"""On which commit an attempt starts, so that it has the work that it depends on."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..domain import graph
from ..domain.model import Dependency, Run, Task
from ..git.repository import Repository


class Base(NamedTuple):
    """The commit, the ref as it was asked for, where it came from.

    `source` is `option`, `run`, `HEAD`, `task` or `merge`; `heads` are the accepted heads that
    it was computed from; `conflicts` are paths, and then there is no commit.
    """

    commit: str | None
    ref: str | None
    source: str
    heads: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def accepted_heads(
    task: Task, tasks: Sequence[Task], dependencies: Sequence[Dependency]
) -> tuple[str, ...]:
    """The accepted heads of every code task that `task` depends on, directly or not, over any
    edge and through tasks without a worktree; in topological order."""
    edges: dict[str, list[str]] = {}
    for dependency in dependencies:
        edges.setdefault(dependency.task_id, []).append(dependency.upstream_id)
    upstream = graph.ancestors(edges, task.id)
    by_id = {t.id: t for t in tasks}
    order = graph.ordered([t.id for t in tasks if t.id in upstream], edges)
    heads = (by_id[task_id].accepted_head for task_id in order)
    return tuple(dict.fromkeys(head for head in heads if head is not None))


def base_for(
    repository: Repository,
    run: Run,
    task: Task,
    heads: tuple[str, ...],
    option: str | None,
    within: str | None = None,
) -> Base:
    """The base of the next attempt. Makes objects at most; no ref, no working tree is touched.

    `option` is read in the folder `within`, where it was given.
    Errors: `usage` (a ref that names no commit), `dep_not_in_base`.
    """
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
        return Base(commit, option, "option", heads)
    if not heads:
        if run.base_commit is not None:
            return Base(run.base_commit, run.base_ref, "run")
        return Base(repository.commit_of("HEAD"), "HEAD", "HEAD")
    independent = repository.independent(heads)
    if len(independent) == 1:
        return Base(independent[0], None, "task", heads)
    merged = repository.merge(independent, f"Base of task {task.key} in run {run.name}")
    return Base(merged.commit, None, "merge", heads, merged.conflicts)
