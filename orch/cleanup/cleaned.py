"""What a clean-up tells: of each worktree what became of it and why, and of a call for certain
tasks why nothing was removed."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..git import salvage
from ..git.failures import shown
from ..git.removal import Deleted, Deletion
from ..runs.model import Attempt
from . import reasons as cleanup
from . import remaining as remaining_refs
from .inspect import Inspected
from .reasons import Reason
from .remaining import Remaining

KEPT, REMOVED, WOULD_REMOVE = "kept", "removed", "would_remove"


class Item(NamedTuple):
    """What became, or would become, of one worktree. `salvage` is the commit that keeps what
    existed only there; `deleted_refs` are gone because their work is in `merged_into`."""

    attempt: Attempt
    key: str
    action: str
    reasons: tuple[Reason, ...]
    merged_into: str | None = None
    salvage: str | None = None
    deleted_refs: tuple[Deletion, ...] = ()
    trash: str | None = None

    def as_json(self) -> dict[str, Any]:
        kept = self.salvage is not None
        return {
            "attempt": self.attempt.id,
            "task": self.attempt.task_id,
            "key": self.key,
            "number": self.attempt.number,
            "state": self.attempt.state,
            "branch": self.attempt.branch,
            "worktree": self.attempt.worktree_path,
            "action": self.action,
            "reasons": [reason.as_json() for reason in self.reasons],
            "merged_into": self.merged_into,
            "salvage_ref": salvage.ref_of(self.attempt.id) if kept else None,
            "salvage_commit": self.salvage,
            "deleted_refs": [{"ref": d.ref, "commit": d.commit} for d in self.deleted_refs],
            "trash": self.trash,
        }


class Cleaned(NamedTuple):
    """What a clean-up did. `emptied` are the attempts whose trash was old enough to go."""

    items: tuple[Item, ...]
    dry_run: bool
    forced: bool
    named: bool
    emptied: tuple[str, ...] = ()

    @property
    def degraded(self) -> bool:
        """Whether something that was asked for by its name stayed after all."""
        return self.named and any(item.action == KEPT for item in self.items)

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [item.as_json() for item in self.items],
            "truncated": False,
            "next_cursor": None,
            "dry_run": self.dry_run,
            "forced": self.forced,
            "emptied": list(self.emptied),
        }


def rest(left: Remaining, deleted: Deleted) -> Item:
    """Of refs that an earlier clean-up could not delete."""
    return Item(
        left.attempt,
        left.key,
        KEPT if deleted.failed else REMOVED,
        remaining_refs.could_not_go(deleted.failed),
        merged_into=remaining_refs.merged_into(left.deletions),
        deleted_refs=tuple(deleted.gone),
    )


def refusal(looked: Sequence[Item], refused: Sequence[Item]) -> InboxOrchError:
    """Of a call for certain tasks: nothing was removed."""
    reasons = [reason for item in refused for reason in item.reasons]
    told = [
        f"{item.key}/{item.attempt.number}: {'; '.join(r.message for r in item.reasons)}"
        for item in refused
    ]
    overridable = all(reason.overridable for reason in reasons)
    return InboxOrchError(
        cleanup.error_code(reasons),
        f"nothing was removed. {'. '.join(told)}"[:2000],
        hint="--force removes it all the same, after salvaging what is not committed"
        if overridable
        else "no flag overrides this",
        details={
            "reasons": sorted({reason.code for reason in reasons}),
            "items": [item.as_json() for item in looked],
        },
    )


def merged_into(seen: Inspected) -> str | None:
    """The branch that has the work of a worktree, if one has."""
    if seen.proof is None or seen.proof.target is None:
        return None
    return shown(seen.proof.target.ref)
