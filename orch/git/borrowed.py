"""Temporary worktrees with a detached HEAD, for looking at a commit whose worktree is gone.

Made and taken away as those of attempts are, so that a death at any point leaves what the next
process can clear away.
"""

from . import worktrees
from .commands import git
from .repository import Repository
from .worktrees import Place


def make(repository: Repository, place: Place) -> None:
    """Check a commit out at a place that nobody else uses; its branch is there only meanwhile.

    Errors: those of `worktrees.make`.
    """
    with worktrees.alone(repository, place) as hold:
        worktrees.make(repository, place, hold)
        git(place.path, "checkout", "--quiet", "--detach")
        repository.drop(f"refs/heads/{place.branch}", place.base_commit)


def remove(repository: Repository, place: Place) -> None:
    """Take it away with all that is in it, as far as it was made. Errors: `busy`, `io_error`."""
    with worktrees.alone(repository, place):
        worktrees.unmake(repository, place)
