"""Bringing a tree that was handed in as text into a worktree: as a commit on its branch, by whoever
wrote it, to which git itself takes files and index forward.

Git is marked while it writes
(`marks`), so that what a killed one has left is put right by whoever comes next: what is half
written is brought to the end, or back. Nothing that lies in the worktree is written over.
"""

import os

from inbox_orch.shared.errors import InboxOrchError

from . import forwarding, integrating, mending, worktrees
from .chain import head_of
from .failures import shown
from .integrating import Move
from .repository import Repository
from .standing import require_here
from .unfit import NotApplied
from .worktrees import Hold

_MOST_NAMED = 5


def bring(repository: Repository, worktree: str, hold: Hold, move: Move) -> None:
    """Let a worktree come from one commit to the next, with its branch; where it is there already,
    nothing is done. To be called in the attempt's lock.

    Raises `NotApplied`, with everything as it was, when something in the worktree is in the way:
    files that the commit brings and that are there (ignored ones, too), what is not committed, HEAD
    elsewhere. Errors: `busy`, `git_failed`, `disk_full`, `read_only`, `io_error`.
    """
    mending.mend(repository)
    require_here(worktree, repository.common_directory)
    present, ref = head_of(worktree)
    if ref != f"refs/heads/{move.branch}":
        raise NotApplied("patch_does_not_apply", f"HEAD is not on {move.branch}")
    if present == move.new:
        return
    if present != move.old:
        raise NotApplied("patch_does_not_apply", "its worktree is at another commit by now")
    blocking = in_the_way(repository, worktree, move.old, move.new)
    if blocking:
        more = f" and {len(blocking) - _MOST_NAMED} more" if blocking[_MOST_NAMED:] else ""
        named = ", ".join(map(shown, blocking[:_MOST_NAMED])) + more
        there = "are there" if blocking[1:] else "is there"
        why = f"{named} {there} already in its worktree, and in no commit"
        raise NotApplied("patch_does_not_apply", why)
    with hold.shared() as lock, worktrees.locked(repository) as repository_lock:
        locks = (lock, repository_lock)
        moved = integrating.fast_forward(repository, move, move.branch, shared_locks=locks)
    if moved.state == "checked_out":
        raise NotApplied("patch_does_not_apply", f"in its worktree: {moved.reason}")
    if moved.state not in ("fast_forwarded", "up_to_date"):
        raise _failed(worktree, str(moved.reason))


def in_the_way(repository: Repository, worktree: str, old: str, new: str) -> list[str]:
    """What lies in a worktree where the new commit has a file, or a folder on the way to one, and
    the old commit has nothing; links on the way, too."""
    changed = forwarding.differences(repository, old, new)
    going = {d.path for d in changed if d.old is not None}
    found: dict[str, None] = {}
    for path in (d.path for d in changed if d.old is None and d.new is not None):
        parts = path.split("/")
        for number in range(1, len(parts) + 1):
            at = "/".join(parts[:number])
            whole = os.path.join(worktree, at)
            if os.path.lexists(whole) and at not in going:
                folder = os.path.isdir(whole) and not os.path.islink(whole)
                if number == len(parts) and folder:
                    found |= dict.fromkeys(_left_in(whole, at, going))
                elif not folder:
                    found[at] = None
                    break
    return list(found)


def _left_in(folder: str, path: str, going: set[str]) -> list[str]:
    """What would be left of a folder in whose place a file is to be."""
    found = []
    for inside, _, names in os.walk(folder):
        below = os.path.relpath(inside, folder)
        for name in names:
            inner = f"{path}/{name}" if below == "." else f"{path}/{below}/{name}"
            if inner not in going:
                found.append(inner)
    return found


def _failed(worktree: str, reason: str) -> InboxOrchError:
    """Git would not, and nothing in the worktree is why, as far as could be seen."""
    code = "disk_full" if reason.startswith("no space left in ") else "git_failed"
    return InboxOrchError(
        code,
        f"git could not bring {shown(worktree)} forward: {reason}",
        hint="put that right; the next `orch reconcile` does it again",
        details={"folder": shown(worktree)},
    )
