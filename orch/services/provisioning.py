"""Carrying out what a dispatch has chosen: the worktree, then the thread.

Every step may be done again after a crash; nobody is given a worktree before its thread is sent.
"""

import json
from typing import Any

from inbox_orch.shared.database import Transaction
from inbox_orch.shared.errors import InboxOrchError

from ..domain import texts
from ..domain.limits import MAX_DELIVERIES
from ..domain.model import Attempt, Run, Task
from ..git import worktrees
from ..git.worktrees import Place
from ..store import attempts, tasks
from .verifying import Verifying


class Provisioning(Verifying):
    """The part of the scheduler that makes worktrees and sends threads."""

    def may_carry_out(self, run: Run, attempt_id: str) -> bool:
        """Whether the intent of an attempt is this process's, taking it over from a dead one."""
        me = self.this_process()
        with self.database.snapshot() as connection:
            found = [
                i for i in attempts.open_intents(connection, run.id) if i.attempt_id == attempt_id
            ]
        if not found:
            return False
        intent = found[0]
        if intent.owner == me:
            return True
        if not self.is_gone(intent.owner):
            return False
        with self.database.transaction() as tx:
            return attempts.take_over_intent(tx.connection, intent.number, intent.owner, me)

    def finish_intents(self, run: Run) -> int:
        """Finish the dispatches that a process which is gone has begun; returns how many."""
        with self.database.snapshot() as connection:
            intents = attempts.open_intents(connection, run.id)
        finished = 0
        for intent in intents:
            if intent.kind != "dispatch" or intent.attempt_id is None:
                continue
            if self.is_gone(intent.owner) and self.may_carry_out(run, intent.attempt_id):
                with self.database.snapshot() as connection:
                    attempt = attempts.get(connection, intent.attempt_id)
                assert attempt is not None
                self.provision(run, attempt)
                finished += 1
        return finished

    def provision(self, run: Run, attempt: Attempt) -> Attempt:
        """Make the worktree and send the thread; on failure nothing is left behind.

        Doing it again after a crash at any point is safe: the worktree is made anew, since
        nobody was given it before the thread was sent.
        """
        with self.database.snapshot() as connection:
            task = tasks.by_id(connection, attempt.task_id)
        try:
            if attempt.worktree_path is not None:
                self._make_worktree(run, attempt)
            text = texts.task_text(task.title, task.body, self._earlier(run, task))
        except InboxOrchError as error:
            return self._give_up(run, attempt, error)
        with self.database.transaction() as tx:
            present = attempts.get(tx.connection, attempt.id)
            assert present is not None
            if present.state != "allocating":
                return present
            provisioned = self.move_attempt(
                tx, run, present, "provisioned", cause="the worktree is there"
            )
            offered = self._offer(tx, run, task, provisioned, text)
            attempts.close_intent(tx.connection, attempt.id, "dispatch", "done", tx.now.wall_ms)
            return offered

    def _make_worktree(self, run: Run, attempt: Attempt) -> None:
        repository = self.repository(run)
        if attempt.base_source == "merge":
            assert attempt.base_commit is not None
            repository.keep(f"refs/orch/base/{attempt.id}", attempt.base_commit)
        worktrees.make(repository, self._place(attempt))

    def _give_up(self, run: Run, attempt: Attempt, error: InboxOrchError) -> Attempt:
        if attempt.worktree_path is not None and run.repository is not None:
            repository = self.repository(run)
            worktrees.unmake(repository, self._place(attempt))
            if attempt.base_source == "merge":
                assert attempt.base_commit is not None
                repository.drop(f"refs/orch/base/{attempt.id}", attempt.base_commit)
        with self.database.transaction() as tx:
            present = attempts.get(tx.connection, attempt.id)
            assert present is not None
            if present.state != "allocating":
                return present
            attempts.close_intent(tx.connection, attempt.id, "dispatch", "undone", tx.now.wall_ms)
            return self.end_attempt(
                tx,
                run,
                present,
                "provision_failed",
                cause=error.code,
                changes={"reason": error.message[:1000]},
            )

    def _offer(self, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: str) -> Attempt:
        """Send the thread and say so, in one transaction."""
        database = self.database
        facts = {
            "run": run.name,
            "task": task.key,
            "attempt": attempt.number,
            "attempt_id": attempt.id,
            "worktree": attempt.worktree_path,
            "branch": attempt.branch,
            "base_commit": attempt.base_commit,
            "database": database.layout.database,
            "database_id": database.id,
        }
        payload = {name: value for name, value in facts.items() if value is not None}
        sent = self.bus.send(
            to=attempt.mailbox,
            subject=f"{task.key}: {task.title}"[:200],
            body=text,
            payload=json.dumps(payload),
            priority=task.priority,
            max_deliveries=MAX_DELIVERIES,
            agent=run.leader,
        )
        return self.move_attempt(
            tx,
            run,
            attempt,
            "offered",
            cause="the thread is sent",
            changes={"thread_id": sent.thread.id},
        )

    def _place(self, attempt: Attempt) -> Place:
        assert attempt.branch and attempt.worktree_path and attempt.base_commit
        reason = f"orch {self.database.id} {attempt.id}"
        return Place(attempt.branch, attempt.worktree_path, attempt.base_commit, reason)

    def _earlier(self, run: Run, task: Task) -> list[str]:
        """What earlier attempts came to, for the next worker to read."""
        with self.database.snapshot() as connection:
            ended = [a for a in attempts.of_task(connection, task.id) if not a.live]
        return [self._account_of(run, attempt) for attempt in ended]

    def _account_of(self, run: Run, attempt: Attempt) -> str:
        lines = [f"Attempt {attempt.number}: {attempt.state}. {attempt.reason or ''}".rstrip()]
        if attempt.thread_id is not None:
            lines += [
                f"{m.kind} by {m.sender}: {m.body}"
                for m in self.bus.messages(attempt.thread_id)[1:]
                if m.kind in ("question", "reply", "failure", "result") and m.body
            ]
        if attempt.branch is not None and attempt.base_commit is not None:
            head = attempt.head_commit or f"refs/heads/{attempt.branch}"
            stat = self.repository(run).change_summary(head, attempt.base_commit)
            if stat:
                lines.append(f"Its branch {attempt.branch} has:\n{stat}")
        return "\n".join(lines)

    # -- what a worker needs -----------------------------------------------------------------

    def handed_out(self, run: Run, attempt: Attempt) -> dict[str, Any]:
        """An attempt with the brief and everything else that a worker needs."""
        with self.database.snapshot() as connection:
            task = tasks.by_id(connection, attempt.task_id)
        layout = self.database.layout
        shape = attempt.as_json() | {
            "key": task.key,
            "db": layout.database,
            "db_id": self.database.id,
            "brief": None,
        }
        if attempt.thread_id is not None:
            shape["brief"] = texts.brief(
                run=run.name,
                task=task.key,
                attempt=attempt.number,
                thread=attempt.thread_id,
                mailbox=attempt.mailbox,
                worktree=attempt.worktree_path,
                branch=attempt.branch,
                base_commit=attempt.base_commit,
                database=layout.database,
                database_id=self.database.id,
            )
        return shape
