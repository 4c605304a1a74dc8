"""The commit that a run begins at, and the ref that keeps it whatever becomes of its branch."""

import contextlib
from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError

from ..domain.model import Run
from ..git.repository import Repository
from .desk import Desk


def keep_base(desk: Desk, run: Run) -> None:
    """Keep the base of a run reachable. What cannot be kept now is kept by the next dispatch;
    a clean-up of the closed run lets it go. Setting the ref again does no harm."""
    if run.repository is None or run.base_commit is None:
        return
    with contextlib.suppress(InboxOrchError):  # whoever goes on is told
        repository = desk.repository(run)
        if repository.ref_commit(ref_of(run)) is None:
            repository.keep(ref_of(run), run.base_commit)


def release_base(repository: Repository, run: Run, stays: Sequence[str]) -> None:
    """Let the base of a closed run go, if it is in the history of a commit that stays."""
    commit = repository.ref_commit(ref_of(run)) if run.state == "closed" else None
    if commit is not None and any(repository.contains(other, commit) for other in stays):
        repository.drop(ref_of(run), commit)


def ref_of(run: Run) -> str:
    """The ref that keeps the base of a run."""
    return f"refs/orch/run/{run.id}"
