"""The error codes and kinds of events of clean-up. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "unmerged_work": Code(9, 20, "there is work that is in no other branch"),
    "unsafe_removal": Code(
        9,
        40,
        "what would be removed is not certainly the attempt's own, or could not be brought "
        "back; `details` has the reasons",
    ),
}

EVENTS = ("worktree_removed", "checkpoint_made", "checkpoint_restored")
