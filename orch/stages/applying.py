"""The actions that write into the worktree of an attempt: applying a patch that a worker handed in,
and committing what lies there.

Each begins at the tree that was judged last, and ends with a commit on the attempt's branch, in the
attempt's lock; done again after a crash it comes to the same.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from ..attempts import bring_in, harvesting, verify
from ..attempts.rows import Brought
from ..git import snapshots, worktrees
from ..git.facts import facts
from ..git.failures import shown
from ..git.repository import Repository
from ..git.snapshots import ref_of
from ..git.worktrees import Hold
from ..patches.floor import LINK, MODULE, is_gits, leads_out
from ..runs.desk import Desk, place_of
from .course import Course


class Applied(NamedTuple):
    """What came of it: why it could not be done, in a line; else the facts, and the columns of the
    visit that say what lies there now."""

    obstacle: str | None
    facts: dict[str, Any]
    columns: Mapping[str, Any] = {}


def commit_changes(desk: Desk, course: Course) -> Applied:
    """Commit what lies in the worktree; where all is committed, nothing is. Raises `Unfit`. Errors:
    `busy`, those of git."""
    repository = desk.repository(course.run)
    with worktrees.alone(repository, place_of(desk, course.attempt)) as hold:
        return _committed(desk, course, (repository, hold))


def apply_patch(desk: Desk, course: Course) -> Applied:
    """Apply the patch or the edits of the last result, and commit them. Raises and errors as
    `commit_changes`."""
    repository, attempt = desk.repository(course.run), course.attempt
    before = course.last_head or str(attempt.base_commit)
    last = next((v for v in reversed(course.visits) if v.kind == "agent" and v.thread_id), None)
    if last is None:
        return Applied("no worker has handed in anything", {})
    about = (course.run, course.task, attempt._replace(thread_id=last.thread_id))
    judged = partial(_unsafe, repository, before)
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        brought = bring_in.bring_in(desk, about, before, (repository, hold), judged)
        if brought.code is not None or brought.made is None:
            return Applied(str(brought.reason), {"code": brought.code})
        done = _committed(desk, course, (repository, hold))
    changed = facts(repository, before, brought.made.commit).files
    notes = list(brought.made.notes)
    more = {"paths": [shown(each.path) for each in changed[:100]]} | (
        {"notes": notes} if notes else {}
    )
    return done._replace(facts={**done.facts, **more})


def _committed(desk: Desk, course: Course, held: tuple[Repository, Hold]) -> Applied:
    repository, _ = held
    attempt = course.attempt
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    found, obstacle = harvesting.commit_there(desk, course.run, course.task, attempt, held)
    if obstacle is not None or found is None:
        return Applied(f"not committed: {obstacle or 'its worktree cannot be looked at'}", {})
    message = "After an action"
    made = snapshots.snapshot(
        repository, worktree, known, ref_of(attempt.id), message, course.last_snapshot
    )
    about = {"commit": found.head, "commits_ahead": found.commits_ahead}
    now = {"tree_after": made.tree, "snapshot": made.commit, "head": made.head}
    return Applied(None, about, now)


def _unsafe(repository: Repository, before: str, made: Brought) -> str | None:
    """By what the trees have, whatever the patch has said."""
    for change in facts(repository, before, made.commit).files:
        path = shown(change.path)
        if any(map(is_gits, change.path.split("/"))):
            return f"{path} belongs to git itself"
        if MODULE in (change.old_mode, change.new_mode):
            return f"{path} is a submodule, or was one"
        if change.new_mode == LINK and leads_out(change.path, change.link_target or ""):
            return f"{path} is a link that leads out of the repository"
    return None
