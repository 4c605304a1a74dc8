"""The `data` of the commands that bring work together."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Seconds, Shape, Ulid

from .things import AttemptState, Commit, HandedOut, Key, Positive


class Piece(Shape):
    """The accepted work of one task, and what came of it. `commit`: the merge that has it in;
    `because`: keys of the tasks on whose conflicting work it builds; `offered`: the attempt that
    was opened for the conflict to be resolved."""

    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive
    branch: str | None
    head: Commit
    state: Literal["merged", "conflict", "held_back"]
    commit: Commit | None
    paths: list[str]
    because: list[Key]
    offered: Ulid | None


class Onto(Shape):
    """The branch that was to come forward. `checked_out`: in `worktree`, which has to be left to
    its owner for the `reason`; `refused`: git would not; `conflict`: in `paths`, with what was
    integrated. `command` does it by hand."""

    branch: str
    before: Commit
    commit: Commit
    state: Literal[
        "up_to_date",
        "fast_forwarded",
        "checked_out",
        "refused",
        "moved",
        "conflict",
        "not_tried",
    ]
    worktree: str | None
    command: str | None
    reason: str | None
    paths: list[str]


class Tried(Shape):
    """A check that was run on the files of the result, before anything was moved."""

    command: str
    passed: bool
    exit_status: int | None
    signal: Positive | None
    timed_out_seconds: Seconds | None
    seconds: Seconds
    output_tail: str
    output_bytes: Count


class Integrated(Shape):
    """`integrate`; also beside the errors of exit 11. `before` and `tip`: the commits between
    which `branch` has moved (or would, in a dry run or had no check failed), `moved` whether it
    has; `already`: how many pieces were in it; `dispatched`: the attempts that were opened for
    conflicts, `undispatched` why one was not."""

    items: list[Piece]
    truncated: bool
    next_cursor: None
    dry_run: bool
    branch: str
    before: Commit | None
    tip: Commit | None
    moved: bool
    already: Count
    checks: list[Tried]
    onto: Onto | None
    dispatched: list[HandedOut]
    undispatched: str | None


class Side(Shape):
    """An attempt by its ids; `key` is its task's."""

    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive


class Compared(Side):
    """An attempt that was compared: at commit `head`, with these files changed and not
    committed (at most 100)."""

    state: AttemptState
    head: Commit
    uncommitted: list[str]


class Pair(Shape):
    """Two attempts that do not merge, in `paths`, or that both have changed the files `overlap`
    without committing; `other` null: one, and what was integrated."""

    one: Side
    other: Side | None
    paths: list[str]
    overlap: list[str]


class Conflicts(Shape):
    """`conflicts`. Of `pairs` that could conflict, `compared` were looked at, and are in `items`
    if they do; `integration`: the commit of what was integrated."""

    items: list[Pair]
    truncated: bool
    next_cursor: None
    attempts: list[Compared]
    integration: Commit | None
    pairs: Count
    compared: Count
    stale: bool
