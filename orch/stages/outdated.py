"""Answers that speak of a tree, where another lies in the worktree by now: they are void, and asked
for anew."""

from inbox_orch.shared.errors import InboxOrchError

from ..attempts import harvesting, verify
from ..git import snapshots, worktrees
from ..git.facts import facts
from ..git.failures import shown
from ..git.repository import Repository, is_there
from ..git.worktrees import Hold
from ..journal import rows as journal_rows
from ..runs.desk import Desk, place_of
from .course import Course, read
from .decide import Lying, ask
from .machine import Step

OF_A_TREE = ("accept", "approve")
"""Answers about what lies in the worktree: of another tree they say nothing."""
_BUSY_SECONDS = 0.5
_MOST_NAMED = 5


def holds_up(desk: Desk, course: Course) -> bool:
    """Whether what was decided last cannot be carried out: it speaks of a tree, and another lies in
    the worktree by now. Then it is void, and asked for anew. True also when that cannot be told
    now. Errors: those of git and of every write."""
    last = course.visits[-1] if course.visits and not course.plain else None
    if last is None or last.kind != "decision" or last.live:
        return False
    attempt = course.attempt
    with desk.database.snapshot() as snapshot:
        if journal_rows.is_begun(snapshot, attempt, "restore"):
            return True  # its worktree is being put back now, or was not wholly
    if last.verdict not in OF_A_TREE:
        return False
    if not is_there(str(attempt.worktree_path)):
        return True
    repository = desk.repository(course.run)
    try:
        with worktrees.alone(repository, place_of(desk, attempt), _BUSY_SECONDS) as hold:
            seen = _changed(desk, course, (repository, hold), str(last.tree_before))
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return True
    if seen is None:
        return False
    with desk.database.transaction() as tx:
        again = read(tx, course.run, attempt.id)
        if len(again.visits) == len(course.visits) and again.attempt.state == attempt.state:
            found = last.found
            why = f"{seen.what} was changed before `{last.verdict}` could be carried out"
            step = Step("decide", found["about"], found["cause"], why, resume=found.get("resume"))
            ask(desk, tx, again, step, seen)
    return True


def _changed(desk: Desk, course: Course, held: tuple[Repository, Hold], tree: str) -> Lying | None:
    """What lies there, committed and kept, if it is another tree; None if it is the same, or cannot
    be kept: then what was judged is taken, and nothing else."""
    repository, _ = held
    attempt = course.attempt
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    try:
        if snapshots.tree_now(repository, worktree, known) == tree:
            return None
        harvesting.commit_there(desk, course.run, course.task, attempt, held)
        ref = snapshots.ref_of(attempt.id)
        message = "Changed before a decision was carried out"
        made = snapshots.snapshot(repository, worktree, known, ref, message, course.last_snapshot)
    except snapshots.Unfit:
        return None
    paths = [shown(each.path) for each in facts(repository, tree, made.tree).files]
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    what = ", ".join(paths[:_MOST_NAMED]) + more
    return Lying(made.tree, made.commit, made.head, what) if paths else None
