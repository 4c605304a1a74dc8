"""What a removal is going to do, in the form in which an intent keeps it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..git import merged, snapshots
from ..git.merged import Proof, Target
from ..git.removal import Deletion
from ..git.repository import Repository
from ..runs.model import Attempt


class Removal(NamedTuple):
    """`salvage` is the commit to keep; `was_there` whether there is a worktree to move."""

    deletions: tuple[Deletion, ...]
    salvage: str | None
    was_there: bool

    def as_data(self) -> dict[str, Any]:
        """As an intent stores it."""
        return {
            "deletions": [
                [d.ref, d.commit, None if d.target is None else list(d.target)]
                for d in self.deletions
            ],
            "salvage": self.salvage,
            "was_there": self.was_there,
        }


def planned(gone: Sequence[Deletion], commit: str | None, *, was_there: bool) -> Removal:
    """A removal that deletes these refs."""
    return Removal(tuple(gone), commit, was_there)


def removal_from(data: Mapping[str, Any]) -> Removal:
    """What an intent has stored."""
    gone = [
        Deletion(ref, commit, None if target is None else Target(*target))
        for ref, commit, target in data["deletions"]
    ]
    return Removal(tuple(gone), data["salvage"], data["was_there"])


def deletions(
    repository: Repository,
    attempt: Attempt,
    targets: Sequence[Target],
    head: str | None,
    proof: Proof | None,
) -> list[Deletion]:
    """The refs of an attempt that may go with its worktree.

    The branch goes when its work is in a target, whichever way, unless it has another name. The
    accepted head and a merged base go only when their commits stay in a target's history: later
    attempts and integrations build on the commits themselves. Its snapshots go when every tree that
    they kept is one of a target's history.
    """
    branch = f"refs/heads/{attempt.branch}"
    gone = []
    tip = repository.ref_commit(branch)
    if tip is not None and not repository.has_other_names(branch):
        found = proof if tip == head else _proof(repository, tip, targets, branch)
        found = found or _nothing_of_its_own(repository, attempt, tip, branch)
        if found is not None:
            gone.append(Deletion(branch, tip, found.target))
    for ref in (f"refs/orch/heads/{attempt.id}", f"refs/orch/base/{attempt.id}"):
        commit = repository.ref_commit(ref)
        target = None if commit is None else _containing(repository, commit, targets)
        if commit is not None and target is not None:
            gone.append(Deletion(ref, commit, target))
    return gone + _snapshots(repository, attempt, targets)


def _snapshots(
    repository: Repository, attempt: Attempt, targets: Sequence[Target]
) -> list[Deletion]:
    """The ref of its snapshots, when a target has every state that they kept."""
    ref = snapshots.ref_of(attempt.id)
    commit = repository.ref_commit(ref)
    if commit is None:
        return []
    base = str(attempt.base_commit)
    has = (t for t in targets if snapshots.is_elsewhere(repository, commit, t.commit, base))
    target = next(has, None)
    return [] if target is None else [Deletion(ref, commit, target)]


def is_contained(repository: Repository, deletion: Deletion) -> bool:
    """Whether the commit of a ref that goes stays in the history of another."""
    target = deletion.target
    return target is None or repository.contains(target.commit, deletion.commit)


def _proof(
    repository: Repository, commit: str, targets: Sequence[Target], branch: str
) -> Proof | None:
    return merged.proof_of(repository, commit, [t for t in targets if t.ref != branch])


def _nothing_of_its_own(
    repository: Repository, attempt: Attempt, tip: str, branch: str
) -> Proof | None:
    """A branch that is where it began, at a commit that something else keeps."""
    if tip != attempt.base_commit:
        return None
    ours = (branch, f"refs/orch/base/{attempt.id}", f"refs/orch/heads/{attempt.id}")
    return Proof("no_commits", None) if merged.kept_elsewhere(repository, tip, ours) else None


def _containing(repository: Repository, commit: str, targets: Sequence[Target]) -> Target | None:
    return next((t for t in targets if repository.contains(t.commit, commit)), None)
