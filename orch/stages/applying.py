"""The actions that write into the worktree of an attempt: applying a patch that a worker handed in,
and committing what lies there.

Each begins at the tree that was judged last, and ends with a commit on the attempt's branch, in the
attempt's lock; done again after a crash it comes to the same.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Message

from ..attempts import harvesting, verify
from ..git import applying, snapshots, worktrees
from ..git.applying import Edit
from ..git.facts import facts
from ..git.failures import shown
from ..git.repository import Repository
from ..git.snapshots import Unfit, ref_of
from ..git.worktrees import Hold
from ..patches.floor import LINK, MODULE, is_gits, leads_out
from ..runs.desk import Desk, place_of
from . import patch_text
from .course import Course
from .patch_text import Refused


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
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    before = str(course.last_tree)
    try:
        tree = _tree_wanted(desk, course, repository, before)
    except (Refused, Unfit) as refused:
        return Applied(str(refused)[:1000], {})
    if tree == before:
        return Applied("the patch changes nothing", {})
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        paths = snapshots.put_back(repository, worktree, tree, known, ref_of(attempt.id))
        done = _committed(desk, course, (repository, hold))
        if done.obstacle is not None and course.last_snapshot is not None:
            snapshots.restore(repository, worktree, hold, course.last_snapshot, known)
    return done._replace(facts={**done.facts, "paths": [shown(path) for path in paths[:100]]})


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


# -- what was handed in --------------------------------------------------------------------


def _tree_wanted(desk: Desk, course: Course, repository: Repository, before: str) -> str:
    handed = _handed_in(desk, course)
    patch, edits = handed.get("patch"), handed.get("edits")
    if (patch is None) == (edits is None):
        raise Refused("the last result has not either `patch` or `edits` in its payload")
    if edits is not None:
        wanted = [Edit(*each) for each in patch_text.edits_of(edits)]
        tree = applying.edited(repository, before, wanted)
    else:
        if not isinstance(patch, str):
            raise Refused("`patch` is the text of a unified diff")
        patch_text.check_patch(patch)
        tree = applying.patched(repository, before, patch.encode("utf-8", "surrogateescape"))
    _refuse_unsafe(repository, before, tree)
    return tree


def _handed_in(desk: Desk, course: Course) -> dict[str, Any]:
    last = next((v for v in reversed(course.visits) if v.kind == "agent" and v.thread_id), None)
    if last is None:
        raise Refused("no worker has handed in anything")
    for text in _texts_of(desk.bus.last_message(str(last.thread_id), "result")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and ("patch" in value or "edits" in value):
            return value
    return {}


def _texts_of(said: Message | None) -> list[str]:
    return [] if said is None else [text for text in (said.payload, said.body) if text]


def _refuse_unsafe(repository: Repository, before: str, after: str) -> None:
    """By what the trees have, whatever the patch has said."""
    for change in facts(repository, before, after).files:
        path = shown(change.path)
        if any(map(is_gits, change.path.split("/"))):
            raise Refused(f"{path} belongs to git itself")
        if MODULE in (change.old_mode, change.new_mode):
            raise Refused(f"{path} is a submodule, or was one")
        if change.new_mode == LINK and leads_out(change.path, change.link_target or ""):
            raise Refused(f"{path} is a link that leads out of the repository")
