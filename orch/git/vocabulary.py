"""The error codes and kinds of events of git. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "git_missing": Code(6, 110, "git is not installed, or too old"),
    "git_failed": Code(6, 120, "a git command failed; `details` has its output"),
}

EVENTS: tuple[str, ...] = ()
