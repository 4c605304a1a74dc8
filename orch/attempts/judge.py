"""Running the checks of submitted attempts, and deciding by what they come to.

A verification belongs to one process at a time: that is written down, and taken over when the
process is gone. How the worktree stood before the first check is known by then; only the checks
that have not passed are run again.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.engine import Session, Transaction

from ..gates.checks import Checked, objection, report
from ..gates.orphans import end_orphan, facts_of
from ..gates.spec import GateSpec, NotStarted, limit_seconds, patience_seconds
from ..gates.surroundings import command_environment
from ..gates.turns import finished
from ..git.repository import is_there
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import borrow, keep, kinds, moving, verify
from . import rows as attempts
from .keep import AT_WORK, close_verification, open_verification
from .provision import LATER
from .rows import Details, details_with
from .verify import Verdict, checks_of, needs_checks, was_seen


def check_all(desk: Desk, run: Run) -> int:
    """Run the checks of every submitted attempt that is not being verified, and the gates of every
    blueprint that is at them; returns how many were decided. Errors: see `check_next`."""
    decided = 0
    while (one := check_next(desk, run)) is not None:
        decided += one
    return decided


def check_next(desk: Desk, run: Run, starts_before_ms: float | None = None) -> bool | None:
    """`checking`, without a turn for anything else: of a plain task, else of a blueprint."""
    decided = finished(checking(desk, run, starts_before_ms))
    if decided is not None:
        return decided
    return finished(checking(desk, run, starts_before_ms, staged=True))


def checking(
    desk: Desk, run: Run, starts_before_ms: float | None = None, *, staged: bool = False
) -> Generator[None, None, bool | None]:
    """Run the checks of the oldest such attempt, or with `staged` the gates of the oldest that
    goes by a blueprint, and give the caller a turn now and then; returns whether it was decided,
    or None when there is none. To close the generator puts the attempt back.

    No check starts once the machine's monotonic clock is at `starts_before_ms`; those that
    have passed by then are not run again. SIGINT and SIGTERM end the check and put the
    attempt back, and then raise `Signalled`.
    Errors: `io_error` when a check cannot be started; those of every write, and of git. The
    attempt is put back then, too.
    """
    plain, in_stages = verify.at_hand(desk, run)
    if staged:
        if not in_stages or _time_is_over(desk, starts_before_ms):
            return None
        stages = kinds.of_stages()
        return (yield from stages.working(desk, run, in_stages, starts_before_ms))
    for attempt, task in plain:
        if not (needs_checks(attempt, task) and was_seen(attempt)):
            continue
        if _time_is_over(desk, starts_before_ms):
            return None
        if not is_there(str(attempt.worktree_path)):
            verdict = verify.gone(desk, run, attempt) if _has_repository(desk, run) else None
            if verdict is not None and verify.decide(desk, run, attempt, verdict):
                return True
        elif (begun := _begin_checks(desk, run, attempt)) is not None:
            return (yield from _carry_on(desk, run, task, begun, starts_before_ms))
    return None


def unchecked(desk: Desk, run: Run) -> int:
    """How many submitted attempts wait for their checks."""
    return sum(needs_checks(attempt, task) for attempt, task in verify.submitted(desk, run))


def put_back_abandoned(desk: Desk, run: Run) -> int:
    """Let others verify what a process that is gone has begun to verify; returns how many
    attempts that are."""
    with desk.database.snapshot() as snapshot:
        begun = [
            (intent, attempts.get(snapshot, intent.attempt_id))
            for intent in journal_rows.open_intents(snapshot, run.id)
            if intent.kind == "verify" and intent.attempt_id is not None
        ]
    return sum(
        _put_back_if_abandoned(desk, run, intent, attempt)
        for intent, attempt in begun
        if attempt is not None
    )


# -- one verification --------------------------------------------------------------------


def _begin_checks(desk: Desk, run: Run, attempt: Attempt) -> Attempt | None:
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        assert present is not None
        if present.state != "submitted":
            return None  # another leader was quicker
        moved = moving.move_attempt(
            desk, tx, run, present, moving.Move("verifying", "its checks are run")
        )
        open_verification(desk, tx, attempt, {})
        return moved


def _carry_on(
    desk: Desk, run: Run, task: Task, attempt: Attempt, starts_before_ms: float | None
) -> Generator[None, None, bool]:
    """Run what is left to run, and decide; whatever goes wrong, the attempt is put back."""
    from ..gates.running import Interrupted, Withdrawn

    try:
        results = yield from run_checks(
            desk,
            Subject(run, task, attempt, str(attempt.worktree_path)),
            passed=[c for c in checks_of(attempt) if c.passed],
            note=lambda results: _note_results(desk, attempt, results),
            wanted=lambda: _is_wanted(desk, attempt),
            starts_before_ms=starts_before_ms,
        )
        if results is not None:
            return _conclude(desk, run, attempt, results)
        keep.put_back(desk, run, attempt, "the wait is over")
        return False
    except Withdrawn as withdrawn:
        keep.put_back(desk, run, attempt, str(withdrawn))
        return False
    except Interrupted as interrupted:
        # A wait goes on after `busy`, but not after this.
        with contextlib.suppress(InboxOrchError):
            keep.put_back(desk, run, attempt, "the verification was interrupted")
        raise Signalled(interrupted.number) from None
    except GeneratorExit:
        keep.put_back(desk, run, attempt, "the verification was left")
        raise
    except BaseException as error:
        with contextlib.suppress(InboxOrchError):
            keep.put_back(desk, run, attempt, f"the verification failed: {error}"[:300])
        raise
    finally:
        AT_WORK.discard(attempt.id)


class Subject(NamedTuple):
    """What is checked: the work of an attempt at a task, in a folder."""

    run: Run
    task: Task
    attempt: Attempt
    folder: str


def run_checks(
    desk: Desk,
    subject: Subject,
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
    from ..gates.running import Mandate, Runner

    attempt, begun = subject.attempt, len(passed)
    mandate = Mandate(
        begins=lambda group: _note_group(desk, attempt, group),
        wanted=wanted,
        noted=lambda results: note([*passed, *results]),
        over=lambda: _time_is_over(desk, starts_before_ms),
    )
    gates = [
        partial(_gate, desk, subject, number) for number in range(begun, len(subject.task.checks))
    ]
    with Runner(desk.database.notice, mandate, artifacts=desk.bus.artifacts) as runner:
        try:
            results = yield from runner.series(gates)
        except NotStarted as failed:
            raise _not_started(failed) from failed.__cause__
    return None if results is None else [*passed, *results]


def _gate(desk: Desk, subject: Subject, number: int) -> GateSpec:
    """The check with this number, from 0, of a task. Errors: `git_failed`, `usage`."""
    run, task, attempt, folder = subject
    config = config_of(run)
    return GateSpec(
        task.checks[number],
        folder,
        # Where the worktree has gone away, the check cannot be started, and that is told.
        desk.repository(run).common_directory if is_there(folder) else None,
        command_environment(desk.database, run, task, attempt, config, folder),
        limit_seconds(task.limits),
        secrets_of(config),
        f"check-{number + 1}.txt",
    )


def _not_started(failed: NotStarted) -> Exception:
    from ..gates.running import Withdrawn

    if failed.gone:
        return Withdrawn("its worktree has gone away")
    return failed.as_error("the attempt stays submitted; try again once that is put right")


# -- what is written down ----------------------------------------------------------------


def _note_group(desk: Desk, attempt: Attempt, group: int) -> bool:
    """So that a process that takes the verification over can end the check that still runs."""
    with desk.database.transaction(durable=False) as tx:
        me = desk.database.owner()
        return journal_rows.note_in_intent(tx, attempt.id, "verify", facts_of(group), me)


def _note_results(desk: Desk, attempt: Attempt, results: Sequence[Checked]) -> bool:
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        assert present is not None
        mine = journal_rows.owns_intent(tx, attempt.id, "verify", desk.database.owner())
        details = details_with(present, Details(checks=tuple(results)))
        columns = {"details": details, "updated_at": tx.now.wall_ms}
        return mine and attempts.update(tx, attempt.id, columns, expected_state="verifying")


def _is_wanted(desk: Desk, attempt: Attempt) -> bool:
    """Whether the attempt is being verified still, and by this process."""
    try:
        with desk.database.snapshot() as snapshot:
            present = attempts.get(snapshot, attempt.id)
            mine = journal_rows.owns_intent(snapshot, attempt.id, "verify", desk.database.owner())
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return True  # it cannot be told just now
    return mine and present is not None and present.state == "verifying"


def _conclude(desk: Desk, run: Run, attempt: Attempt, results: Sequence[Checked]) -> bool:
    """Accept or reject, or ask whoever has to approve of it, and tell it on the thread with the
    outputs, in one transaction."""
    if objection(results) is None and _is_asked(desk, run, attempt):
        return _ask(desk, run, attempt, results)
    with desk.database.snapshot() as snapshot:
        refused = _refusal(snapshot, run, attempt)
    if objection(results) is None and refused is None and attempt.head_commit is not None:
        if not _note_head(desk, attempt, attempt.head_commit):
            return False
        settled = partial(_settle, desk, run, attempt, results)
        if not keep.accept(desk, run, attempt, attempt.head_commit, settled):
            keep.put_back(desk, run, attempt, "it was not accepted")
            return False
        return True
    with desk.database.transaction() as tx:
        mine = close_verification(desk, tx, attempt, "done")
        return mine and _settle(desk, run, attempt, results, tx)


def _is_asked(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """Whether its patch waits for an approval."""
    if not run.patches or attempt.head_commit is None:
        return False
    from . import patches

    with desk.database.snapshot() as snapshot:
        return patches.open_patch(snapshot, attempt)[1] == "queued"


def _refusal(tx: Session, run: Run, attempt: Attempt) -> str | None:
    """Whether somebody has refused its change while its checks were run."""
    if not run.patches:
        return None
    from . import patches

    return patches.refusal(tx, attempt)


def _ask(desk: Desk, run: Run, attempt: Attempt, results: Sequence[Checked]) -> bool:
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt.id)
        assert present is not None
        mine = close_verification(desk, tx, attempt, "done")
        if not mine or present.state != "verifying":
            return False
        if _refusal(tx, run, attempt) is not None:
            return _settle(desk, run, attempt, results, tx)
        text = f"Attempt {attempt.number} has passed its checks, and waits for an approval."
        message = tell(desk, run, attempt, f"{text}\n\n{report(results)}", results)
        changes = {"details": details_with(present, Details(verdict_message=message))}
        move = moving.Move("submitted", "its change has to be approved", changes)
        asking = moving.move_attempt(desk, tx, run, present, move)
        kinds.of_stages().ask_approval(desk, tx, run, asking)
        return True


def _note_head(desk: Desk, attempt: Attempt, head: str) -> bool:
    """So that a process that takes the verification over can put the ref back."""
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        return journal_rows.note_in_intent(tx, attempt.id, "verify", keep.facts_of(head), me)


def _settle(
    desk: Desk, run: Run, attempt: Attempt, results: Sequence[Checked], tx: Transaction
) -> bool:
    """False when the attempt is being verified no more."""
    present = attempts.get(tx, attempt.id)
    assert present is not None
    if present.state != "verifying":
        return False
    failed = objection(results)
    refused = _refusal(tx, run, attempt)
    if failed is None and refused is not None and keep.is_open(tx, attempt):
        return False  # it was refused just now, and its ref is set already
    reason = failed or refused
    verdict = "succeeded" if reason is None else "rejected"
    if failed is not None and run.patches:
        from . import patches

        patches.checked(desk, tx, run, attempt, passed=False)
    text = f"Attempt {attempt.number} {'is accepted' if reason is None else verdict}."
    message = tell(desk, run, attempt, f"{text}\n\n{report(results)}", results)
    details = details_with(present, Details(verdict_message=message))
    verify.settle(desk, tx, run, present, Verdict(verdict, reason, {"details": details}))
    return True


def tell(desk: Desk, run: Run, attempt: Attempt, text: str, results: Sequence[Checked]) -> str:
    """Write what the checks came to on the attempt's thread, with their outputs; returns the
    message's id."""
    from inbox_orch.shared.store.artifacts import Stored

    files = [
        Stored(r.artifact, r.artifact_sha256, r.artifact_bytes)
        for r in results
        if r.artifact is not None
    ]
    # Of an earlier process's, one may have been cleared away since.
    kept = [file for file in files if desk.bus.artifacts.has(file)]
    written = desk.bus.reply(str(attempt.thread_id), body=text, agent=run.leader, files=kept)
    assert written.message is not None
    return str(written.message.id)


