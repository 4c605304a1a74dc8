"""What workers say is done, looked at: commits, what is not committed, the base.

Runs no check (see `judge`). Git is asked outside of any transaction; the verdict is written
guarded by the state that it was found for.
"""

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..gates.checks import Checked
from ..git.commands import NO_ANSWER
from ..git.repository import Found, Repository, is_there
from ..patches.hiding import hidden
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.limits import MOST_MISSING_WORKTREES
from ..runs.model import Attempt, Run, Task
from ..runs.states import NEEDS_WORKTREE
from . import fold, keep, kinds, moving
from . import rows as attempts
from .rows import Details, details_with

if TYPE_CHECKING:
    from .patches import Judged, NotFitting

# Another leader that harvests an attempt decides on it as well: nothing is to wait for that.
_PATIENCE_SECONDS = 0.5
_REPOSITORY_GONE = ("git_failed", "usage")


class Verdict(NamedTuple):
    """Whether a submitted attempt is accepted, and what was seen; `judged` is its change, where it
    is a patch that is still to be written down."""

    state: str
    reason: str | None
    changes: dict[str, Any]
    judged: "Judged | NotFitting | None" = None


def verify(desk: Desk, run: Run) -> int:
    """Decide on every submitted attempt of a run that needs no check run; returns how many
    were decided. No check is run here.

    What cannot be looked at now, because the repository or the worktrees have gone away,
    waits: `obstacle` tells why. Of an attempt with checks it is written down how its worktree
    stands, before any check can change that.
    """
    plain, staged = at_hand(desk, run)
    decided = sum(_verify_one(desk, run, attempt, task) for attempt, task in plain)
    return decided + (kinds.of_stages().advance(desk, run, staged) if staged else 0)


class AtHand(NamedTuple):
    """What lies with the leaders: submitted attempts without a blueprint, with their tasks; and all
    live ones that go by one."""

    submitted: list[tuple[Attempt, Task]]
    staged: list[Attempt]


def at_hand(desk: Desk, run: Run) -> AtHand:
    """The attempts that are submitted and not being verified, and those in stages."""
    with desk.database.snapshot() as snapshot:
        live = attempts.live_of_run(snapshot, run.id)
        plain = [
            (a, tasks.by_id(snapshot, a.task_id))
            for a in live
            if a.state == "submitted" and not a.staged
        ]
    return AtHand(plain, [a for a in live if a.staged])


def submitted(desk: Desk, run: Run) -> list[tuple[Attempt, Task]]:
    """The attempts without a blueprint that are submitted and not being verified."""
    return at_hand(desk, run).submitted


def obstacle(desk: Desk, run: Run) -> str | None:
    """Why submitted work cannot be looked at now; None when it can, or there is none."""
    with desk.database.snapshot() as snapshot:
        live = attempts.live_of_run(snapshot, run.id)
    if not any(a.worktree_path is not None for a in _submitted(live)):
        return None
    try:
        desk.repository(run)
    except InboxOrchError as error:
        if error.code not in _REPOSITORY_GONE:
            raise
        return error.message
    return _worktrees_gone(run, live)


def _verify_one(desk: Desk, run: Run, attempt: Attempt, task: Task) -> bool:
    if was_seen(attempt):
        return False  # only its checks are left
    if attempt.hands_in_text:
        brought = _brought_in(desk, run, attempt, task)
        if brought is None or brought.state != "succeeded":
            return brought is not None and decide(desk, run, attempt, brought)
        attempt = attempt._replace(details=brought.changes["details"])
    return _verify_work(desk, run, attempt, task)


def _verify_work(desk: Desk, run: Run, attempt: Attempt, task: Task) -> bool:
    not_harvested = None
    if attempt.harvest:
        left = _harvested(desk, run, attempt, task)
        if left is None:
            return False  # another leader is at it
        attempt, not_harvested = left
        if attempt.state != "submitted" or was_seen(attempt):
            return False
    verdict = _verdict(desk, run, attempt, task, not_harvested)
    if verdict is None:
        return False
    if verdict.state == "succeeded":
        verdict = _judged(desk, run, attempt, task, verdict)
    if verdict.state == "succeeded" and needs_checks(attempt, task):
        _note_seen(desk, run, attempt, verdict)
        return False
    return decide(desk, run, attempt, verdict)


