"""The error codes and kinds of events of integration. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "checks_failed": Code(11, 40, "a check of what would be integrated failed; nothing was moved"),
}

EVENTS = ("attempt_conflict", "attempt_integrated")
