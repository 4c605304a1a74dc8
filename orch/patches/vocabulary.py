"""The error codes and kinds of events of patches. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "patch_format": Code(4, 82, "what was handed in is no diff, or no edits, and nothing else"),
    "patch_does_not_apply": Code(4, 84, "the patch does not fit the files that it is for"),
    "edit_not_found": Code(4, 86, "what an edit looks for is not in the file"),
    "edit_ambiguous": Code(4, 88, "what an edit looks for is in the file more than once"),
    "policy_denied": Code(
        9, 90, "a policy does not allow the change; `details` names each rule with its paths"
    ),
    "approval_needed": Code(11, 75, "a policy lets the change in once somebody has approved of it"),
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
