"""The `data` of the commands that verify work."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Seconds, Shape, Ulid

from .things import Attempt, Commit, Key, Positive, Task

Source = Literal["worktree", "late", "branch", "recorded"]


class CheckResult(Shape):
    """How a check ended. The artifact, on the attempt's thread, has the head and the tail of its
    output; `output_tail` is empty when it has passed."""

    command: str
    passed: bool
    exit_status: int | None
    signal: int | None
    timed_out_seconds: Seconds | None
    seconds: Seconds
    output_tail: str
    output_bytes: Count
    artifact: str
    artifact_sha256: str
    artifact_bytes: Count


class Adopted(Shape):
    """`adopt`. `source`: where the commits were found; `checked`: whether the task's checks were
    run."""

    task: Task
    attempt: Attempt
    source: Source
    checked: bool


class WorkRejected(Shape):
    """`adopt` beside the errors `work_rejected` and `approval_needed`: what was looked at, and why
    it cannot be accepted, or not yet."""

    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive
    head: Commit
    source: Source
    reason: str
    dirty_paths: list[str]
    unpushed_submodules: list[str]
    checks: list[CheckResult]
