"""Refused work of an agent that somebody has let in after all: taken up as it was handed in,
without another visit of an agent.

It begins at what the visit before has left, as every action does, and is judged like one; done
again after a crash it comes to the same.
"""

from ..attempts import texts, verify
from ..git import bringing, snapshots, worktrees
from ..git import signed as signing
from ..git.integrating import Move
from ..git.masking import masked
from ..git.repository import Repository
from ..git.signed import Signed
from ..git.snapshots import ref_of
from ..git.unfit import NotApplied
from ..patches import rows as patches
from ..patches.model import Patch
from ..runs.config import config_of
from ..runs.desk import Desk, place_of
from ..runs.secrets import secrets_of
from .applying import Applied
from .course import Course
from .judging import By

REASON = "the refused patch is taken as it is"


def take(desk: Desk, course: Course) -> Applied:
    """Bring the patch that was let in into the worktree. What somebody has left there since is kept
    in a snapshot first. Raises `Unfit`. Errors: `busy`, those of git."""
    repository, attempt, patch = desk.repository(course.run), course.attempt, _patch(desk, course)
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    before, start = course.last_snapshot, course.last_head
    assert before is not None and start is not None, "the first visit has both"
    facts = {"patch": patch.id, "visit": patch.visit}
    head = _head(repository, patch, start, _message(desk, course, patch))
    with worktrees.alone(repository, place_of(desk, attempt)) as hold:
        snapshots.restore(repository, worktree, hold, before, known)
        try:
            bringing.bring(repository, worktree, hold, Move(str(attempt.branch), head, start))
        except NotApplied as refused:
            return Applied(str(refused), facts)
        message = "After refused work was taken"
        made = snapshots.snapshot(repository, worktree, known, ref_of(attempt.id), message, before)
    now = {"tree_after": made.tree, "snapshot": made.commit, "head": made.head}
    return Applied(None, facts, {**now, "worker": patch.author})


def by(desk: Desk, course: Course) -> By:
    """How that change came, who wrote it, and in which words."""
    patch = _patch(desk, course)
    return By(patch.way, str(patch.author), _words(desk, course, patch))


def _patch(desk: Desk, course: Course) -> Patch:
    """The one that the last decision is about."""
    last = next(v for v in reversed(course.visits) if v.kind == "decision" and not v.live)
    with desk.database.snapshot() as snapshot:
        patch = patches.get(snapshot, str(last.found["stopped"]["patch"]))
    assert patch is not None and patch.visit is not None, "what was refused came in a visit"
    return patch


def _head(repository: Repository, patch: Patch, start: str, message: str) -> str:
    """A commit of the patch on what lies there: its own, if that stands on it."""
    head = str(patch.head)
    if repository.contains(head, start):
        return head
    signed = Signed(str(patch.author), patch.created_at // 1000, message)
    return signing.commit_of(repository, str(patch.tree), start, signed)


def _message(desk: Desk, course: Course, patch: Patch) -> str:
    secrets = secrets_of(config_of(course.run))
    words = masked(_words(desk, course, patch), secrets)
    return texts.commit_message(masked(course.task.title, secrets), words)


def _words(desk: Desk, course: Course, patch: Patch) -> str:
    thread = course.visits[int(patch.visit or 1) - 1].thread_id
    said = None if thread is None else desk.bus.last_message(thread, "result")
    return "" if said is None else said.body or ""
