"""The end of an attempt that went through its stages: what was judged last is accepted."""

from functools import partial
from typing import Any

from inbox_orch.shared.store.engine import Transaction

from ..attempts import fold, keep, moving, patches, verify
from ..attempts import rows as attempts
from ..attempts.patches import Judged, NotFitting
from ..attempts.rows import Details, details_with
from ..attempts.verify import Verdict
from ..attempts.visits import Visit
from ..patches.hiding import hidden
from ..runs.desk import Desk
from ..runs.model import Attempt
from . import ahead, judging, unseen
from .course import Course
from .machine import Step
from .model import SURROUNDINGS


def accept(desk: Desk, course: Course) -> bool:
    """Accept the work as it was judged: what was written there since has no part in it. False when
    another leader was quicker. Errors: those of git and of every write."""
    attempt = course.attempt
    verdict = _verdict(desk, course)
    if verdict.judged is not None and verdict.judged.asked:
        return _ask_first(desk, course, verdict.judged)
    head = verdict.changes.get("head_commit")
    settled = partial(_settled, desk, course, verdict)
    if verdict.state == "succeeded" and head is not None:
        begin = partial(_begin, desk, course, head)
        accepting = partial(keep.begin_and_accept, desk, course.run, attempt, head, begin, settled)
        done = accepting() or (keep.put_back_left(desk, course.run, attempt) and accepting())
        if done:
            _tell(desk, course)
        return done
    with desk.database.transaction() as tx:
        return settled(tx)


def _verdict(desk: Desk, course: Course) -> Verdict:
    """On the commit that was judged last, whatever lies in the worktree now."""
    repository, attempt = desk.repository(course.run), course.attempt
    head, base = course.last_head, str(attempt.base_commit)
    assert head is not None, "the first visit has one"
    commits = ahead.of(repository, attempt, head)
    judged = judging.last_judged(desk, course, head)
    denied = judged is not None and judged.denied
    accepted = head if denied else judging.accepted_head(desk, course, head)
    made = accepted != head
    details = Details(
        change_summary=hidden(repository.change_summary(head, base)),
        harvest=False,
        unverified=is_unverified(course),
        ignored=unseen.in_the_end(course.visits),
        handed_in=head if made else None,
    )
    changes: dict[str, Any] = {
        "head_commit": accepted,
        "commits_ahead": 1 if made else commits,
        "details": details_with(attempt, details),
    }
    if commits == 0 and not course.task.allow_empty:
        return Verdict("rejected", "empty: no commit on top of the base", changes)
    if judged is not None and judged.denied:
        return Verdict("rejected", judged.rejection, changes, judged)
    return Verdict("succeeded", None, changes, judged)


def _ask_first(desk: Desk, course: Course, judged: Judged | NotFitting) -> bool:
    """What somebody has changed meanwhile has to be approved: the next step asks for that."""
    with desk.database.transaction() as tx:
        if not _is_ours(tx, course.attempt):
            return False
        patches.record(desk, tx, course.run, judged)
        return True


def is_unverified(course: Course) -> str | None:
    """Why work that comes in was judged by no gate, or not by all, in words; None when it was."""
    last = next((v for v in reversed(course.visits) if not _is_approval(v)), None)
    if last is not None and last.kind == "decision" and last.verdict == "accept":
        return f"accepted by {last.worker} as it was: {last.found.get('cause')}"
    judged = [v for v in course.visits if v.kind == "gates" and v.state == "succeeded"]
    gates = [s for s in course.blueprint.stages if s.runs_gates]
    if gates and not any(v.stage in course.blueprint.by_id for v in judged):
        return "no gate could judge it"
    skipped = [s.id for s in course.blueprint.stages if s.judges and _was_skipped(course, s.id)]
    return f"not reviewed: {', '.join(skipped)} was skipped" if skipped else None


def _is_approval(visit: Visit) -> bool:
    """Whether it was asked only because a policy wants that."""
    return visit.kind == "decision" and "patches" in visit.found


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
    if verdict.judged is not None:
        patches.record(desk, tx, course.run, verdict.judged)
    if course.run.patches and not course.plain and _is_checked(course):
        patches.checked(desk, tx, course.run, present, passed=True)
    verify.settle(desk, tx, course.run, _verifying(desk, tx, course, present), verdict)
    return True


def _tell(desk: Desk, course: Course) -> None:
    """Say what came in without what the gates have seen."""
    said = unseen.in_the_end(course.visits)
    if said is not None:
        desk.database.notice(f"task {course.task.key}: {said}")


def _is_checked(course: Course) -> bool:
    """Whether gates have passed on the tree that is accepted."""
    tree = course.last_tree
    gates = [v for v in course.visits if v.kind == "gates" and v.stage != SURROUNDINGS]
    return any(v.state == "succeeded" and v.tree_after == tree for v in gates)


def _is_ours(tx: Transaction, attempt: Attempt) -> bool:
    present = attempts.get(tx, attempt.id)
    return present is not None and present.state == attempt.state


def lose(desk: Desk, course: Course) -> bool:
    """The attempt ends, since its worktree is gone; False when that may come back, with all the
    others of its folder. What was committed there is kept. Errors: those of git and of every
    write."""
    verdict = verify.gone(desk, course.run, course.attempt)
    if verdict is None:
        return False
    with desk.database.transaction() as tx:
        return _settled(desk, course, verdict, tx)


def give_up(desk: Desk, course: Course, step: Step) -> bool:
    """The attempt ends without success, as its blueprint or a decision says."""
    with desk.database.transaction() as tx:
        present = attempts.get(tx, course.attempt.id)
        if present is None or present.state != course.attempt.state:
            return False
        reason = reason_of(step) if not _is_refused(course) else _refusal(course)
        changes: dict[str, Any] = {"reason": reason, "fatal": int(_is_final(step))}
        to = "rejected" if _is_refused(course) else "failed"
        move = moving.Move(to, reason, changes)
        fold.end_attempt(desk, tx, course.run, _verifying(desk, tx, course, present), move)
        return True


def _verifying(desk: Desk, tx: Transaction, course: Course, present: Attempt) -> Attempt:
    moved = moving.Move("verifying", "its stages are over")
    return moving.move_attempt(desk, tx, course.run, present, moved)


def _is_refused(course: Course) -> bool:
    """Whether somebody who was asked has refused what an attempt without a blueprint handed in."""
    return course.plain and course.visits[-1].verdict == "refuse"


def _refusal(course: Course) -> str:
    last = course.visits[-1]
    return patches.refused_by(str(last.worker), last.found.get("hint"))


def _is_final(step: Step) -> bool:
    return step.cause == "abandoned"


def reason_of(step: Step) -> str:
    """Why it ended so."""
    if step.cause == "abandoned":
        return f"abandoned at {step.stage}" + (f": {step.reason}" if step.reason else "")
    return f"stage {step.stage} failed" + (f": {step.reason}" if step.reason else "")
