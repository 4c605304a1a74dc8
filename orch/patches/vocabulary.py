"""The error codes and kinds of events of patches. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "policy_denied": Code(
        9, 90, "a policy does not allow the change; `details` names each rule with its paths"
    ),
    "approval_needed": Code(11, 75, "a policy lets the change in once somebody has approved of it"),
}

EVENTS = (
    "patch_judged",
    "patch_decided",
    "patch_released",
    "patch_applied",
    "patch_verified",
    "patch_committed",
    "patch_rolled_back",
    "patch_dropped",
)
