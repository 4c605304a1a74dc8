"""The `data` of the commands about checkpoints."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Shape, Time, Ulid

from .things import Commit, Key, Positive


class Checkpoint(Shape):
    """A state of an attempt's worktree that was kept. `name` is KEY/ATTEMPT/N; `commit` keeps it,
    `tree` has its files byte for byte; `head` and `branch` are what HEAD was, `doing` what was
    begun and not at its end (a merge, say)."""

    name: str
    attempt: Ulid
    key: Key
    attempt_number: Positive
    number: Positive
    title: str
    commit: Commit
    tree: Commit
    head: Commit | None
    branch: str | None
    doing: str | None
    made_at: Time


class CheckpointList(Shape):
    """`checkpoint list`, oldest first."""

    items: list[Checkpoint]
    truncated: bool
    next_cursor: None


class CheckpointFile(Shape):
    """A file in which a checkpoint differs. `status`: A is new, D is gone, M another content, T
    another kind. Of a `binary` one all lines count."""

    path: str
    status: Literal["A", "D", "M", "T"]
    binary: bool
    added: Count
    removed: Count


class CheckpointShown(Shape):
    """`checkpoint show`. `items` is what differs from `since`, the checkpoint before it; null where
    that is the base of the attempt. `diff` is there with --diff."""

    checkpoint: Checkpoint
    since: str | None
    items: list[CheckpointFile]
    truncated: bool
    next_cursor: None
    changed_files: Count
    added_lines: Count
    removed_lines: Count
    diff: str | None = None


class CheckpointMade(Shape):
    """`checkpoint make`. `same`: nothing has changed since the last one, which it is; `at_work`: a
    worker or a leader may have been in the middle of a change."""

    checkpoint: Checkpoint
    same: bool
    at_work: bool


class CheckpointRestored(Shape):
    """`checkpoint restore`. `before` is how the worktree was before; with --into that is null, and
    `files` so many are in the folder `into`."""

    checkpoint: Checkpoint
    before: Checkpoint | None
    into: str | None
    files: Count | None
