"""Late work: commits that an ended attempt's worker has made and that were not taken.

Its report is refused; what it committed is kept reachable, and can be adopted.
"""

from inbox_orch.shared.errors import InboxOrchError

from ..git.commands import FAILURES
from ..git.heads import Heads, commits_beyond
from ..git.repository import Repository
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from . import moving
from . import rows as attempts
from .rows import Details, Late, details_of, details_with


def late_ref(attempt: Attempt) -> str:
    """Where the late commits of an attempt are kept."""
    return f"refs/orch/late/{attempt.id}"


def keep_late_work(desk: Desk, run: Run) -> int:
    """Keep commits in the worktrees of ended attempts that are not kept yet, at
    `refs/orch/late/<attempt>`, with an event for each new head; returns how many attempts
    had some.

    Reads a few small files for each attempt, and asks git only about a HEAD that it does not
    know. What cannot be looked at now waits for the next time.
    """
    if run.repository is None:
        return 0
    with desk.database.snapshot() as snapshot:
        ended = attempts.ended_with_worktree(snapshot, run.id)
    if not ended:
        return 0
    try:
        repository = desk.repository(run)
    except InboxOrchError:
        return 0  # `obstacle` and `doctor` tell of it
    heads = Heads(repository)
    return sum(_keep_one(desk, run, repository, heads, attempt) for attempt in ended)


def _keep_one(desk: Desk, run: Run, repository: Repository, heads: Heads, attempt: Attempt) -> bool:
    known = known_heads(attempt)
    try:
        head = heads.of(str(attempt.worktree_path))
        if head is None or head in known or desk.nothing_new.get(attempt.id) == head:
            return False
        count = commits_beyond(repository, head, known)
        if count == 0:
            desk.nothing_new[attempt.id] = head
            return False
        repository.keep(late_ref(attempt), head)
    except InboxOrchError as error:
        if error.code not in FAILURES:
            raise
        return False  # one damaged worktree must not hold the others up
    return _note_late(desk, run, attempt, head, count)


def _note_late(desk: Desk, run: Run, attempt: Attempt, head: str, count: int) -> bool:
    late = Late(head, count, late_ref(attempt))
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        assert present is not None
        if _late_head(present) == head:
            return False  # another leader was quicker
        columns = {"details": details_with(present, Details(late=late))}
        attempts.update(tx, attempt.id, columns, expected_state=present.state)
        moving.record_attempt(desk, tx, run, present, "late_work_kept", {"late": late._asdict()})
        return True


def known_heads(attempt: Attempt) -> list[str]:
    """Commits of an attempt that are kept: its base, what was recorded, what came late."""
    handed_in = details_of(attempt).handed_in
    found = (attempt.base_commit, attempt.head_commit, handed_in, _late_head(attempt))
    return [commit for commit in found if commit is not None]


def _late_head(attempt: Attempt) -> str | None:
    late = details_of(attempt).late
    return None if late is None else late.head
