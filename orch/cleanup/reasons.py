"""Why clean-up keeps a worktree: the reasons as data, and which of them `--force` overcomes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

TRASH_SECONDS = 7 * 24 * 3600.0
"""So long a removed worktree stays in the trash."""

# Why not, whatever is said, with the error that a call for this very task ends with.
ALWAYS = {
    "live_attempt": "live_attempt",
    "live_lease": "live_attempt",
    "process_inside": "live_attempt",
    "unfinished": "live_attempt",
    "own_directory": "unsafe_removal",
    "main_worktree": "unsafe_removal",
    "missing": "unsafe_removal",
    "foreign_worktree": "unsafe_removal",
    "foreign_lock": "unsafe_removal",
    "foreign_branch": "unsafe_removal",
    "nested_repository": "unsafe_removal",
    "submodule_commits": "unsafe_removal",
    "salvage_too_large": "unsafe_removal",
    "unreadable": "unsafe_removal",
    "changing": "unsafe_removal",
    "failed": "unsafe_removal",
}
# Why not without `--force`.
UNLESS_FORCED = {
    "in_progress": "dirty_repository",
    "dirty": "dirty_repository",
    "hidden": "dirty_repository",
    "untracked": "dirty_repository",
    "ignored_changed": "dirty_repository",
    "submodule_changed": "dirty_repository",
    "unmerged_work": "unmerged_work",
}
ERRORS = {**ALWAYS, **UNLESS_FORCED}
MOST_PATHS = 100


class Reason(NamedTuple):
    """Why a worktree is kept. `items` are the paths, processes or commits that it is about, at
    most 100; `how_many` is how many there are."""

    code: str
    message: str
    items: tuple[str, ...] = ()
    how_many: int = 0

    @property
    def overridable(self) -> bool:
        """Whether `--force` overcomes it."""
        return self.code in UNLESS_FORCED

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "message": self.message,
            "items": list(self.items),
            "count": self.how_many,
            "overridable": self.overridable,
        }


def about(code: str, message: str, items: Sequence[str] = ()) -> Reason:
    """A reason with what it is about, shortened for people and for JSON."""
    assert code in ERRORS, f"{code} is not in the table"
    shown = ", ".join(items[:5]) + (f" and {len(items) - 5} more" if items[5:] else "")
    text = f"{message}: {shown}" if items else message
    return Reason(code, text, tuple(items[:MOST_PATHS]), len(items))


def standing_in_the_way(reasons: Sequence[Reason], *, force: bool) -> tuple[Reason, ...]:
    """Those that keep a worktree from being removed."""
    return tuple(r for r in reasons if not (force and r.overridable))


def error_code(reasons: Sequence[Reason]) -> str:
    """The error of a call that was about this very worktree: of what no flag overcomes first."""
    return ERRORS[min(reasons, key=lambda r: r.overridable).code]