def _judged(desk: Desk, run: Run, attempt: Attempt, task: Task, verdict: Verdict) -> Verdict:
    """The verdict with what the policy says of the change. Nothing is written down of it yet."""
    head = verdict.changes.get("head_commit")
    if head is None or not run.patches:
        return verdict
    from . import patches  # what is judged by nobody needs none of it

    judged = patches.judge(desk, run, task, attempt, head)
    if judged is None:
        return verdict
    if judged.denied:
        return verdict._replace(state="rejected", reason=judged.rejection, judged=judged)
    if judged.head == head:
        return verdict._replace(judged=judged)
    details = details_with(
        attempt._replace(details=verdict.changes["details"]), Details(handed_in=head)
    )
    changes = {"head_commit": judged.head, "commits_ahead": 1, "details": details}
    return verdict._replace(changes={**verdict.changes, **changes}, judged=judged)


def _brought_in(desk: Desk, run: Run, attempt: Attempt, task: Task) -> Verdict | None:
    """What comes of a change that was handed in as text, once it is in the worktree or cannot be;
    None when it cannot be told now."""
    from . import text_work

    if not is_there(str(attempt.worktree_path)):
        return gone(desk, run, attempt)
    try:
        done = text_work.take_in(desk, run, task, attempt, _PATIENCE_SECONDS)
    except InboxOrchError as error:
        if error.code == "busy":
            return None
        raise
    verdict = "succeeded" if done.reason is None else "rejected"
    return Verdict(verdict, done.reason, {"details": done.details}, done.judged)


def _harvested(
    desk: Desk, run: Run, attempt: Attempt, task: Task
) -> tuple[Attempt, str | None] | None:
    """The attempt once what its worker left is committed, and why that could not be done; None
    when it cannot be told now."""
    from . import harvesting

    try:
        return harvesting.commit_left(desk, run, task, attempt, _PATIENCE_SECONDS)
    except InboxOrchError as error:
        if error.code == "busy":
            return None
        if error.code not in _REPOSITORY_GONE or error.details.get("status") == NO_ANSWER:
            raise
        return attempt, None  # what looks at it comes to the same, and tells


def _note_seen(desk: Desk, run: Run, attempt: Attempt, verdict: Verdict) -> None:
    """Only the checks are left, and they may change the tree or move HEAD."""
    with desk.database.transaction() as tx:
        if _is_still(tx, attempt):
            columns = {**verdict.changes, "updated_at": tx.now.wall_ms}
            attempts.update(tx, attempt.id, columns, expected_state="submitted")
            _record(desk, tx, run, verdict)


def _record(desk: Desk, tx: Transaction, run: Run, verdict: Verdict) -> None:
    if verdict.judged is not None:
        from . import patches

        patches.record(desk, tx, run, verdict.judged)


def decide(desk: Desk, run: Run, attempt: Attempt, verdict: Verdict) -> bool:
    """Write down what a submitted attempt has come to, or ask whoever has to approve of it; False
    when another leader was quicker."""
    if verdict.state == "succeeded" and verdict.judged is not None and verdict.judged.asked:
        with desk.database.transaction() as tx:
            return _ask(desk, tx, run, attempt, verdict)
    settled = partial(_decided, desk, run, attempt, verdict)
    head = verdict.changes.get("head_commit")
    if verdict.state == "succeeded" and head is not None:
        begin = partial(_begin_accepting, desk, run, attempt, head)
        accept = partial(keep.begin_and_accept, desk, run, attempt, head, begin, settled)
        return accept() or (keep.put_back_left(desk, run, attempt) and accept())
    with desk.database.transaction() as tx:
        return settled(tx)


def _begin_accepting(desk: Desk, run: Run, attempt: Attempt, head: str, tx: Transaction) -> bool:
    """Write down that this process accepts it. A leader that looked earlier must not be the last
    to set the ref, and to something else."""
    if not _is_still(tx, attempt) or keep.is_open(tx, attempt):
        return False
    keep.open_verification(desk, tx, attempt, keep.facts_of(head))
    return True


