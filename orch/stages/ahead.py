"""How many commits the work of an attempt is ahead of its base: a fact of two commits, which is
known since the worktree was looked at, and need not be asked for again in the same process.
"""

from ..git.commands import output_of
from ..git.repository import Repository
from ..runs.model import Attempt

_MOST_REMEMBERED = 1000
_known: dict[tuple[str, str | None, str], int] = {}


def remember(attempt: Attempt, head: str, commits: int) -> None:
    """So many commits lead from its base to `head`."""
    # Several threads of a server may be here: none takes away what another is about to read.
    for oldest in list(_known)[: max(0, len(_known) - _MOST_REMEMBERED)]:
        _known.pop(oldest, None)
    _known[attempt.id, attempt.base_commit, head] = commits


def of(repository: Repository, attempt: Attempt, head: str) -> int:
    """How many that are. Errors: those of git."""
    commits = _known.get((attempt.id, attempt.base_commit, head))
    if commits is not None:
        return commits
    words = ("rev-list", "--count", f"{attempt.base_commit}..{head}")
    return int(output_of(repository.path, *words))
