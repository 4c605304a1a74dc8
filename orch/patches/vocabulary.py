"""The error codes and kinds of events of patches. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "policy_denied": Code(9, 90, "a policy does not allow it, or does not let this agent say so"),
    "approval_needed": Code(11, 75, "somebody has to approve of it first; nothing else was done"),
}

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
