"""Carrying out what a dispatch has chosen: the worktree, then the thread.

Every step may be done again after a crash; nobody is given a worktree before its thread is sent.
"""

import contextlib
import json
import sqlite3
from collections.abc import Collection
from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.transactions import Transaction

from ..domain import texts
from ..domain.config import config_of
from ..domain.limits import MAX_DELIVERIES
from ..domain.model import Attempt, Run, Task
from ..git import worktrees
from ..git.commands import FAILURES
from ..git.worktrees import Hold, Place
from ..store import attempts, runs, tasks
from ..store.attempts import Intent
from .equipping import Equipment, SetupFailed, equip
from .recounting import FirstMessage, Recounting
from .surroundings import command_environment

LATER = ("busy", "io_error", "outcome_unknown", "unsafe_link", *FAILURES)
"""What keeps something that was begun from being finished now, and may not do so the next time.
`doctor` tells of it; what else there is in the run must not have to wait for it."""

_CALLED_OFF = "it was cancelled before its worktree was there"


class Provisioning(Recounting):
    """The part of the scheduler that makes worktrees and sends threads."""

    def may_carry_out(self, run: Run, attempt_id: str) -> bool:
        """Whether the intent of an attempt is this process's, taking it over from a dead one."""
        with self.database.snapshot() as connection:
            intent = _intent_of(connection, run, attempt_id)
        return intent is not None and self._is_ours(intent)

    def _is_ours(self, intent: Intent) -> bool:
        if intent.owner == self.this_process():
            return True
        return self.is_abandoned(intent) and self._take_over(intent)

    def finish_intents(self, run: Run) -> int:
        """Finish the dispatches that a process which is gone has begun, and clear away after
        those that failed; returns how many.

        What cannot be finished now is left to the next time, and keeps nothing else from it.
        """
        with self.database.snapshot() as connection:
            begun = [
                (intent, attempts.get(connection, intent.attempt_id))
                for intent in attempts.open_intents(connection, run.id)
                if intent.kind == "dispatch" and intent.attempt_id is not None
            ]
        finished = sum(
            self._finish(run, intent, attempt) for intent, attempt in begun if attempt is not None
        )
        if run.repository is not None:
            with contextlib.suppress(InboxOrchError):  # its repository is not there now
                worktrees.forget_locks(self.repository(run), run.name)
        return finished

    def _finish(self, run: Run, intent: Intent, attempt: Attempt) -> bool:
        if attempt.state == "provision_failed":
            return self._take_over(intent) and self._clear_away(run, attempt)
        if not self._is_ours(intent):  # it is, too, when an earlier call here came to no end
            return False
        try:
            return self.provision(run, attempt).state != "allocating"
        except InboxOrchError as error:
            if error.code not in LATER:
                raise
            return False  # somebody is at it after all, say

    def _take_over(self, intent: Intent) -> bool:
        with self.database.transaction() as tx:
            return attempts.take_over_intent(
                tx.connection, intent.number, intent.owner, self.this_process()
            )

    def provision(self, run: Run, attempt: Attempt) -> Attempt:
        """Make the worktree and send the thread; on failure nothing is left behind.

        Doing it again after a crash at any point is safe: under the attempt's lock it is seen
        whether anybody was given the worktree, and only then is it made anew.
        Error `busy`: another process is at it.
        """
        if attempt.worktree_path is None:
            return self._carry_out(run, attempt, None)
        try:
            repository = self.repository(run)
        except InboxOrchError as error:
            return self._give_up(run, attempt, error, cleared=False)
        with worktrees.alone(repository, self._place(attempt)) as hold:
            return self._carry_out(run, attempt, hold)

    def _carry_out(self, run: Run, attempt: Attempt, hold: Hold | None) -> Attempt:
        """The same in the attempt's lock, which is kept until the outcome is written down."""
        with self.database.snapshot() as connection:
            task = tasks.by_id(connection, attempt.task_id)
            present = attempts.get(connection, attempt.id)
            intent = _intent_of(connection, run, attempt.id)
        assert present is not None
        mine = intent is not None and intent.owner == self.this_process()
        if present.state != "allocating" or not mine:
            return present
        if self._is_cancelled(run):
            cleared = hold is None or self._cleared(run, attempt)
            return self._failed(run, attempt, "cancelled", _CALLED_OFF, {}, cleared=cleared)
        try:
            if hold is not None:
                attempt = self._make_worktree(run, task, attempt, hold)
            text = self.first_message(run, task)
        except InboxOrchError as error:
            cleared = hold is None or self._cleared(run, attempt)
            return self._give_up(run, attempt, error, cleared=cleared)
        except SetupFailed as failure:
            cleared = self._cleared(run, attempt)
            if self._is_cancelled(run):
                return self._failed(run, attempt, "cancelled", _CALLED_OFF, {}, cleared=cleared)
            return self._failed(
                run, attempt, "setup_failed", str(failure), failure.details, cleared=cleared
            )
        return self._hand_out(run, task, attempt, text)

    def _make_worktree(self, run: Run, task: Task, attempt: Attempt, hold: Hold) -> Attempt:
        """Everything that a worker is to find there; returns the attempt with details of it."""
        repository = self.repository(run)
        if attempt.base_source == "merge":
            assert attempt.base_commit is not None
            repository.keep(f"refs/orch/base/{attempt.id}", attempt.base_commit)
        place, config = self._place(attempt), config_of(run)
        environment = command_environment(self.database, run, task, attempt, config, place.path)
        details = equip(
            self.database,
            repository,
            place,
            hold,
            Equipment(config, environment),
            is_wanted=lambda: self._is_wanted_still(run, attempt),
        )
        return attempt._replace(details=json.dumps(details)) if details else attempt

    def _is_wanted_still(self, run: Run, attempt: Attempt) -> bool:
        with self.database.snapshot() as connection:
            present = attempts.get(connection, attempt.id)
            mine = attempts.owns_intent(connection, attempt.id, "dispatch", self.this_process())
        wanted = mine and present is not None and present.state == "allocating"
        return wanted and not self._is_cancelled(run)

    def _is_cancelled(self, run: Run) -> bool:
        with self.database.snapshot() as connection:
            present = runs.get(connection, run.id)
        return present is not None and present.state == "cancelling"

    def call_off(self, run: Run, task_ids: Collection[str]) -> None:
        """Clear away what a process that is gone has begun for these tasks, instead of finishing
        it, as far as that can be done now."""
        with self.database.snapshot() as connection:
            begun = [
                (intent, attempts.get(connection, intent.attempt_id))
                for intent in attempts.open_intents(connection, run.id)
                if intent.kind == "dispatch" and intent.attempt_id is not None
            ]
        for intent, attempt in begun:
            if attempt is None or attempt.task_id not in task_ids:
                continue
            if attempt.state != "allocating" or not self._is_ours(intent):
                continue
            try:
                cleared = attempt.worktree_path is None or self._cleared_alone(run, attempt)
            except InboxOrchError as error:
                if error.code not in LATER:
                    raise
                continue  # what cannot be cleared away now is for whoever finishes it
            self._failed(run, attempt, "cancelled", _CALLED_OFF, {}, cleared=cleared)

    def _hand_out(self, run: Run, task: Task, attempt: Attempt, text: FirstMessage) -> Attempt:
        with self.database.transaction() as tx:
            present = self._confirmed(tx, attempt, "done")
            if present is None:
                return self._as_it_is(tx, attempt)
            changes = {} if attempt.details is None else {"details": attempt.details}
            provisioned = self.move_attempt(
                tx, run, present, "provisioned", cause="the worktree is there", changes=changes
            )
            return self._offer(tx, run, task, provisioned, text)

    def _give_up(
        self, run: Run, attempt: Attempt, error: InboxOrchError, *, cleared: bool
    ) -> Attempt:
        return self._failed(run, attempt, error.code, error.message, error.details, cleared=cleared)

    def _failed(
        self,
        run: Run,
        attempt: Attempt,
        code: str,
        reason: str,
        details: dict[str, Any],
        *,
        cleared: bool,
    ) -> Attempt:
        """The attempt has failed. What could not be cleared away stays written down."""
        with self.database.transaction() as tx:
            present = self._confirmed(tx, attempt, "undone" if cleared else None)
            if present is None:
                return self._as_it_is(tx, attempt)
            changes = {
                "reason": reason[:1000],
                "details": json.dumps({"code": code, **details}),
            }
            return self.end_attempt(
                tx,
                run,
                present,
                "provision_failed",
                cause=code,
                changes=changes,
                called_off=code == "cancelled",
            )

    def _confirmed(self, tx: Transaction, attempt: Attempt, outcome: str | None) -> Attempt | None:
        """Close the intent, if there is an outcome of it; None when another leader has taken it
        over meanwhile: what becomes of the attempt is that one's affair."""
        present = self._as_it_is(tx, attempt)
        if present.state != "allocating":
            return None
        me = self.this_process()
        if outcome is None:
            mine = attempts.owns_intent(tx.connection, attempt.id, "dispatch", me)
        else:
            mine = attempts.close_intent(
                tx.connection, attempt.id, "dispatch", outcome, me, tx.now.wall_ms
            )
        return present if mine else None

    def _as_it_is(self, tx: Transaction, attempt: Attempt) -> Attempt:
        present = attempts.get(tx.connection, attempt.id)
        assert present is not None
        return present

    def _clear_away(self, run: Run, attempt: Attempt) -> bool:
        """After an attempt that failed to be provisioned; False when that cannot be done now."""
        try:
            if not self._cleared_alone(run, attempt):
                return False
        except InboxOrchError:
            return False
        with self.database.transaction() as tx:
            me = self.this_process()
            return attempts.close_intent(
                tx.connection, attempt.id, "dispatch", "undone", me, tx.now.wall_ms
            )

    def _cleared_alone(self, run: Run, attempt: Attempt) -> bool:
        """Take away what was made, in the attempt's lock; error `busy`."""
        with worktrees.alone(self.repository(run), self._place(attempt)):
            return self._cleared(run, attempt)

    def _cleared(self, run: Run, attempt: Attempt) -> bool:
        """Take away, in the attempt's lock, what was made; False when that fails too."""
        try:
            repository = self.repository(run)
            worktrees.unmake(repository, self._place(attempt))
            if attempt.base_source == "merge":
                assert attempt.base_commit is not None
                repository.drop(f"refs/orch/base/{attempt.id}", attempt.base_commit)
        except InboxOrchError:
            return False
        return True

    def _offer(
        self, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: FirstMessage
    ) -> Attempt:
        """Send the thread and say so, in one transaction."""
        database, thread_id = self.database, new_id()
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
            # Whoever claims by itself has seen no dispatch: the rules go with the thread.
            "brief": self._brief(run, task, attempt, thread_id),
        }
        payload = {name: value for name, value in facts.items() if value is not None}
        sent = self.bus.send(
            to=attempt.mailbox,
            subject=f"{task.key}: {task.title}"[:200],
            body=text.body,
            files=text.files,
            payload=json.dumps(payload),
            priority=task.priority,
            max_deliveries=MAX_DELIVERIES,
            agent=run.leader,
            thread_id=thread_id,
        )
        return self.move_attempt(
            tx,
            run,
            attempt,
            "offered",
            cause="the thread is sent",
            changes={"thread_id": sent.thread.id},
        )

    def _brief(self, run: Run, task: Task, attempt: Attempt, thread_id: str) -> str:
        return texts.brief(
            run=run.name,
            task=task.key,
            attempt=attempt.number,
            thread=thread_id,
            mailbox=attempt.mailbox,
            worktree=attempt.worktree_path,
            branch=attempt.branch,
            base_commit=attempt.base_commit,
            database=self.database.layout.database,
            database_id=self.database.id,
        )

    def _place(self, attempt: Attempt) -> Place:
        assert attempt.branch and attempt.worktree_path and attempt.base_commit
        reason = f"orch {self.database.id} {attempt.id}"
        return Place(attempt.branch, attempt.worktree_path, attempt.base_commit, reason)

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
            shape["brief"] = self._brief(run, task, attempt, attempt.thread_id)
        return shape


def _intent_of(connection: sqlite3.Connection, run: Run, attempt_id: str) -> Intent | None:
    """What was begun for an attempt and is not confirmed."""
    found = attempts.open_intents(connection, run.id)
    return next((intent for intent in found if intent.attempt_id == attempt_id), None)
