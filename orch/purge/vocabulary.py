"""The error codes and kinds of events of a purge. Pure."""

from inbox_orch.shared.errors import Code

ERRORS: dict[str, Code] = {}
EVENTS = ("purged",)
