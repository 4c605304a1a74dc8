"""The temporary worktree in which the checks of an adoption run."""

import os

from ..git import borrowed
from ..git.worktrees import Place
from ..journal.rows import Intent
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run


def place_of(desk: Desk, run: Run, attempt: Attempt, head: str) -> Place:
    """Where the work of an attempt is checked out for its checks; nobody is handed that out."""
    with desk.database.snapshot() as snapshot:
        key = tasks.by_id(snapshot, attempt.task_id).key
    assert run.worktree_root is not None
    return Place(
        run.branch_of(key, attempt.number).replace("/t/", "/adopt/", 1),
        os.path.join(run.worktree_root, run.folder_of(key, attempt.number)) + ".adopt",
        head,
        f"orch {desk.database.id} adopt {attempt.id}",
    )


def clear_borrowed(desk: Desk, run: Run, intent: Intent, attempt: Attempt) -> None:
    """Take away the temporary worktree of a process that died."""
    head = intent.data.get("borrowed")
    if head is not None:
        borrowed.remove(desk.repository(run), place_of(desk, run, attempt, head))
