"""The error codes and kinds of events of patches. Pure."""

from inbox_orch.shared.errors import Code

ERRORS: dict[str, Code] = {}

EVENTS = (
    "patch_created",
    "patch_judged",
    "patch_decided",
    "patch_released",
    "patch_applied",
    "patch_verified",
    "patch_committed",
    "patch_rolled_back",
    "patch_dropped",
)
