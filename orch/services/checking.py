"""Running the checks of submitted attempts, and deciding by what they come to.

A verification belongs to one process at a time: that is written down, and taken over when the
process is gone. How the worktree stood before the first check is known by then; only the checks
that have not passed are run again.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from inbox_orch.shared import processes
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.signals import Signalled
from inbox_orch.shared.store.engine import Transaction

from ..domain.checks import Checked, brief_command, objection, report
from ..domain.config import config_of
from ..domain.limits import DEFAULT_CHECK_SECONDS, FOREIGN_SECONDS
from ..domain.masking import masked
from ..domain.model import Attempt, Run, Task
from ..git.repository import is_there
from ..store import attempts, tasks
from ..store.attempts import Intent
from .surroundings import command_environment, secrets_of
from .turns import finished
from .verifying import Verdict, Verifying, checks_of, details_with, needs_checks, was_seen

if TYPE_CHECKING:
    from .running import Check, Outcome

VERIFIER_LOOK_MS = 2000
"""So often a wait looks whether another process that runs checks is still there."""
_SLACK_SECONDS = 60.0

# What this process is verifying now. An intent of its own that is not here was left behind by an
# error, and nobody is at it.
AT_WORK: set[str] = set()


class Checking(Verifying):
    """The part of the scheduler that runs checks."""

    def check_all(self, run: Run) -> int:
        """Run the checks of every submitted attempt that nobody verifies; returns how many were
        decided. Errors: see `check_next`."""
        decided = 0
        while (one := self.check_next(run)) is not None:
            decided += one
        return decided

    def check_next(self, run: Run, starts_before_ms: float | None = None) -> bool | None:
        """`checking`, without a turn for anything else."""
        return finished(self.checking(run, starts_before_ms))

    def checking(
        self, run: Run, starts_before_ms: float | None = None
    ) -> Generator[None, None, bool | None]:
        """Run the checks of the oldest such attempt, and give the caller a turn now and then;
        returns whether it was decided, or None when there is none. To close the generator puts
        the attempt back.

        No check starts once the machine's monotonic clock is at `starts_before_ms`; those that
        have passed by then are not run again. SIGINT and SIGTERM end the check and put the
        attempt back, and then raise `Signalled`.
        Errors: `io_error` when a check cannot be started; those of every write, and of git. The
        attempt is put back then, too.
        """
        for attempt, task in self.submitted(run):
            if not (needs_checks(attempt, task) and was_seen(attempt)):
                continue
            if self._time_is_over(starts_before_ms):
                return None
            if not is_there(str(attempt.worktree_path)):
                verdict = self.gone(run, attempt) if self._has_repository(run) else None
                if verdict is not None and self.decide(run, attempt, verdict):
                    return True
            elif (begun := self._begin_checks(run, attempt)) is not None:
                return (yield from self._carry_on(run, task, begun, starts_before_ms))
        return None

    def unchecked(self, run: Run) -> int:
        """How many submitted attempts wait for their checks."""
        return sum(needs_checks(attempt, task) for attempt, task in self.submitted(run))

    def put_back_abandoned(self, run: Run) -> int:
        """Let others verify what a process that is gone has begun to verify; returns how many
        attempts that are."""
        with self.database.snapshot() as snapshot:
            begun = [
                (intent, attempts.get(snapshot, intent.attempt_id))
                for intent in attempts.open_intents(snapshot, run.id)
                if intent.kind == "verify" and intent.attempt_id is not None
            ]
        return sum(
            self._put_back_if_abandoned(run, intent, attempt)
            for intent, attempt in begun
            if attempt is not None
        )

    # -- one verification --------------------------------------------------------------------

    def _begin_checks(self, run: Run, attempt: Attempt) -> Attempt | None:
        with self.database.transaction() as tx:
            present = attempts.get(tx, attempt.id)
            assert present is not None
            if present.state != "submitted":
                return None  # another leader was quicker
            moved = self.move_attempt(tx, run, present, "verifying", cause="its checks are run")
            self.open_verification(tx, run, attempt, {})
            return moved

    def open_verification(
        self, tx: Transaction, run: Run, attempt: Attempt, data: dict[str, Any]
    ) -> None:
        """Write down that this process is at it, until `close_verification`."""
        AT_WORK.add(attempt.id)
        attempts.open_intent(
            tx,
            run_id=run.id,
            attempt_id=attempt.id,
            kind="verify",
            data=data,
            owner=self.this_process(),
            now_ms=tx.now.wall_ms,
        )

    def _carry_on(
        self, run: Run, task: Task, attempt: Attempt, starts_before_ms: float | None
    ) -> Generator[None, None, bool]:
        """Run what is left to run, and decide; whatever goes wrong, the attempt is put back."""
        from .running import Interrupted, Withdrawn

        try:
            results = yield from self.run_checks(
                run,
                task,
                attempt,
                str(attempt.worktree_path),
                passed=[c for c in checks_of(attempt) if c.passed],
                note=lambda results: self._note_results(attempt, results),
                wanted=lambda: self._is_wanted(attempt),
                starts_before_ms=starts_before_ms,
            )
            if results is not None:
                return self._conclude(run, attempt, results)
            self._put_back(run, attempt, "the wait is over")
            return False
        except Withdrawn as withdrawn:
            self._put_back(run, attempt, str(withdrawn))
            return False
        except Interrupted as interrupted:
            # Whoever waits goes on after `busy`, but not after this.
            with contextlib.suppress(InboxOrchError):
                self._put_back(run, attempt, "the verification was interrupted")
            raise Signalled(interrupted.number) from None
        except GeneratorExit:
            self._put_back(run, attempt, "the verification was left")
            raise
        except BaseException as error:
            with contextlib.suppress(InboxOrchError):
                self._put_back(run, attempt, f"the verification failed: {error}"[:300])
            raise
        finally:
            AT_WORK.discard(attempt.id)

    def run_checks(
        self,
        run: Run,
        task: Task,
        attempt: Attempt,
        folder: str,
        *,
        passed: Sequence[Checked],
        note: Callable[[Sequence[Checked]], bool],
        wanted: Callable[[], bool],
        starts_before_ms: float | None,
    ) -> Generator[None, None, list[Checked] | None]:
        """Run the checks of a task that have not `passed`, in order, up to the first that fails,
        and give the caller a turn now and then; returns what all have come to, None when the time
        was over before the last one.

        `note` is called with all results after each, and says whether to go on; so does `wanted`,
        now and then while a check runs. Both may raise. Raises `Withdrawn`, `Interrupted`.
        """
        from .running import Interrupted, Runner, Withdrawn

        results = list(passed)
        with Runner(self.database.notice) as runner:
            for command in task.checks[len(passed) :]:
                if len(results) > len(passed) and self._time_is_over(starts_before_ms):
                    return None
                name = f"check-{len(results) + 1}.txt"
                check = self._check(run, task, attempt, folder, command, name)
                try:
                    outcome = yield from runner.running(
                        check, begins=lambda group: self._note_group(attempt, group), wanted=wanted
                    )
                except OSError as error:
                    raise self._not_started(check, error) from error
                results.append(self._result(check, outcome))
                if not note(results):
                    raise Withdrawn("another leader has taken it over")
                if runner.told_to_end is not None:
                    raise Interrupted(runner.told_to_end)
                if not results[-1].passed:
                    break
        return results

    def _check(
        self, run: Run, task: Task, attempt: Attempt, folder: str, command: str, name: str
    ) -> "Check":
        from .running import Check

        config = config_of(run)
        return Check(
            command,
            folder,
            command_environment(self.database, run, task, attempt, config, folder),
            task.limits.check_seconds or DEFAULT_CHECK_SECONDS,
            secrets_of(config),
            name,
        )

    def _result(self, check: "Check", outcome: "Outcome") -> Checked:
        """Keep the output beside the database."""
        stored = self.bus.artifacts.add_bytes(check.output, outcome.content)
        result = Checked(
            masked(check.command, check.secrets),
            outcome.ending,
            outcome.seconds,
            outcome.tail,
            outcome.output_bytes,
            stored.name,
            stored.sha256,
            stored.size,
        )
        # What nobody has to act on is in the artifact alone.
        return result._replace(output_tail="") if result.passed else result

    def _not_started(self, check: "Check", error: OSError) -> Exception:
        from .running import Withdrawn

        if not is_there(check.folder):
            return Withdrawn("its worktree has gone away")
        command = brief_command(masked(check.command, check.secrets))
        return InboxOrchError(
            "io_error",
            f"the check `{command}` could not be started: {error.strerror}",
            hint="the attempt stays submitted; try again once that is put right",
            details={"folder": check.folder},
        )

    # -- what is written down ----------------------------------------------------------------

    def _note_group(self, attempt: Attempt, group: int) -> bool:
        """So that whoever takes the verification over can see to the check that still runs."""
        data = {"group": group, "group_started": processes.start_time(group)}
        with self.database.transaction(durable=False) as tx:
            me = self.this_process()
            return attempts.note_in_intent(tx, attempt.id, "verify", data, me)

    def _note_results(self, attempt: Attempt, results: Sequence[Checked]) -> bool:
        with self.database.transaction() as tx:
            present = attempts.get(tx, attempt.id)
            assert present is not None
            mine = attempts.owns_intent(tx, attempt.id, "verify", self.this_process())
            details = details_with(present, checks=[r.as_json() for r in results])
            columns = {"details": details, "updated_at": tx.now.wall_ms}
            return mine and attempts.update(tx, attempt.id, columns, expected_state="verifying")

    def _is_wanted(self, attempt: Attempt) -> bool:
        """Whether the attempt is being verified still, and by this process."""
        try:
            with self.database.snapshot() as snapshot:
                present = attempts.get(snapshot, attempt.id)
                mine = attempts.owns_intent(snapshot, attempt.id, "verify", self.this_process())
        except InboxOrchError as error:
            if error.code != "busy":
                raise
            return True  # it cannot be told just now
        return mine and present is not None and present.state == "verifying"

    def _conclude(self, run: Run, attempt: Attempt, results: Sequence[Checked]) -> bool:
        """Accept or reject, and tell it on the thread with the outputs, in one transaction."""
        reason = objection(results)
        with self.database.transaction() as tx:
            if not self.close_verification(tx, attempt, "done"):
                return False
            present = attempts.get(tx, attempt.id)
            assert present is not None
            if present.state != "verifying":
                return False
            verdict = "succeeded" if reason is None else "rejected"
            text = f"Attempt {attempt.number} {'is accepted' if reason is None else verdict}."
            message = self.tell(run, attempt, f"{text}\n\n{report(results)}", results)
            details = details_with(present, verdict_message=message)
            self.settle(tx, run, present, Verdict(verdict, reason, {"details": details}))
            return True

    def tell(self, run: Run, attempt: Attempt, text: str, results: Sequence[Checked]) -> str:
        """Write what the checks came to on the attempt's thread, with their outputs; returns the
        message's id."""
        from inbox_orch.shared.artifacts import Stored

        files = [Stored(r.artifact, r.artifact_sha256, r.artifact_bytes) for r in results]
        # Of an earlier process's, one may have been cleared away since.
        kept = [file for file in files if self.bus.artifacts.has(file)]
        written = self.bus.reply(str(attempt.thread_id), body=text, agent=run.leader, files=kept)
        assert written.message is not None
        return str(written.message.id)

    def close_verification(self, tx: Transaction, attempt: Attempt, outcome: str) -> bool:
        """False when another process has taken it over."""
        me = self.this_process()
        return attempts.close_intent(tx, attempt.id, "verify", outcome, me, tx.now.wall_ms)

    def _put_back(self, run: Run, attempt: Attempt, cause: str) -> None:
        """Nothing was decided, and nothing counts; what has passed stays written down."""
        with self.database.transaction() as tx:
            if self.close_verification(tx, attempt, "undone"):
                present = attempts.get(tx, attempt.id)
                assert present is not None
                if present.state == "verifying":
                    self.move_attempt(tx, run, present, "submitted", cause=cause)

    # -- taking over -------------------------------------------------------------------------

    def _put_back_if_abandoned(self, run: Run, intent: Intent, attempt: Attempt) -> bool:
        if not self._is_verification_abandoned(intent, attempt):
            return False
        end_orphan(intent, self.database.clock.now().boot_id)
        with self.database.transaction() as tx:
            me = self.this_process()
            if not attempts.take_over_intent(tx, intent.number, intent.owner, me):
                return False
        try:
            self.clear_borrowed(run, intent, attempt)
        except InboxOrchError:
            return False  # it is this process's now; the next time may do better
        self._put_back(run, attempt, "the verifier died")
        return True

    def clear_borrowed(self, run: Run, intent: Intent, attempt: Attempt) -> None:
        """What else the dead process has left; see `adopting`."""

    def _is_verification_abandoned(self, intent: Intent, attempt: Attempt) -> bool:
        if intent.owner == self.this_process():
            return attempt.id not in AT_WORK
        with self.database.snapshot() as snapshot:
            task = tasks.by_id(snapshot, attempt.task_id)
        each = (task.limits.check_seconds or DEFAULT_CHECK_SECONDS) + _SLACK_SECONDS
        return self.is_abandoned(intent, FOREIGN_SECONDS + len(task.checks) * each)

    # -- helpers -----------------------------------------------------------------------------

    def _has_repository(self, run: Run) -> bool:
        try:
            self.repository(run)
        except InboxOrchError:
            return False
        return True

    def _time_is_over(self, starts_before_ms: float | None) -> bool:
        now = self.database.clock.now().monotonic_ms
        return starts_before_ms is not None and now >= starts_before_ms


def end_orphan(intent: Intent, boot_id: str) -> None:
    """See to the check of a process that is gone, in this boot: the guardian of the one that died
    ends it, and may be at it still; two must not run in one worktree."""
    from .running import await_end, end_group

    group, owner = intent.data.get("group"), intent.owner
    seen_from_here = (owner.boot_id, owner.namespace) == (boot_id, processes.namespace())
    if group is None or not seen_from_here:
        return
    started = processes.start_time(group)
    if started is not None and started == intent.data.get("group_started"):
        end_group(group)
    elif started is None:
        await_end(group)
