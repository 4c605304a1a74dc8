"""What gates and actions leave in the worktree: put back, or kept as a commit, and judged then as
what a worker has changed is."""

from typing import Any, NamedTuple

from ..attempts import verify
from ..attempts.patches import Judged
from ..attempts.visits import Visit
from ..git import harvest, snapshots, worktrees
from ..git.snapshots import ref_of
from ..runs.desk import Desk, place_of
from . import judging, taking
from . import settle as settling
from .course import Course
from .judging import By
from .model import Stage
from .settle import Outcome

_WAYS = {"apply_patch": "diff", "commit_changes": "harvest"}


class Left(NamedTuple):
    """How a visit of a leader ends, the columns that change with it, and what the policy says of
    what it has left, where that is still to be written down."""

    outcome: Outcome
    columns: dict[str, Any]
    judged: Judged | None = None


def weighed(desk: Desk, course: Course, visit: Visit, left: Left) -> Left:
    """With what the policy says of it: what may not come in is put back, and the visit has failed.
    Errors: those of git and of every write. Raises `Unfit`."""
    refused = judging.refused_before(desk, course)
    head, found = left.columns.get("head"), None
    if refused is None and head is not None:
        found = judging.judged(desk, course, course.stage_of(visit), head, _by(desk, course, visit))
        if found is None or not found.denied:
            return left._replace(judged=found)
        with desk.database.transaction() as tx:
            judging.record(desk, tx, course, found)
        refused = found.rejection
    if refused is None:
        return left
    _put_back(desk, course)
    result = {name: left.columns[name] for name in ("result",) if name in left.columns}
    return Left(Outcome("failed", reason=refused), result)


def _by(desk: Desk, course: Course, visit: Visit) -> By:
    stage = course.stage_of(visit)
    if visit.kind == "gates":
        return By("gate", course.run.leader)
    if stage is not None and stage.type == "agent":
        return taking.by(desk, course)
    return By(_WAYS.get(str(stage and stage.action), "harvest"), judging.author_in(course))


def _put_back(desk: Desk, course: Course) -> None:
    attempt, before = course.attempt, course.last_snapshot
    if before is None:
        return
    repository, known = desk.repository(course.run), verify.untracked_at_start(attempt)
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        snapshots.restore(repository, str(attempt.worktree_path), hold, before, known)


def head_as_before(desk: Desk, course: Course, tree: str) -> None:
    """Let HEAD be where it was before the gates: what one of them commits, or checks out, is no
    part of the work. `tree` is what the files are to be. Errors: those of git, `busy`. Raises
    `Unfit`."""
    attempt, before = course.attempt, course.last_snapshot
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    if before is None or settling.is_head_as_before(course):
        return
    repository = desk.repository(course.run)
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        snapshots.restore(repository, worktree, hold, before, known)
        snapshots.put_back(repository, worktree, tree, known, ref_of(attempt.id))


def kept(desk: Desk, course: Course, stage: Stage) -> dict[str, Any]:
    """What gates have written and may keep, committed; the columns of their visit that change.
    Errors: those of git, `busy`. Raises `Unfit` where it cannot be committed."""
    attempt, repository = course.attempt, desk.repository(course.run)
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        found = repository.look_at(worktree, str(attempt.base_commit), known)
        if found is not None and found.dirty_paths:
            left = harvest.Left(
                worktree,
                str(attempt.branch),
                known,
                course.run.leader,
                desk.database.now().wall_ms // 1000,
                f"{course.task.title}\n\nWritten by the gates of stage {stage.id}.\n",
                attempt.base_commit,
            )
            with hold.shared() as lock:
                harvest.commit_left(repository, left, found, (lock,))
        message, ref = f"After stage {stage.id}", ref_of(attempt.id)
        before = course.last_snapshot
        made = snapshots.snapshot(repository, worktree, known, ref, message, before)
    return {"tree_after": made.tree, "snapshot": made.commit, "head": made.head}
