"""The state of a patch: a function of what was said of it, and of how its attempt stands. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from .model import Entry

STATES = (
    "created",
    "validated",
    "queued",
    "apply_failed",
    "applied",
    "verified",
    "committed",
    "quarantined",
    "rolled_back",
    "dropped",
)
ENDED = ("committed", "quarantined", "rolled_back", "dropped", "apply_failed")
"""States in which nothing is under way any more."""


class Said(NamedTuple):
    """What an entry makes of a patch: the states that it may be said in, and the one that follows
    (None: it stays as it is); `event` tells of it."""

    sources: tuple[str, ...]
    target: str | None
    event: str
    meaning: str


_OPEN = ("created", "validated", "queued", "applied", "verified")
_IN_PLACE = ("applied", "verified")
ENTRIES = {
    ("format", "failed"): Said(
        ("created",), "apply_failed", "patch_judged", "its text does not apply to its base"
    ),
    ("policy", "allowed"): Said(("created",), "validated", "patch_judged", "the policy holds"),
    ("policy", "asked"): Said(
        ("created",), "queued", "patch_judged", "the policy asks somebody first"
    ),
    ("policy", "denied"): Said(
        ("created",), "quarantined", "patch_judged", "the policy does not allow it"
    ),
    ("approval", "given"): Said(
        ("queued",), None, "patch_decided", "one of those who are asked has approved of it"
    ),
    ("approval", "approved"): Said(
        ("queued",), "validated", "patch_decided", "all who had to approve of it have"
    ),
    ("approval", "refused"): Said(
        ("queued",), "quarantined", "patch_decided", "somebody who was asked has refused it"
    ),
    ("approval", "void"): Said(
        ("queued", "validated"), "dropped", "patch_decided", "another tree lies there by now"
    ),
    ("waiver", "given"): Said(
        ("quarantined",), None, "patch_released", "it may be handed in once more"
    ),
    ("waiver", "used"): Said(
        ("quarantined",), None, "patch_released", "another patch was let in instead"
    ),
    ("apply", "applied"): Said(
        ("validated",), "applied", "patch_applied", "it is in the attempt's worktree"
    ),
    ("apply", "failed"): Said(
        ("validated",), "apply_failed", "patch_applied", "it could not be written there"
    ),
    ("gates", "passed"): Said(
        _IN_PLACE, "verified", "patch_verified", "the gates passed on this very tree"
    ),
    ("gates", "failed"): Said(
        _IN_PLACE, "applied", "patch_verified", "a gate failed on this very tree"
    ),
    ("acceptance", "accepted"): Said(
        _IN_PLACE, "committed", "patch_committed", "the attempt was accepted with it"
    ),
    ("restore", "restored"): Said(
        _IN_PLACE, "rolled_back", "patch_rolled_back", "the worktree is as before it"
    ),
    ("rollback", "undone"): Said(
        ("committed",), "rolled_back", "patch_rolled_back", "another patch undoes it"
    ),
    ("drop", "dropped"): Said(
        (*_OPEN, "quarantined", "apply_failed"), "dropped", "patch_dropped", "it is given up"
    ),
}
"""What can be said of a patch. docs/reference/states.md is made of it."""


def state_of(entries: Sequence[Entry], *, given_up_at: int | None = None) -> str:
    """The state of a patch after what was said of it, in order. `given_up_at`: when its attempt has
    ended without being accepted (wall milliseconds), so that what was still under way is dropped,
    but for what is to be adopted: about that somebody was asked later."""
    state = "created"
    for entry in entries:
        said = ENTRIES[entry.kind, entry.outcome]
        state = said.target or state
    if given_up_at is None or state not in _OPEN or _asked_after(entries, given_up_at):
        return state
    return "dropped"


def _asked_after(entries: Sequence[Entry], at: int) -> bool:
    asked = (e for e in entries if (e.kind, e.outcome) == ("policy", "asked"))
    return any(entry.created_at > at for entry in asked)


def require(state: str, kind: str, outcome: str) -> Said:
    """What follows when this is said in a state: to say what does not belong there is a bug."""
    said = ENTRIES[kind, outcome]
    assert state in said.sources, f"{kind} {outcome} is not said of a patch that is {state}"
    return said