def _ask(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, verdict: Verdict) -> bool:
    if not _is_still(tx, attempt):
        return False
    _record(desk, tx, run, verdict)
    columns = {**verdict.changes, "updated_at": tx.now.wall_ms}
    attempts.update(tx, attempt.id, columns, expected_state="submitted")
    present = attempts.get(tx, attempt.id)
    assert present is not None
    kinds.of_stages().ask_approval(desk, tx, run, present)
    return True


def _decided(desk: Desk, run: Run, attempt: Attempt, verdict: Verdict, tx: Transaction) -> bool:
    if not _is_still(tx, attempt):
        return False
    _record(desk, tx, run, verdict)
    moved = moving.move_attempt(
        desk, tx, run, attempt, moving.Move("verifying", "the worker is done")
    )
    settle(desk, tx, run, moved, verdict)
    return True


def _is_still(tx: Transaction, attempt: Attempt) -> bool:
    """Whether a submitted attempt is as it was when it was looked at. Once its checks have
    begun, what a slow leader has seen in its worktree may be their doing."""
    present = attempts.get(tx, attempt.id)
    assert present is not None
    return present.state == "submitted" and was_seen(present) == was_seen(attempt)


def settle(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, verdict: Verdict) -> None:
    """Write down the verdict on an attempt that is being verified, in the caller's transaction.
    What is accepted is kept by then; see `keep`."""
    changes = {**verdict.changes, "reason": verdict.reason}
    if verdict.state == "succeeded":
        _accept(desk, tx, run, attempt, changes)
    else:
        cause = verdict.reason or verdict.state
        fold.end_attempt(desk, tx, run, attempt, moving.Move(verdict.state, cause, changes))


def _verdict(
    desk: Desk, run: Run, attempt: Attempt, task: Task, not_harvested: str | None
) -> Verdict | None:
    """None when it cannot be told now. `not_harvested` is why what is not committed was not
    committed for the worker."""
    if attempt.worktree_path is None or attempt.base_commit is None:
        return Verdict("succeeded", None, {})
    try:
        repository = desk.repository(run)
    except InboxOrchError as error:
        if error.code not in _REPOSITORY_GONE:
            raise
        return None
    try:
        known = untracked_at_start(attempt)
        found = repository.look_at(attempt.worktree_path, attempt.base_commit, known)
    except InboxOrchError as error:
        return _unreadable(desk, run, attempt, error)
    if found is None:
        return gone(desk, run, attempt)
    reasons, details = objections(found, task.allow_empty, not_harvested)
    if attempt.harvest and not reasons and needs_checks(attempt, task):
        details = details._replace(harvest=False)
    if found.head is not None:
        summary = hidden(repository.change_summary(found.head, attempt.base_commit))
        details = details._replace(change_summary=summary)
    changes = {
        "head_commit": found.head,
        "commits_ahead": found.commits_ahead,
        "details": details_with(attempt, details),
    }
    if reasons:
        return Verdict("rejected", "; ".join(reasons), changes)
    return Verdict("succeeded", None, changes)


def _unreadable(desk: Desk, run: Run, attempt: Attempt, error: InboxOrchError) -> Verdict | None:
    """The verdict when git cannot make sense of a worktree; raises what is this machine's
    trouble, not the worker's."""
    if error.code != "git_failed" or error.details.get("status") == NO_ANSWER:
        raise error
    if not is_there(str(attempt.worktree_path)):
        return gone(desk, run, attempt)  # it has gone away meanwhile
    # What cannot be examined cannot be accepted; nor may it hold the run up for ever.
    return Verdict("rejected", f"unreadable: {error.message}"[:1000], {})


def gone(desk: Desk, run: Run, attempt: Attempt) -> Verdict | None:
    """The verdict on an attempt whose worktree is not there; None when it may come back."""
    return None if obstacle(desk, run) else _lost(desk.repository(run), attempt)


