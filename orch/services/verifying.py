"""What workers say is done, looked at: commits, what is not committed, the base.

Git is asked outside of any transaction; the verdict is written guarded by the state that it was
found for.
"""

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.transactions import Transaction

from ..domain.limits import MOST_MISSING_WORKTREES
from ..domain.model import Attempt, Run, Task
from ..domain.states import NEEDS_WORKTREE
from ..git.repository import Found, Repository, is_there
from ..store import attempts, tasks
from .folding import Folding

_REPOSITORY_GONE = ("git_failed", "usage")


class Verdict(NamedTuple):
    """Whether a submitted attempt is accepted, and what was seen."""

    state: str
    reason: str | None
    changes: dict[str, Any]


class Verifying(Folding):
    """The part of the scheduler that accepts or rejects."""

    def verify(self, run: Run) -> int:
        """Decide on every submitted attempt of a run; returns how many were decided.

        What cannot be looked at now, because the repository or the worktrees have gone away,
        waits: `obstacle` tells why.
        """
        with self.database.snapshot() as connection:
            submitted = [
                (a, tasks.by_id(connection, a.task_id))
                for a in _submitted(attempts.live_of_run(connection, run.id))
            ]
        return sum(self._verify_one(run, attempt, task) for attempt, task in submitted)

    def obstacle(self, run: Run) -> str | None:
        """Why submitted work cannot be looked at now; None when it can, or there is none."""
        with self.database.snapshot() as connection:
            live = attempts.live_of_run(connection, run.id)
        if not any(a.worktree_path is not None for a in _submitted(live)):
            return None
        try:
            self.repository(run)
        except InboxOrchError as error:
            if error.code not in _REPOSITORY_GONE:
                raise
            return error.message
        return _worktrees_gone(run, live)

    def _verify_one(self, run: Run, attempt: Attempt, task: Task) -> bool:
        verdict = self._verdict(run, attempt, task)
        if verdict is None:
            return False
        head = verdict.changes.get("head_commit")
        if verdict.state == "succeeded" and head is not None:
            # The worker may go on and move its branch; what was accepted stays reachable.
            self.repository(run).keep(f"refs/orch/heads/{attempt.id}", head)
        with self.database.transaction() as tx:
            present = attempts.get(tx.connection, attempt.id)
            assert present is not None
            if present.state not in ("submitted", "verifying"):
                return False  # another leader was quicker
            if present.state == "submitted":
                present = self.move_attempt(
                    tx, run, present, "verifying", cause="the worker is done"
                )
            changes = {**verdict.changes, "reason": verdict.reason}
            if verdict.state == "succeeded":
                self._accept(tx, run, present, changes)
            else:
                cause = verdict.reason or verdict.state
                self.end_attempt(tx, run, present, verdict.state, cause=cause, changes=changes)
            return True

    def _verdict(self, run: Run, attempt: Attempt, task: Task) -> Verdict | None:
        """None when it cannot be told now."""
        if attempt.worktree_path is None or attempt.base_commit is None:
            return Verdict("succeeded", None, {})
        try:
            repository = self.repository(run)
        except InboxOrchError as error:
            if error.code not in _REPOSITORY_GONE:
                raise
            return None
        try:
            found = repository.look_at(attempt.worktree_path, attempt.base_commit)
        except InboxOrchError as error:
            if error.code != "git_failed":
                raise
            if is_there(attempt.worktree_path):
                # What cannot be examined cannot be accepted; nor may it hold the run up for ever.
                return Verdict("rejected", f"unreadable: {error.message}"[:1000], {})
            found = None  # it has gone away meanwhile
        if found is None:
            return None if self.obstacle(run) else _lost(repository, attempt)
        seen = {"head_commit": found.head, "commits_ahead": found.commits_ahead}
        reasons, details = _objections(found, task)
        if reasons:
            return Verdict("rejected", "; ".join(reasons), {**seen, "details": json.dumps(details)})
        return Verdict("succeeded", None, seen)

    def _accept(self, tx: Transaction, run: Run, attempt: Attempt, changes: dict[str, Any]) -> None:
        accepted = self.move_attempt(
            tx, run, attempt, "succeeded", cause="accepted", changes=changes
        )
        task = tasks.by_id(tx.connection, attempt.task_id)
        self.move_task(
            tx,
            run,
            task,
            "succeeded",
            cause="attempt accepted",
            changes={
                "accepted_attempt": accepted.id,
                "accepted_head": accepted.head_commit,
                "next_base": None,
                "next_base_source": None,
                "reason": None,
            },
            attempt_id=accepted.id,
        )


def _submitted(live: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in live if a.state in ("submitted", "verifying")]


def _worktrees_gone(run: Run, live: Sequence[Attempt]) -> str | None:
    """A file system that is not mounted must not be taken for work that is lost."""
    needed = [str(a.worktree_path) for a in live if _needs_worktree(a)]
    missing = [path for path in needed if not is_there(path)]
    folder = os.path.join(str(run.worktree_root), run.name)
    if missing and not os.path.isdir(folder):
        return f"the worktrees' folder {folder} is not there: mount it again, or make it"
    if len(missing) > MOST_MISSING_WORKTREES:
        return f"{len(missing)} worktrees in {folder} are missing at once: put them back"
    return None


def _needs_worktree(attempt: Attempt) -> bool:
    return attempt.worktree_path is not None and attempt.state in NEEDS_WORKTREE


def _lost(repository: Repository, attempt: Attempt) -> Verdict:
    """The worktree is gone. What was committed there is kept before the attempt ends."""
    reason = f"the worktree {attempt.worktree_path} is gone"
    head = repository.ref_commit(f"refs/heads/{attempt.branch}")
    if head is None or head == attempt.base_commit:
        return Verdict("lost", reason, {})
    late = f"refs/orch/late/{attempt.id}"
    repository.keep(late, head)
    return Verdict("lost", f"{reason}; its commits are kept at {late}", {})


def _objections(found: Found, task: Task) -> tuple[list[str], dict[str, Any]]:
    reasons: list[str] = []
    details: dict[str, Any] = {}
    if found.dirty_paths:
        reasons.append("dirty: not committed: " + ", ".join(found.dirty_paths[:10]))
        details["dirty_paths"] = list(found.dirty_paths)
    if found.head is None:
        reasons.append("base: HEAD names no commit")
    elif not found.contains_base:
        reasons.append("base: HEAD does not build on the base commit")
    elif found.commits_ahead == 0 and not task.allow_empty:
        reasons.append("empty: no commit on top of the base")
    return reasons, details
