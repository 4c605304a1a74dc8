"""The `data` of `purge`."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Shape

from .things import Positive


class PurgePlace(Shape):
    """Where the values stand. `count`: rows, files, refs, objects, bytes of `free_pages`; `items`
    are the first 20. `found`: a purge takes it; `kept`: it stays, and `reason` says why, and what
    to do. The `name` of rows is their table."""

    kind: Literal[
        "rows",
        "names",
        "artifacts",
        "refs",
        "repository",
        "live_attempts",
        "worktree_branches",
        "your_refs",
        "commits",
        "unreachable_objects",
        "worktree",
        "trash",
        "files",
        "free_pages",
    ]
    name: str
    count: Count
    action: Literal["found", "removed", "kept"]
    reason: str | None
    items: list[str]


class Purged(Shape):
    """`purge`; also beside the error `degraded`. `done` is false without `--yes`; `commands` let
    git collect what nothing leads to any more; `not_reached` is what no purge can look at."""

    done: bool
    values: Positive
    items: list[PurgePlace]
    truncated: bool
    next_cursor: None
    commands: list[str]
    not_reached: list[Literal["remotes", "backups", "agents", "disk", "encoded"]]
