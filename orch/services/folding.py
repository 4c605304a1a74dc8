"""What happened on the bus, carried over to attempts and tasks.

Folding reads the thread's present state and may skip states on the way. It runs nothing: what
a worker says is done is only `submitted`.
"""

from typing import Any

from inbox_orch.inbox.domain.model import Thread
from inbox_orch.shared.store.engine import Transaction

from ..domain import states
from ..domain.config import config_of
from ..domain.model import Attempt, Run
from ..domain.retries import consequence
from ..store import attempts, tasks
from .stopping import Stopping


class Folding(Stopping):
    """The part of the scheduler that follows the threads."""

    def fold(self, run: Run) -> int:
        """Carry over what has changed on the threads of live attempts; returns how many had.

        Each attempt is one transaction, guarded by the state that was seen, so that two leaders
        may fold at once.
        """
        self.reap(run)
        changed = self._follow_all(run)
        stopped = self.stop_late(run) + self._abort(run) + self.sweep_again(run)
        if stopped:
            # Those that nobody holds have ended with that.
            changed += self._follow_all(run)
        return changed + stopped + self.close_cancelled(run)

    def _follow_all(self, run: Run) -> int:
        changed = 0
        for attempt, thread in self._with_threads(run):
            if attempt.state == "ending":
                changed += self._settle_ending(run, attempt, thread)
            elif attempt.state in states.WITH_WORKER:
                target = states.attempt_state_for(thread.state, thread.reason)
                if target != attempt.state:
                    changed += self.follow(run, attempt.id)
        return changed

    def reap(self, run: Run) -> None:
        """Notice leases of this run that have run out."""
        with self.database.snapshot() as snapshot:
            live = attempts.live_of_run(snapshot, run.id)
        mailboxes = tuple(dict.fromkeys(a.mailbox for a in live if a.thread_id is not None))
        if mailboxes:
            self.bus.reap(mailboxes)

    def end_attempt(
        self,
        tx: Transaction,
        run: Run,
        attempt: Attempt,
        ended_as: str,
        *,
        cause: str,
        changes: dict[str, Any] | None = None,
        called_off: bool = False,
    ) -> Attempt:
        """An attempt ends without success; its task gets another try, or has failed. One that
        was `called_off` before anybody had it counts nothing: its task is pending again."""
        import random

        ended = self.move_attempt(tx, run, attempt, ended_as, cause=cause, changes=changes)
        task = tasks.by_id(tx, attempt.task_id)
        outcome = consequence(
            task,
            "cancelled" if called_off else ended_as,
            fatal=ended.fatal,
            jitter=random.random(),
            goes_back=called_off or ended.goes_back,
        )
        columns: dict[str, Any] = {
            "work_failures": outcome.work_failures,
            "infra_failures": outcome.infra_failures,
            "reason": f"attempt {attempt.number} {ended_as}: {ended.reason or cause}"[:1000],
        }
        if outcome.delay_seconds is not None:
            columns["not_before"] = tx.now.wall_ms + int(outcome.delay_seconds * 1000)
        self.move_task(
            tx,
            run,
            task,
            outcome.state,
            cause=f"attempt {ended_as}",
            changes=columns,
            attempt_id=attempt.id,
        )
        if outcome.state == "failed" and run.on_failure == "abort":
            self._cancel_the_others(tx, run, task.key)
        return ended

    def _abort(self, run: Run) -> int:
        """Policy `abort`, for attempts that were being provisioned when the task failed."""
        if run.on_failure != "abort":
            return 0
        with self.database.snapshot() as snapshot:
            failed = tasks.failed_of_run(snapshot, run.id)
            running = [
                a for a in attempts.live_of_run(snapshot, run.id) if a.state in states.WITH_WORKER
            ]
        if not failed or not running:
            return 0
        with self.database.transaction() as tx:
            # One that was retried meanwhile stops nobody any more.
            failed = tasks.failed_of_run(tx, run.id)
            return self._cancel_the_others(tx, run, failed[0]) if failed else 0

    # -- one attempt -------------------------------------------------------------------------

    def _with_threads(self, run: Run) -> list[tuple[Attempt, Thread]]:
        with self.database.snapshot() as snapshot:
            live = [a for a in attempts.live_of_run(snapshot, run.id) if a.thread_id is not None]
            threads = self.bus.threads([str(a.thread_id) for a in live])
        return [(a, threads[str(a.thread_id)]) for a in live]

    def follow(self, run: Run, attempt_id: str) -> bool:
        """Carry one attempt over to where its thread is; returns whether it was elsewhere."""
        with self.database.transaction() as tx:
            attempt = attempts.get(tx, attempt_id)
            assert attempt is not None
            if attempt.state not in states.WITH_WORKER:
                return False  # another leader was quicker
            thread = self.bus.threads([str(attempt.thread_id)])[str(attempt.thread_id)]
            target = states.attempt_state_for(thread.state, thread.reason)
            if target == attempt.state:
                return False
            self._move_with_thread(tx, run, attempt, thread, target)
            return True

    def _move_with_thread(
        self, tx: Transaction, run: Run, attempt: Attempt, thread: Thread, target: str
    ) -> None:
        cause = f"thread {thread.state}"
        if target == "ending":
            self.begin_ending(tx, run, attempt, "cancelled", cause)
        elif target in ("failed", "lost"):
            self.end_attempt(
                tx,
                run,
                attempt,
                target,
                cause=cause,
                changes={"fatal": thread.fatal, "reason": self._last_words(thread)},
            )
            return
        else:
            self.move_attempt(tx, run, attempt, target, cause=cause)
        self.task_follows(tx, run, attempt, target)

    def _last_words(self, thread: Thread) -> str:
        """The beginning of the message with which a thread ended, on one line."""
        if thread.reason == "exhausted":
            return f"no delivery left after {thread.deliveries} (workers died or handed it back)"
        # Anybody may have written on it since.
        failure = self.bus.last_message(thread.id, "failure")
        return "" if failure is None else " ".join((failure.body or "").split())[:300]

    # -- endings -----------------------------------------------------------------------------

    def _settle_ending(self, run: Run, attempt: Attempt, thread: Thread) -> bool:
        """An ending attempt has ended once nobody can be working on it any more."""
        grace_over = (thread.finished_at or 0) + config_of(run).cancel_grace_seconds * 1000
        if (
            self.bus.cancel_settles_at(thread.id) is not None
            and self.database.clock.now().wall_ms < grace_over
        ):
            return False
        with self.database.transaction() as tx:
            present = attempts.get(tx, attempt.id)
            assert present is not None
            if present.state != "ending":
                return False
            assert present.ending_as is not None
            self.end_attempt(tx, run, present, present.ending_as, cause="nobody works on it")
            return True

    def _cancel_the_others(self, tx: Transaction, run: Run, failed_key: str) -> int:
        """Policy `abort`: what still runs is cancelled in the transaction of the failure.

        What has ended on the bus and is not folded in yet keeps the end that it came to.
        """
        cause = f"task {failed_key} failed, and the run's policy is abort"
        others = attempts.live_of_run(tx, run.id)
        running = [other for other in others if other.state in states.WITH_WORKER]
        return sum(self.stop(tx, run, other, "cancelled", cause) for other in running)
