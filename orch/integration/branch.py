"""Moving the branch on which a run's work comes together, by compare-and-swap."""

from inbox_orch.shared.errors import InboxOrchError

from ..git import integrating, worktrees
from ..git.integrating import Move
from ..git.repository import Repository


def moved(repository: Repository, branch: str, before: str | None, tip: str) -> bool:
    """Let a branch come from `before` (None: it is not there) to `tip`; False when it is elsewhere
    by now.

    In the lock of the repository, which git shares: a process that finishes this for a killed one
    waits for its git, before looking where the branch is. Errors: `dirty_repository` (it is checked
    out, and there are changes), `busy`, and those of git.
    """
    with worktrees.locked(repository) as lock:
        if before is None:
            return integrating.move_branch(repository, branch, tip, None, shared_locks=(lock,))
        done = integrating.fast_forward(
            repository, Move(branch, tip, before), tip, shared_locks=(lock,)
        )
    if done.state in ("checked_out", "refused"):
        raise InboxOrchError(
            "dirty_repository",
            f"{branch} is checked out in {done.worktree}: {done.reason}",
            hint="commit or put away what is there, or check out something else",
            details={"branch": branch, "worktree": done.worktree},
        )
    return done.state != "moved"