# -- taking over -------------------------------------------------------------------------


def _put_back_if_abandoned(desk: Desk, run: Run, intent: Intent, attempt: Attempt) -> bool:
    if not _is_verification_abandoned(desk, intent, attempt):
        return False
    end_orphan(intent, desk.database.now().boot_id)
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        if not journal_rows.take_over_intent(tx, intent.number, intent.owner, me):
            return False
    try:
        borrow.clear_borrowed(desk, run, intent, attempt)
    except InboxOrchError:
        return False  # it is this process's now; the next time may do better
    try:
        keep.put_back(desk, run, attempt, "the verifier died")
    except InboxOrchError as error:
        if error.code not in LATER:
            raise
        return False
    return True


def _is_verification_abandoned(desk: Desk, intent: Intent, attempt: Attempt) -> bool:
    with desk.database.snapshot() as snapshot:
        task = tasks.by_id(snapshot, attempt.task_id)
    return keep.is_left(desk, intent, patience_seconds(len(task.checks), task.limits))


# -- helpers -----------------------------------------------------------------------------


def _has_repository(desk: Desk, run: Run) -> bool:
    try:
        desk.repository(run)
    except InboxOrchError:
        return False
    return True


def _time_is_over(desk: Desk, starts_before_ms: float | None) -> bool:
    now = desk.database.now().monotonic_ms
    return starts_before_ms is not None and now >= starts_before_ms
