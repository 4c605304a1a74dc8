"""The error codes and kinds of events of patches. Pure."""

from inbox_orch.shared.errors import Code

ERRORS: dict[str, Code] = {
    "patch_does_not_apply": Code(
        4, 84, "a patch does not fit what is there; `details` has the paths"
    ),
    "policy_denied": Code(9, 90, "the policy does not allow the change; the message names rules"),
    "approval_needed": Code(
        11, 75, "the policy asks somebody first; `orch patch approve` says yes"
    ),
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
