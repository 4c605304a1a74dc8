"""Work that was left uncommitted is work: an attempt that is to be harvested gets it committed
before it is judged.

Whether it is to be is written down with the attempt when it is dispatched. It is done, and written
down that it is over, in one hold of the attempt's lock: what another leader's checks leave from
then on must not be taken for the worker's. Decides nothing.
"""

from typing import NamedTuple

from ..git import harvest, worktrees
from ..git.harvest import Unfit
from ..git.masking import masked
from ..git.repository import Found, Repository
from ..git.worktrees import Hold
from ..runs.config import config_of
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import moving, texts
from . import rows as attempts
from .rows import Details, Harvested, details_with


class Committed(NamedTuple):
    """The attempt once what was left is committed, why that could not be done, or not to the end,
    and how the worktree stands; None where it was not looked at."""

    attempt: Attempt
    obstacle: str | None
    found: Found | None = None


ROUNDS = 3
"""So often it is committed anew what a process, which goes on there, has written meanwhile."""


def commit_left(
    desk: Desk, run: Run, task: Task, attempt: Attempt, seconds: float | None = None
) -> tuple[Attempt, str | None]:
    """Commit what the worker of an attempt has left, unless another leader has done so; the
    attempt as it is then, and why that could not be done, or not to the end.

    Errors: `busy` when another leader is at it for so many seconds, by default a minute; those of
    `Desk.repository` and `Repository.look_at`, and of git where this machine is the cause.
    """
    repository = desk.repository(run)
    with worktrees.alone(repository, place_of(desk, attempt), seconds) as hold:
        done = commit_left_in(desk, run, task, attempt, (repository, hold))
        return done.attempt, done.obstacle


def commit_left_in(
    desk: Desk, run: Run, task: Task, attempt: Attempt, held: tuple[Repository, Hold]
) -> Committed:
    """`commit_left` for a caller that has the attempt's lock, given with its repository."""
    repository, hold = held
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, attempt.id)
    assert present is not None
    if present.state != attempt.state or not present.harvest:
        return Committed(present, None)
    found, obstacle = _harvest(desk, run, task, present, repository, hold)
    if found is None or found.head is None:
        return Committed(present, obstacle, found)
    base = str(attempt.base_commit)
    done = harvest.harvest_in(repository, found.head, base) if found.commits_ahead else None
    # With a blueprint that is over with the visit, which its caller ends in the same hold.
    noted = _note(desk, run, present, done, over=obstacle is None and not present.staged)
    return Committed(noted, obstacle, found)


def commit_there(
    desk: Desk, run: Run, task: Task, attempt: Attempt, held: tuple[Repository, Hold]
) -> tuple[Found | None, str | None]:
    """Commit what lies in the worktree of an attempt, whoever has left it; how it stands then, and
    why not all of it is committed. `held` is the repository with the attempt's lock. Nothing is
    written down of it. Errors: those of git where this machine is the cause."""
    repository, hold = held
    return _harvest(desk, run, task, attempt, repository, hold)


def _harvest(
    desk: Desk, run: Run, task: Task, attempt: Attempt, repository: Repository, hold: Hold
) -> tuple[Found | None, str | None]:
    """How the worktree stands then, and why not all of it is committed."""
    worktree, base = str(attempt.worktree_path), str(attempt.base_commit)
    known = attempts.details_of(attempt).untracked_at_start or ()
    found = repository.look_at(worktree, base, known)
    obstacle, left = None, None
    for _ in range(ROUNDS):
        if found is None or not found.dirty_paths or obstacle is not None:
            break
        left = left or left_by(desk, run, task, attempt)
        obstacle = _commit(repository, left, found, hold)
        if obstacle is None:
            found = repository.look_at(worktree, base, known)
    if found is not None and found.dirty_paths:
        obstacle = obstacle or "something writes on there"
    return found, obstacle


def _commit(repository: Repository, left: harvest.Left, found: Found, hold: Hold) -> str | None:
    """Why it could not be committed."""
    try:
        with hold.shared() as lock:
            harvest.commit_left(repository, left, found, (lock,))
    except Unfit as unfit:
        return str(unfit)
    return None


def left_by(desk: Desk, run: Run, task: Task, attempt: Attempt) -> harvest.Left:
    """The commit that what a worker has left is to become, in its name and words."""
    thread_id = attempt.thread_id
    last, lease = None, None
    if thread_id is not None:  # there is none before the first worker of a blueprint
        result = desk.bus.last_message(thread_id, "result")
        last = result or desk.bus.last_message(thread_id, "failure")
        lease = desk.bus.last_lease(thread_id)
    holder = attempt.mailbox if lease is None else lease.holder
    secrets = secrets_of(config_of(run))
    words = "" if last is None else last.body or ""
    title = f"{task.title} ({attempt.stage})" if attempt.staged else task.title
    return harvest.Left(
        str(attempt.worktree_path),
        str(attempt.branch),
        attempts.details_of(attempt).untracked_at_start or (),
        holder if last is None else last.sender,
        (attempt.updated_at if last is None else last.created_at) // 1000,
        texts.commit_message(masked(title, secrets), masked(words, secrets)),
        attempt.base_commit if attempt.staged else None,
    )


def _note(
    desk: Desk, run: Run, attempt: Attempt, done: harvest.Harvest | None, *, over: bool
) -> Attempt:
    """Write down what was committed, and tell of it, and whether that is all; the attempt then."""
    harvested = None if done is None else Harvested(done.commit, done.files)
    if harvested is None and not over:
        return attempt
    with desk.database.transaction() as tx:
        before = attempts.get(tx, attempt.id)
        assert before is not None
        if before.state != attempt.state or not before.harvest:
            return before  # it was cancelled, say
        column = details_with(before, Details(harvest=False if over else None, harvested=harvested))
        columns = {"details": column, "updated_at": tx.now.wall_ms}
        attempts.update(tx, attempt.id, columns, expected_state=before.state)
        after = before._replace(details=column, updated_at=tx.now.wall_ms)
        if harvested is not None and harvested != attempts.details_of(before).harvested:
            facts = {"harvested": harvested._asdict()}
            moving.record_attempt(desk, tx, run, after, "work_harvested", facts)
        return after
