"""Late work: commits that an ended attempt's worker has made and nobody has taken.

Its report is refused; what it committed is kept reachable, and can be adopted.
"""

from typing import Any

from inbox_orch.shared.errors import InboxOrchError

from ..domain.model import Attempt, Run
from ..git.commands import FAILURES
from ..git.heads import Heads, commits_beyond
from ..git.repository import Repository
from ..store import attempts
from .folding import Folding
from .verifying import details_of, details_with


def late_ref(attempt: Attempt) -> str:
    """Where the late commits of an attempt are kept."""
    return f"refs/orch/late/{attempt.id}"


class Late(Folding):
    """The part of the scheduler that keeps what came too late."""

    def keep_late_work(self, run: Run) -> int:
        """Keep commits in the worktrees of ended attempts that are not kept yet, at
        `refs/orch/late/<attempt>`, with an event for each new head; returns how many attempts
        had some.

        Reads a few small files for each attempt, and asks git only about a HEAD that it does not
        know. What cannot be looked at now waits for the next time.
        """
        if run.repository is None:
            return 0
        with self.database.snapshot() as snapshot:
            ended = attempts.ended_with_worktree(snapshot, run.id)
        if not ended:
            return 0
        try:
            repository = self.repository(run)
        except InboxOrchError:
            return 0  # `obstacle` and `doctor` tell of it
        heads = Heads(repository)
        return sum(self._keep_one(run, repository, heads, attempt) for attempt in ended)

    def _keep_one(self, run: Run, repository: Repository, heads: Heads, attempt: Attempt) -> bool:
        known = known_heads(attempt)
        try:
            head = heads.of(str(attempt.worktree_path))
            if head is None or head in known or self._nothing_new.get(attempt.id) == head:
                return False
            count = commits_beyond(repository, head, known)
            if count == 0:
                self._nothing_new[attempt.id] = head
                return False
            repository.keep(late_ref(attempt), head)
        except InboxOrchError as error:
            if error.code not in FAILURES:
                raise
            return False  # one damaged worktree must not hold the others up
        return self._note_late(run, attempt, head, count)

    def _note_late(self, run: Run, attempt: Attempt, head: str, count: int) -> bool:
        facts = {"head": head, "commits": count, "ref": late_ref(attempt)}
        with self.database.transaction() as tx:
            present = attempts.get(tx, attempt.id)
            assert present is not None
            if _late_of(present).get("head") == head:
                return False  # another leader was quicker
            columns = {"details": details_with(present, late=facts)}
            attempts.update(tx, attempt.id, columns, expected_state=present.state)
            self.record_attempt(tx, run, present, "late_work_kept", {"late": facts})
            return True

    @property
    def _nothing_new(self) -> dict[str, str]:
        """HEADs that were found to have nothing new, so that git is not asked again."""
        found: dict[str, str] = self.__dict__.setdefault("_late_heads", {})
        return found


def known_heads(attempt: Attempt) -> list[str]:
    """Commits of an attempt that are kept: its base, what was recorded, what came late."""
    found = (attempt.base_commit, attempt.head_commit, _late_of(attempt).get("head"))
    return [commit for commit in found if commit is not None]


def _late_of(attempt: Attempt) -> dict[str, Any]:
    late: dict[str, Any] = details_of(attempt).get("late", {})
    return late
