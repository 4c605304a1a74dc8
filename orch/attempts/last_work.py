"""The work that an ended attempt has left: the newest of its commits, wherever they are."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found

from ..git.heads import Heads, commits_beyond
from ..git.repository import Repository
from ..runs.model import Attempt, Task
from .late import late_ref
from .patches import Judged


class Work(NamedTuple):
    """The commits of an ended attempt: where they were found, and the worktree if they are
    checked out there; and why what is not committed there was not committed for the worker.
    `judged` is what the policy says of them, where there is something to be said."""

    head: str
    commits_ahead: int
    source: str
    folder: str | None
    obstacle: str | None = None
    judged: Judged | None = None

    @property
    def accepted(self) -> str:
        """The commit with which they come in."""
        return self.head if self.judged is None else self.judged.head


def choose(
    repository: Repository, task: Task, ended: Sequence[Attempt], number: int | None
) -> tuple[Attempt, Work]:
    """The work of attempt `number`, or of the newest that has some. Error `not_found`."""
    candidates = [a for a in ended if a.branch is not None and a.base_commit is not None]
    if number is not None:
        candidates = [a for a in candidates if a.number == number]
        if not candidates:
            known = ", ".join(str(a.number) for a in ended) or "none"
            raise not_found("attempt", f"{task.key}/{number}", hint=f"it has: {known}")
    heads = Heads(repository)
    found = [(a, _work_of(repository, heads, a)) for a in reversed(candidates)]
    with_work = [(a, work) for a, work in found if work is not None]
    with_commits = [(a, work) for a, work in with_work if work.commits_ahead > 0]
    if with_commits:
        return with_commits[0]
    if with_work:
        return with_work[0]  # it may be allowed to be empty
    raise InboxOrchError(
        "not_found",
        f"no ended attempt of task {task.key} has commits that are still there",
        hint=f"`orch task show {task.key}` shows its attempts",
        details={"task": task.id, "key": task.key},
    )


def _work_of(repository: Repository, heads: Heads, attempt: Attempt) -> Work | None:
    """The newest commits of an attempt: in its worktree, or kept because they came late, or on
    its branch, or recorded; None when nothing of it is there."""
    base, worktree = str(attempt.base_commit), str(attempt.worktree_path)
    sources = {
        "worktree": heads.of(worktree),
        "late": repository.ref_commit(late_ref(attempt)),
        "branch": repository.ref_commit(f"refs/heads/{attempt.branch}"),
        "recorded": attempt.head_commit,
    }
    best: Work | None = None
    for source, head in sources.items():
        if head is None or repository.ref_commit(head) is None:
            continue
        folder = worktree if head == sources["worktree"] else None
        work = Work(head, commits_beyond(repository, head, [base]), source, folder)
        if work.commits_ahead > 0:
            return work
        best = best or work
    return best