def _accept(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, changes: dict[str, Any]
) -> None:
    if run.patches:
        from . import patches

        checks = attempts.details_of(attempt).checks
        patches.accepted(desk, tx, run, attempt, gates=bool(checks))
    accepted = moving.move_attempt(
        desk, tx, run, attempt, moving.Move("succeeded", "accepted", changes)
    )
    task = tasks.by_id(tx, attempt.task_id)
    moving.move_task(
        desk,
        tx,
        run,
        task,
        moving.Move(
            "succeeded",
            "attempt accepted",
            {
                "accepted_attempt": accepted.id,
                "accepted_head": accepted.head_commit,
                "next_base": None,
                "next_base_source": None,
                "reason": None,
            },
        ),
        attempt=accepted,
    )


def _submitted(live: Sequence[Attempt]) -> list[Attempt]:
    """Those that a leader looks at: also between two stages of which no worker had the first."""
    return [
        a
        for a in live
        if a.state in ("submitted", "verifying") or (a.staged and a.state == "provisioned")
    ]


def _worktrees_gone(run: Run, live: Sequence[Attempt]) -> str | None:
    """A file system that is not mounted must not be taken for work that is lost."""
    needed = [str(a.worktree_path) for a in live if _needs_worktree(a)]
    missing = [path for path in needed if not is_there(path)]
    folder = os.path.join(str(run.worktree_root), run.name)
    if missing and not os.path.isdir(folder):
        return f"the worktrees' folder {folder} is not there: mount it again, or make it"
    if len(missing) > MOST_MISSING_WORKTREES:
        return f"{len(missing)} worktrees in {folder} are missing at once: put them back"
    return None


def _needs_worktree(attempt: Attempt) -> bool:
    return attempt.worktree_path is not None and attempt.state in NEEDS_WORKTREE


def _lost(repository: Repository, attempt: Attempt) -> Verdict:
    """The worktree is gone. What was committed there is kept before the attempt ends."""
    reason = f"the worktree {attempt.worktree_path} is gone"
    head = repository.ref_commit(f"refs/heads/{attempt.branch}")
    if head is None or head == attempt.base_commit:
        return Verdict("lost", reason, {})
    late = f"refs/orch/late/{attempt.id}"
    repository.keep(late, head)
    return Verdict("lost", f"{reason}; its commits are kept at {late}", {})


def needs_checks(attempt: Attempt, task: Task) -> bool:
    """Whether commands have to succeed in its worktree before it is accepted."""
    return bool(task.checks) and attempt.worktree_path is not None


def was_seen(attempt: Attempt) -> bool:
    """Whether it is written down how the worktree stood when the worker was done, and only the
    checks are left."""
    return attempt.head_commit is not None


def checks_of(attempt: Attempt) -> list[Checked]:
    """What the checks of an attempt have come to so far."""
    return list(attempts.details_of(attempt).checks or ())


def untracked_at_start(attempt: Attempt) -> tuple[str, ...]:
    """Untracked paths that lay in the worktree when it was handed out."""
    return attempts.details_of(attempt).untracked_at_start or ()


def objections(
    found: Found, allow_empty: bool, not_harvested: str | None = None
) -> tuple[list[str], Details]:
    """Why work cannot be accepted as it stands, and the paths that are in the way;
    `not_harvested` is why what is not committed was not committed for the worker."""
    reasons: list[str] = []
    if found.dirty_paths:
        reasons.append("dirty: not committed: " + ", ".join(found.dirty_paths[:10]))
        if not_harvested is not None:
            reasons.append(f"not harvested: {not_harvested}")
    if found.unpushed_submodules:
        paths = ", ".join(found.unpushed_submodules[:10])
        reasons.append(f"submodule: {paths}: push its commit to a remote of it, it is only here")
    if found.head is None:
        reasons.append("base: HEAD names no commit")
    elif not found.contains_base:
        reasons.append("base: HEAD does not build on the base commit")
    elif found.commits_ahead == 0 and not allow_empty:
        reasons.append("empty: no commit on top of the base")
    in_the_way = Details(
        dirty_paths=found.dirty_paths or None,
        unpushed_submodules=found.unpushed_submodules or None,
    )
    return reasons, in_the_way
