"""Looking whether an attempt's worktree may be taken away. Changes nothing.

Whatever cannot be told counts against it.
"""

import os
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes import processes

from ..attempts import rows as attempts
from ..git import administration, condition, merged, salvage
from ..git.condition import Condition
from ..git.failures import shown
from ..git.merged import Proof, Target
from ..git.repository import Repository
from ..git.worktrees import Place
from ..integration import rules as integration
from ..journal import rows as journal_rows
from ..runs.desk import Desk, place_of
from ..runs.limits import MOST_MISSING_WORKTREES
from ..runs.model import Attempt, Run
from .reasons import Reason, about


class Inspected(NamedTuple):
    """What stands against removing a worktree, and what was seen. `condition` is None when
    nothing is there any more, or it was not looked at; `proof` tells where HEAD's work is."""

    reasons: tuple[Reason, ...]
    condition: Condition | None = None
    proof: Proof | None = None


def targets(run: Run, repository: Repository) -> tuple[Target, ...]:
    """Where finished work is looked for: the run's integration branch, the ref that the run
    is based on, and the branch of the main working tree."""
    wanted = [f"refs/heads/{integration.branch_of(run)}", run.base_ref, "HEAD"]
    found = [merged.target_of(repository, name) for name in wanted if name]
    return tuple(dict.fromkeys(target for target in found if target is not None))


def require_mounted(desk: Desk, run: Run, repository: Repository) -> None:
    """Error `unsafe_removal` when more than three worktrees of a run are missing at once:
    then what they lie on has gone away, and nothing about them can be told."""
    with desk.database.snapshot() as snapshot:
        there = attempts.with_worktree(snapshot, run.id)
    missing = [
        str(a.worktree_path)
        for a in there
        if not os.path.lexists(str(a.worktree_path))
        and administration.absent(repository, place_of(desk, a)) is not None
    ]
    if len(missing) > MOST_MISSING_WORKTREES:
        raise InboxOrchError(
            "unsafe_removal",
            f"{len(missing)} worktrees of run {run.name} are missing at once:"
            " what they lie on seems to be gone",
            hint="mount it again. For each that is gone for good:"
            f" git -C {shlex.quote(repository.path)} worktree remove -f -f PATH",
            details={"reasons": ["missing"], "worktrees": missing[:100]},
        )


def inspect(
    desk: Desk, run: Run, repository: Repository, attempt: Attempt, within: str | None
) -> Inspected:
    """Everything that stands against removing an attempt's worktree. `within` is the folder
    in which the command was called."""
    busy = _still_used(desk, run, attempt)
    if busy is not None:
        return Inspected((busy,))
    place = place_of(desk, attempt)
    if not os.path.lexists(place.path):
        return _inspect_absent(repository, place)
    mismatch = administration.mismatch(repository, place)
    if mismatch is not None:
        return Inspected((about(mismatch.code, shown(mismatch.message)),))
    inside = _inside(place.path, within)
    try:
        found = condition.look(place.path, repository.common_directory)
        proof = _proof(run, repository, attempt, found.head)
    except (InboxOrchError, OSError) as error:
        message = error.message if isinstance(error, InboxOrchError) else str(error)
        return Inspected((*inside, about("unreadable", message[:500])))
    reasons = (
        *inside,
        *_ownership(run, attempt, found),
        *_unsalvageable(place.path, found),
        *_dirt(found),
        *_unmerged(found, proof),
    )
    return Inspected(reasons, found, proof)


def _still_used(desk: Desk, run: Run, attempt: Attempt) -> Reason | None:
    if attempt.live:
        return about("live_attempt", f"the attempt is {attempt.state}{_held(desk, attempt)}")
    if attempt.thread_id is not None:
        thread = desk.bus.threads([attempt.thread_id])[attempt.thread_id]
        if desk.bus.cancel_settles_at(thread.id) is not None or thread.state == "claimed":
            return about("live_lease", f"it may be worked on still{_held(desk, attempt)}")
    with desk.database.snapshot() as snapshot:
        begun = journal_rows.open_intents(snapshot, run.id)
    if any(i.attempt_id == attempt.id and i.kind != "cleanup" for i in begun):
        return about("unfinished", "something was begun and not finished: `orch reconcile`")
    return None


