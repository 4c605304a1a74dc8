"""The error codes and kinds of events of attempts. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "dep_not_in_base": Code(4, 70, "the base lacks commits of a task that this one depends on"),
    "base_conflict": Code(
        4,
        80,
        "the accepted work of the dependencies conflicts; `details` has the paths",
    ),
    "dirty_repository": Code(9, 10, "there are uncommitted changes; `details` has the paths"),
    "live_attempt": Code(9, 30, "an attempt is still running, or a process works in its worktree"),
    "work_rejected": Code(
        11,
        60,
        "`adopt` has looked at the work, and it cannot be accepted; `data` says why",
    ),
}

EVENTS = (
    "attempt_adopted",
    "base_conflict_found",
    "late_work_kept",
    "task_reassigned",
    "work_harvested",
)
