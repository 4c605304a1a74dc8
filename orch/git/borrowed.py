"""Temporary worktrees with a detached HEAD, for looking at a commit whose worktree is gone.

Made and taken away as those of attempts are, so that a death at any point leaves what the next
process can clear away.
"""

from . import worktrees
from .commands import git
from .repository import Repository
from .standing import require_here
from .worktrees import Place


def detach(repository: Repository, place: Place) -> None:
    """Let the worktree that was made at this place stand on its commit alone, without the branch
    that it was made with. Error `git_failed`."""
    require_here(place.path, repository.common_directory)
    git(place.path, "checkout", "--quiet", "--detach")
    repository.drop(f"refs/heads/{place.branch}", place.base_commit)


def remove(repository: Repository, place: Place) -> None:
    """Take it away with all that is in it, as far as it was made. Errors: `busy`, `io_error`."""
    with worktrees.alone(repository, place):
        worktrees.unmake(repository, place)