def _held(desk: Desk, attempt: Attempt) -> str:
    """By whom, and until when, if there was a lease."""
    lease = None if attempt.thread_id is None else desk.bus.last_lease(attempt.thread_id)
    if lease is None or lease.ended_by not in (None, "cancelled"):
        return ""
    return f": {lease.holder} has its lease until {rfc3339(lease.expires_at)}"


def _proof(run: Run, repository: Repository, attempt: Attempt, head: str | None) -> Proof | None:
    """Where the work of a commit is; None when it is nowhere else."""
    if head is None:
        return None
    own = f"refs/heads/{attempt.branch}"
    others = [t for t in targets(run, repository) if t.ref != own]
    proof = merged.proof_of(repository, head, others) or _by_accepted(
        repository, attempt, head, others
    )
    if proof is not None:
        return proof
    assert attempt.base_commit is not None
    ours = (own, f"refs/orch/base/{attempt.id}", f"refs/orch/heads/{attempt.id}")
    if repository.contains(attempt.base_commit, head) and merged.kept_elsewhere(
        repository, head, ours
    ):
        return Proof("no_commits", None)
    return None


def _by_accepted(
    repository: Repository, attempt: Attempt, head: str, others: Sequence[Target]
) -> Proof | None:
    """Where the commit is with which the work was accepted, if that has the very tree of HEAD: the
    worker's own history was left out on purpose."""
    accepted = attempt.head_commit
    if accepted in (None, head, attempt.base_commit):
        return None
    trees = {repository.ref_commit(f"{commit}^{{tree}}") for commit in (accepted, head)}
    if len(trees) > 1 or None in trees:
        return None
    found = merged.proof_of(repository, str(accepted), others)
    return None if found is None else Proof("same_tree", found.target)


def _inspect_absent(repository: Repository, place: Place) -> Inspected:
    """A worktree that is not where it was made: moved, on a disk that is gone, or deleted."""
    found = administration.absent(repository, place)
    return Inspected(() if found is None else (about(found.code, shown(found.message)),))


def _inside(path: str, within: str | None) -> tuple[Reason, ...]:
    reasons = []
    top = os.path.realpath(path)
    if within is not None and (os.path.realpath(within) + os.sep).startswith(top + os.sep):
        reasons.append(about("own_directory", "the command was called from inside"))
    pids = processes.inside(path)
    if pids:
        reasons.append(about("process_inside", "processes work there", tuple(map(str, pids))))
    return tuple(reasons)


def _ownership(run: Run, attempt: Attempt, found: Condition) -> tuple[Reason, ...]:
    own = f"refs/heads/{attempt.branch}"
    if not own.startswith(f"refs/heads/orch/{run.name}/"):
        return (about("foreign_branch", f"{attempt.branch} is no branch that orch has made"),)
    if found.branch in (None, own):
        return ()
    return (
        about(
            "foreign_branch",
            f"{shown(str(found.branch))} is checked out, which orch has not made;"
            " `git switch --detach` there leaves it",
        ),
    )


def _unsalvageable(path: str, found: Condition) -> tuple[Reason, ...]:
    reasons = [
        about(
            "submodule_commits" if nested.submodule else "nested_repository",
            f"{shown(nested.path)}: {nested.problem}",
        )
        for nested in found.nested
    ]
    size = salvage.sizes(path, found)
    if size.content_bytes > salvage.MAX_BYTES:
        text = f"{size.files} files of {size.content_bytes} bytes are in no commit"
        reasons.append(about("salvage_too_large", f"{text}: more than {salvage.MAX_BYTES}"))
    return tuple(reasons)


def _dirt(found: Condition) -> tuple[Reason, ...]:
    tracked = [p for p in (*found.tracked, *found.unmerged) if p not in found.hidden]
    kinds: tuple[tuple[str, str, Sequence[str]], ...] = (
        ("in_progress", "in the middle of", found.in_progress),
        ("dirty", "not committed", tracked),
        ("hidden", "changed, and marked so that git does not show it", found.hidden),
        ("untracked", "untracked", found.untracked),
        ("ignored_changed", "ignored, and changed since it was handed out", found.ignored),
        ("submodule_changed", "submodules that are at another commit", found.submodules),
    )
    return tuple(
        about(code, message, tuple(map(shown, items))) for code, message, items in kinds if items
    )


def _unmerged(found: Condition, proof: Proof | None) -> tuple[Reason, ...]:
    if found.head is None or proof is not None:
        return ()
    return (about("unmerged_work", "in no branch that stays", (found.head,)),)
