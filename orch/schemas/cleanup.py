"""The `data` of `cleanup` and of the commands about attempts."""

from typing import Annotated, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Shape, Ulid

from .things import Attempt, AttemptState, Commit, Key, Patch, Positive, Visit, Work

ReasonCode = Literal[
    "live_attempt",
    "live_lease",
    "process_inside",
    "unfinished",
    "own_directory",
    "main_worktree",
    "missing",
    "foreign_worktree",
    "foreign_lock",
    "foreign_branch",
    "nested_repository",
    "submodule_commits",
    "salvage_too_large",
    "unreadable",
    "changing",
    "failed",
    "in_progress",
    "dirty",
    "hidden",
    "untracked",
    "ignored_changed",
    "submodule_changed",
    "unmerged_work",
]
SalvageRef = Annotated[str, Field(pattern=r"^refs/orch/salvage/[0-9A-Z]{26}$")]
PartName = Literal["Index", "Changed", "Stage-1", "Stage-2", "Stage-3"]


class Reason(Shape):
    """What stands against removing a worktree. `items` are the first 100 of `count` paths,
    processes or commits; `overridable`: `--force` overcomes it."""

    code: ReasonCode
    message: str
    items: list[str]
    count: Count
    overridable: bool


class DeletedRef(Shape):
    """A ref that is gone because its work is elsewhere, and the commit that it had."""

    ref: str
    commit: Commit


class CleanedItem(Shape):
    """One worktree. With `--force` a removed one has the reasons that were overcome.
    `merged_into`: where its work was found; `trash`: where the folder is for seven days."""

    attempt: Ulid
    task: Ulid
    key: Key
    number: Positive
    state: AttemptState
    branch: str | None
    worktree: str | None
    action: Literal["kept", "removed", "would_remove"]
    reasons: list[Reason]
    merged_into: str | None
    salvage_ref: SalvageRef | None
    salvage_commit: Commit | None
    deleted_refs: list[DeletedRef]
    trash: str | None


class Cleaned(Shape):
    """`cleanup`; also beside the error `degraded`. `emptied`: attempts whose trash was deleted."""

    items: list[CleanedItem]
    truncated: bool
    next_cursor: None
    dry_run: bool
    forced: bool
    emptied: list[Ulid]


class AttemptRow(Attempt):
    """An attempt with its task's key."""

    key: Key


class AttemptList(Shape):
    """`attempt list`."""

    items: list[AttemptRow]
    truncated: bool
    next_cursor: None


class AttemptShown(Shape):
    """`attempt show`. `salvage_parts`: commits of the index, of each stage of what was unmerged,
    and of the changed files alone; `kept_commits`: the last of those that would be lost without
    it, each with what it builds on; `visits` are there where it goes by a blueprint, `patches`
    where a policy is in force, or they say more than the attempt does."""

    attempt: AttemptRow
    worktree_exists: bool
    salvage_ref: SalvageRef | None
    salvage_parts: dict[PartName, Commit] | None
    kept_commits: list[Commit]
    trash: str | None
    work: Work | None
    visits: list[Visit] | None = None
    patches: list[Patch] | None = None


class AttemptRestored(Shape):
    """`attempt restore`. `changed` of the `files` came back as they were stored; the others were
    checked out, or, if their filters failed (`unfiltered`), written without those."""

    attempt: AttemptRow
    folder: str
    salvage_ref: SalvageRef
    salvage_commit: Commit
    salvage_parts: dict[PartName, Commit]
    kept_commits: list[Commit]
    files: Count
    changed: Count
    unfiltered: str | None
