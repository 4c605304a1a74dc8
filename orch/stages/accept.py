"""The end of an attempt that went through its stages: what was judged last is accepted."""

from functools import partial
from typing import Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..attempts import fold, keep, moving, verify
from ..attempts import rows as attempts
from ..attempts.rows import details_with
from ..attempts.verify import Verdict
from ..git import snapshots, worktrees
from ..git.repository import is_there
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt
from .course import Course
from .machine import Step

_BUSY_SECONDS = 0.5


def accept(desk: Desk, course: Course, step: Step) -> bool:
    """Accept the work as it was judged; what was written there since is taken back, and kept.
    False when it cannot be done now, or another leader was quicker. Errors: those of git and of
    every write."""
    attempt = course.attempt
    if not is_there(str(attempt.worktree_path)):
        return False
    verdict = _verdict(desk, course, step)
    if verdict is None:
        return False
    head = verdict.changes.get("head_commit")
    settled = partial(_settled, desk, course, verdict)
    if verdict.state == "succeeded" and head is not None:
        begin = partial(_begin, desk, course, head)
        accepting = partial(keep.begin_and_accept, desk, course.run, attempt, head, begin, settled)
        return accepting() or (keep.put_back_left(desk, course.run, attempt) and accepting())
    with desk.database.transaction() as tx:
        return settled(tx)


def _verdict(desk: Desk, course: Course, step: Step) -> Verdict | None:
    repository, attempt = desk.repository(course.run), course.attempt
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    try:
        with worktrees.alone(repository, place_of(desk, attempt), _BUSY_SECONDS) as hold:
            if not _is_still(desk, attempt):
                return None
            tree = snapshots.tree_now(repository, worktree, known)
            if tree != course.last_tree and course.last_snapshot is not None:
                snapshots.restore(repository, worktree, hold, course.last_snapshot, known)
            found = repository.look_at(worktree, str(attempt.base_commit), known)
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return None
    if found is None:
        return None
    reasons, details = verify.objections(found, course.task.allow_empty)
    if found.head is not None:
        summary = repository.change_summary(found.head, str(attempt.base_commit))
        details = details._replace(change_summary=summary)
    unverified = is_unverified(course)
    changes: dict[str, Any] = {
        "head_commit": found.head,
        "commits_ahead": found.commits_ahead,
        "details": details_with(
            attempt, details._replace(harvest=False, unverified=unverified or None)
        ),
    }
    if reasons:
        return Verdict("rejected", "; ".join(reasons), changes)
    return Verdict("succeeded", None, changes)


def is_unverified(course: Course) -> str | None:
    """Why work that comes in was judged by no gate, or not by all, in words; None when it was."""
    last = course.visits[-1] if course.visits else None
    if last is not None and last.kind == "decision" and last.verdict == "accept":
        return f"accepted by {last.worker} as it was: {last.found.get('cause')}"
    judged = [v for v in course.visits if v.kind == "gates" and v.state == "succeeded"]
    gates = [s for s in course.blueprint.stages if s.runs_gates]
    if gates and not any(v.stage in course.blueprint.by_id for v in judged):
        return "no gate could judge it"
    skipped = [s.id for s in course.blueprint.stages if s.reviews and _was_skipped(course, s.id)]
    return f"not reviewed: {', '.join(skipped)} was skipped" if skipped else None


def _was_skipped(course: Course, stage: str) -> bool:
    of_stage = [v for v in course.visits if v.stage == stage and not v.live]
    return bool(of_stage) and of_stage[-1].state == "skipped"


def _begin(desk: Desk, course: Course, head: str, tx: Transaction) -> bool:
    if not _is_ours(tx, course.attempt) or keep.is_open(tx, course.attempt):
        return False
    keep.open_verification(desk, tx, course.attempt, keep.facts_of(head))
    return True


def _settled(desk: Desk, course: Course, verdict: Verdict, tx: Transaction) -> bool:
    if not _is_ours(tx, course.attempt):
        return False
    present = attempts.get(tx, course.attempt.id)
    assert present is not None
    verify.settle(desk, tx, course.run, _verifying(desk, tx, course, present), verdict)
    return True


def _is_still(desk: Desk, attempt: Attempt) -> bool:
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, attempt.id)
    return present is not None and present.state == attempt.state


def _is_ours(tx: Transaction, attempt: Attempt) -> bool:
    present = attempts.get(tx, attempt.id)
    return present is not None and present.state == attempt.state


def give_up(desk: Desk, course: Course, step: Step) -> bool:
    """The attempt ends without success, as its blueprint or a decision says."""
    with desk.database.transaction() as tx:
        present = attempts.get(tx, course.attempt.id)
        if present is None or present.state != course.attempt.state:
            return False
        changes: dict[str, Any] = {"reason": reason_of(step), "fatal": int(_is_final(step))}
        move = moving.Move("failed", reason_of(step), changes)
        fold.end_attempt(desk, tx, course.run, _verifying(desk, tx, course, present), move)
        return True


def _verifying(desk: Desk, tx: Transaction, course: Course, present: Attempt) -> Attempt:
    moved = moving.Move("verifying", "its stages are over")
    return moving.move_attempt(desk, tx, course.run, present, moved)


def _is_final(step: Step) -> bool:
    return step.cause == "abandoned"


def reason_of(step: Step) -> str:
    """Why it ended so."""
    if step.cause == "abandoned":
        return f"abandoned at {step.stage}" + (f": {step.reason}" if step.reason else "")
    return f"stage {step.stage} failed" + (f": {step.reason}" if step.reason else "")
