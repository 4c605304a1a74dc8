"""The error codes and kinds of events of stages. Pure."""

from inbox_orch.shared.errors import Code

ERRORS: dict[str, Code] = {}

EVENTS = (
    "visit_begun",
    "visit_ended",
    "roles_given",
)
