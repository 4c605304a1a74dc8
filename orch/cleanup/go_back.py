"""Going back to a checkpoint: files, index and HEAD of an attempt's worktree as they were kept.

What lies there is kept before, so that going back is never a loss. It is done in the lock of the
attempt, behind an intent: killed at any point, the next command comes to the end.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Session

from ..attempts import fold, moving, provision
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.provision import LATER
from ..attempts.verify import untracked_at_start
from ..git import mending, snapshots, worktrees
from ..git.harvest import Unfit
from ..git.repository import Repository, is_there
from ..git.worktrees import Hold
from ..journal import finishing, owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run
from .checkpoints import Checkpoint, of_attempt, place_to_look, present_of, unfit_error
from .restore import Listed

KIND = "restore"


class WentBack(NamedTuple):
    """The worktree is as in `checkpoint` again; how it was before is `before`."""

    checkpoint: Checkpoint
    before: Checkpoint

    def as_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint.as_json(),
            "into": None,
            "files": None,
            "before": self.before.as_json(),
        }


def checkpoint_restore(desk: Desk, run: Run, checkpoint: Checkpoint) -> WentBack:
    """Let files, index and HEAD of an attempt's worktree be as in a checkpoint of it. Ignored files
    and those of set-up stay.

    Errors: `live_attempt` (a worker or a leader is at it), `invalid_state` (there is no worktree;
    it, or the checkpoint, is in the middle of a merge or without a commit; what lies there cannot
    be kept), `busy`, and those of git; nothing is changed then, but for what git cannot do in the
    middle: the next command goes on with that.
    """
    listed = checkpoint.listed
    repository, worktree = place_to_look(desk, run, listed)
    mending.mend(repository)
    finishing.finish_intents(desk, run)
    fold.fold(desk, run)
    with worktrees.alone(repository, place_of(desk, listed.attempt)) as hold:
        why_not = snapshots.unsettled(worktree)
        if why_not is not None:
            # It could be kept, and not be gone back to.
            text = f"its worktree {why_not}: end that, or call it off, and try again"
            raise unfit_error(listed, Unfit(text))
        _begin(desk, run, checkpoint)
        try:
            before = _restored(repository, listed.attempt, hold, checkpoint.commit)
        except Unfit as unfit:
            _end(desk, listed.attempt, "undone")
            raise unfit_error(listed, unfit) from unfit
        numbers = {each.commit: each for each in of_attempt(repository, listed)}
        done = WentBack(checkpoint, numbers[before])
        _confirm(desk, run, listed.attempt, _facts(checkpoint), before)
    return done


def _restored(repository: Repository, attempt: Attempt, hold: Hold, commit: str) -> str:
    worktree, known = str(attempt.worktree_path), untracked_at_start(attempt)
    return snapshots.restore(repository, worktree, hold, commit, known)


def _facts(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the intent says, so that another process can finish it."""
    state = checkpoint.kept.state
    return {
        "checkpoint": checkpoint.number,
        "commit": checkpoint.commit,
        "tree": checkpoint.tree,
        "head": state.snapshot.head,
    }


# -- the intent ----------------------------------------------------------------------------------


def _begin(desk: Desk, run: Run, checkpoint: Checkpoint) -> None:
    """Write down what is about to be done, if nobody is at work there."""
    listed = checkpoint.listed
    with desk.database.transaction() as tx:
        present = present_of(tx, listed.attempt)
        _refuse_at_work(tx, listed, present)
        journal_rows.open_intent(
            tx,
            present,
            KIND,
            _facts(checkpoint),
            owner=desk.database.owner(),
            now_ms=tx.now.wall_ms,
        )


def _refuse_at_work(tx: Session, listed: Listed, present: Attempt) -> None:
    """An attempt that has ended, or waits for a decision, is nobody's; any other may be a worker's
    or a leader's at any moment."""
    if present.live and not present.deciding:
        raise InboxOrchError(
            "live_attempt",
            f"{listed.name} is {present.state}: a worker or a leader may be at it",
            hint=f"--into DIR writes the files elsewhere; `orch cancel {listed.key}` ends it first",
            details={"attempt": present.id, "state": present.state},
        )
    if any(i.attempt_id == present.id for i in journal_rows.open_intents(tx, present.run_id)):
        raise InboxOrchError(
            "busy",
            f"another process is changing what there is of {listed.name}",
            hint="try again in a moment",
            details={"attempt": present.id},
        )


def _end(desk: Desk, attempt: Attempt, outcome: str) -> None:
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        journal_rows.close_intent(tx, attempt.id, KIND, outcome, me, tx.now.wall_ms)


def _confirm(desk: Desk, run: Run, attempt: Attempt, facts: Mapping[str, Any], before: str) -> None:
    """Say that it is so. A decision that is open is one about what lies there now."""
    with desk.database.transaction() as tx:
        me = desk.database.owner()
        if not journal_rows.close_intent(tx, attempt.id, KIND, "done", me, tx.now.wall_ms):
            return  # another leader has taken it over, and does the same
        present = present_of(tx, attempt)
        visit = visits.live_of(tx, attempt.id)
        if visit is not None and visit.kind == "decision":
            now = {"tree_after": facts["tree"], "snapshot": facts["commit"], "head": facts["head"]}
            visits.update(tx, visit, now)
        told = {**facts, "before": before}
        moving.record_attempt(desk, tx, run, present, "checkpoint_restored", told)


# -- after a crash -------------------------------------------------------------------------------


def finish_restores(desk: Desk, run: Run) -> int:
    """Come to the end of what a process that is gone has begun; returns how many there were."""
    with desk.database.snapshot() as snapshot:
        begun_there = [
            (intent, attempts.get(snapshot, str(intent.attempt_id)))
            for intent in journal_rows.open_intents(snapshot, run.id)
            if intent.kind == KIND
        ]
    return sum(
        _finish(desk, run, intent, attempt)
        for intent, attempt in begun_there
        if attempt is not None and _is_left(desk, intent)
    )


def _is_left(desk: Desk, intent: Intent) -> bool:
    """Whether no process is working on it. Should this one still be, it has the lock."""
    return intent.owner == desk.database.owner() or owners.is_abandoned(desk, intent)


def _finish(desk: Desk, run: Run, intent: Intent, attempt: Attempt) -> bool:
    try:
        repository = desk.repository(run)
        with worktrees.alone(repository, place_of(desk, attempt)) as hold:
            if not provision.take_over(desk, intent):
                return False
            _settle(desk, run, (repository, hold), attempt, intent.data)
    except InboxOrchError as error:
        if error.code not in LATER:
            raise
        return False
    return True


def _settle(
    desk: Desk,
    run: Run,
    held: tuple[Repository, Hold],
    attempt: Attempt,
    facts: Mapping[str, Any],
) -> None:
    repository, hold = held
    if not is_there(str(attempt.worktree_path)):
        _end(desk, attempt, "undone")
        return
    try:
        before = _restored(repository, attempt, hold, facts["commit"])
    except Unfit as unfit:
        _end(desk, attempt, "undone")
        desk.database.notice(f"the worktree {attempt.worktree_path} could not be put back: {unfit}")
        return
    _confirm(desk, run, attempt, facts, before)
