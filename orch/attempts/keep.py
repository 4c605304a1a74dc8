"""Keeping what is accepted: `refs/orch/heads/<attempt>`, and the intent under which it is set.

Git is not asked while the write lock is held, and yet nobody may see an attempt accepted whose
commit is not kept, nor a ref of one that is not. So the ref is set before the transaction that
accepts, by the one process whose intent says so, in the lock of the attempt, which git shares;
that transaction closes the intent. While the intent is open, nothing was accepted: then the ref
is put back to where it was, by this process or by the one that takes the intent over.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Session, Transaction

from ..git.repository import Repository
from ..journal import owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs.desk import Desk, place_of
from ..runs.limits import FOREIGN_SECONDS
from ..runs.model import Attempt, Run
from . import moving
from . import rows as attempts

if TYPE_CHECKING:
    from ..git.worktrees import Hold

REFS = "refs/orch/heads/"

# What this process is verifying now. An intent of its own that is not here was left behind by an
# error, and no process is working on it.
AT_WORK: set[str] = set()


def ref_of(attempt: Attempt) -> str:
    """Where the accepted work of an attempt is kept: its worker may go on and move its branch."""
    return f"{REFS}{attempt.id}"


def facts_of(head: str, before: str | None = None) -> dict[str, Any]:
    """What the intent has to say of a ref that is about to be set, so that it can be put back;
    `before` is where it is, after an earlier acceptance."""
    return {"keep": head} if before is None else {"keep": head, "kept": before}


# -- the intent --------------------------------------------------------------------------


def open_verification(desk: Desk, tx: Transaction, attempt: Attempt, data: dict[str, Any]) -> None:
    """Write down that this process verifies it, until `close_verification`."""
    AT_WORK.add(attempt.id)
    journal_rows.open_intent(
        tx, attempt, "verify", data, owner=desk.database.owner(), now_ms=tx.now.wall_ms
    )


def is_open(tx: Transaction, attempt: Attempt) -> bool:
    """Whether any process verifies it, or has left its intent behind."""
    return _open_of(tx, attempt) is not None


def _open_of(tx: Session, attempt: Attempt) -> Intent | None:
    for intent in journal_rows.open_intents(tx, attempt.run_id):
        if (intent.kind, intent.attempt_id) == ("verify", attempt.id):
            return intent
    return None


def close_verification(desk: Desk, tx: Transaction, attempt: Attempt, outcome: str) -> bool:
    """False when another process has taken it over."""
    me = desk.database.owner()
    return journal_rows.close_intent(tx, attempt.id, "verify", outcome, me, tx.now.wall_ms)


def put_back(desk: Desk, run: Run, attempt: Attempt, cause: str) -> None:
    """Nothing was decided, and nothing counts; what has passed stays written down. Errors: those
    of putting the ref back; then the intent stays open, for the next process."""
    _give_back(desk, run, attempt)
    with desk.database.transaction() as tx:
        if close_verification(desk, tx, attempt, "undone"):
            present = attempts.get(tx, attempt.id)
            assert present is not None
            if present.state == "verifying":
                # A blueprint may begin with a stage that no worker has.
                before = "provisioned" if present.thread_id is None else "submitted"
                moving.move_attempt(desk, tx, run, present, moving.Move(before, cause))


def is_left(desk: Desk, intent: Intent, foreign_seconds: float = FOREIGN_SECONDS) -> bool:
    """Whether the process of a verification is gone, or has left it after an error."""
    if intent.owner == desk.database.owner():
        return intent.attempt_id not in AT_WORK
    return owners.is_abandoned(desk, intent, foreign_seconds)


def put_back_left(desk: Desk, run: Run, attempt: Attempt) -> bool:
    """Put back what a process that is gone was about to accept; returns whether there was such.
    Only for an attempt of which no check is run. Errors: those of `put_back`."""
    with desk.database.snapshot() as snapshot:
        begun = _open_of(snapshot, attempt)
    if begun is None or not is_left(desk, begun):
        return False
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        if not journal_rows.take_over_intent(tx, begun.number, begun.owner, me):
            return False
    put_back(desk, run, attempt, "the verifier died")
    return True


# -- the ref -----------------------------------------------------------------------------


def accept(
    desk: Desk, run: Run, attempt: Attempt, head: str, settle: Callable[[Transaction], bool]
) -> bool:
    """Set the ref, then let `settle` accept in a transaction that closes the intent, which is open
    and says `facts_of` the ref. False when the intent is another's by now, or `settle` says so: the
    caller has to `put_back` then, as after every error."""
    repository = desk.repository(run)
    with _alone(desk, repository, attempt) as hold:
        if not _is_mine(desk, attempt):
            return False
        with hold.shared() as lock:
            repository.keep(ref_of(attempt), head, (lock,))
        with desk.database.transaction() as tx:
            me = desk.database.owner()
            mine = journal_rows.owns_intent(tx, attempt.id, "verify", me)
            return mine and settle(tx) and close_verification(desk, tx, attempt, "done")


def begin_and_accept(
    desk: Desk,
    run: Run,
    attempt: Attempt,
    head: str,
    begin: Callable[[Transaction], bool],
    settle: Callable[[Transaction], bool],
) -> bool:
    """`accept` under an intent of its own, which `begin` opens, in a transaction. False when one of
    them says so; then, and after an error, everything is as it was."""
    others = attempt.id in AT_WORK
    try:
        with desk.database.transaction() as tx:
            if not begin(tx):
                return False
        return _accept_or_put_back(desk, run, attempt, head, settle)
    finally:
        if not others:
            AT_WORK.discard(attempt.id)


def _accept_or_put_back(
    desk: Desk, run: Run, attempt: Attempt, head: str, settle: Callable[[Transaction], bool]
) -> bool:
    accepted = False
    try:
        accepted = accept(desk, run, attempt, head, settle)
        return accepted
    finally:
        if not accepted:
            # Should that fail, what went wrong before is told; the intent stays.
            with contextlib.suppress(InboxOrchError):
                put_back(desk, run, attempt, "it was not accepted")


def _give_back(desk: Desk, run: Run, attempt: Attempt) -> None:
    """Put the ref back to where it was, if this process's intent says that it may have been set."""
    if "keep" not in _data_of_mine(desk, attempt):
        return
    repository = desk.repository(run)
    with _alone(desk, repository, attempt) as hold, hold.shared() as lock:
        data = _data_of_mine(desk, attempt)
        if "keep" not in data or repository.ref_commit(ref_of(attempt)) != data["keep"]:
            return
        if "kept" in data:
            repository.keep(ref_of(attempt), data["kept"], (lock,))
        elif not repository.drop(ref_of(attempt), data["keep"], (lock,)):
            raise _stays(attempt)


def _stays(attempt: Attempt) -> InboxOrchError:
    return InboxOrchError(
        "git_failed",
        f"{ref_of(attempt)} keeps work that was not accepted, and git could not remove it",
        hint="`orch reconcile` tries it again; `orch doctor` tells of locks that are in the way",
        details={"ref": ref_of(attempt)},
    )


def _alone(desk: Desk, repository: Repository, attempt: Attempt) -> "AbstractContextManager[Hold]":
    # Who only reads a run needs no worktrees.
    from ..git import worktrees

    return worktrees.alone(repository, place_of(desk, attempt))


def _is_mine(desk: Desk, attempt: Attempt) -> bool:
    with desk.database.snapshot() as snapshot:
        me = desk.database.owner()
        return journal_rows.owns_intent(snapshot, attempt.id, "verify", me)


def _data_of_mine(desk: Desk, attempt: Attempt) -> dict[str, Any]:
    """What this process's open intent says; nothing when there is none."""
    with desk.database.snapshot() as snapshot:
        begun = _open_of(snapshot, attempt)
    return begun.data if begun and begun.owner == desk.database.owner() else {}
