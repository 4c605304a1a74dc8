"""The commit that a run begins at, and the ref that keeps it whatever becomes of its branch."""

import contextlib
from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError

from ..git.recognising import mark_of
from ..git.repository import Repository
from .desk import Desk
from .model import Run


def keep_base(desk: Desk, run: Run) -> None:
    """Keep the base of a run reachable, or what HEAD is where it has none; by the same ref its
    repository is known again. What cannot be kept now is kept by the next dispatch; a clean-up
    of the closed run lets it go. Setting the ref again does no harm."""
    if run.repository is None:
        return
    with contextlib.suppress(InboxOrchError):  # what comes next says so
        repository = desk.repository(run)
        if repository.ref_commit(mark_of(run.id)) is None:
            repository.keep(mark_of(run.id), run.base_commit or repository.commit_of("HEAD"))


def release_base(repository: Repository, run: Run, stays: Sequence[str]) -> None:
    """Let the base of a closed run go, or what stands for one that was never named, if it is in
    the history of a commit that stays."""
    if run.state != "closed" and run.base_commit is not None:
        return
    commit = repository.ref_commit(mark_of(run.id))
    if commit is not None and any(repository.contains(other, commit) for other in stays):
        repository.drop(mark_of(run.id), commit)
