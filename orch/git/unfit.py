"""Why what was handed in, or left, cannot be taken: told in part of a line, with a code."""

from .harvest import Unfit

__all__ = ["NotApplied", "Unfit"]


class NotApplied(Unfit):
    """What was handed in as text cannot become a tree, or not be brought into the worktree. `code`
    is that of an error: `patch_format`, `patch_does_not_apply`, `edit_not_found`,
    `edit_ambiguous`."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
