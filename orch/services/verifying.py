"""What workers say is done, looked at: commits, what is not committed, the base.

Git is asked outside of any transaction; the verdict is written guarded by the state that it was
found for.
"""

import json
from typing import Any, NamedTuple

from inbox_orch.shared.database import Transaction
from inbox_orch.shared.errors import InboxOrchError

from ..domain.model import Attempt, Run, Task
from ..git.repository import Found
from ..store import attempts, tasks
from .folding import Folding


class Verdict(NamedTuple):
    """Whether a submitted attempt is accepted, and what was seen."""

    state: str
    reason: str | None
    changes: dict[str, Any]


class Verifying(Folding):
    """The part of the scheduler that accepts or rejects."""

    def verify(self, run: Run) -> int:
        """Decide on every submitted attempt of a run; returns how many were decided."""
        with self.database.snapshot() as connection:
            submitted = [
                (a, tasks.by_id(connection, a.task_id))
                for a in attempts.live_of_run(connection, run.id)
                if a.state in ("submitted", "verifying")
            ]
        return sum(self._verify_one(run, attempt, task) for attempt, task in submitted)

    def _verify_one(self, run: Run, attempt: Attempt, task: Task) -> bool:
        verdict = self._verdict(run, attempt, task)
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

    def _verdict(self, run: Run, attempt: Attempt, task: Task) -> Verdict:
        if attempt.worktree_path is None or attempt.base_commit is None:
            return Verdict("succeeded", None, {})
        repository = self.repository(run)
        try:
            found = repository.look_at(attempt.worktree_path, attempt.base_commit)
        except InboxOrchError as error:
            if error.code != "git_failed":
                raise
            # What cannot be examined cannot be accepted; nor may it hold the run up for ever.
            return Verdict("rejected", f"unreadable: {error.message}"[:1000], {})
        if found is None:
            return Verdict("lost", f"the worktree {attempt.worktree_path} is gone", {})
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
                "reason": None,
            },
            attempt_id=accepted.id,
        )


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
