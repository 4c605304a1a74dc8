"""What became of a patch, in a person's words. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..patches.model import Entry

_SAYS = {
    "policy asked": "patch {name} waits for an approval{reason}",
    "policy denied": "patch {name} is not allowed{reason}",
    "format failed": "patch {name} does not apply{reason}",
    "approval given": "{by} approves of patch {name}{reason}",
    "approval approved": "patch {name} is approved by {by}{reason}",
    "approval refused": "{by} refuses patch {name}{reason}",
    "approval void": "what was approved of patch {name} counts no more{reason}",
    "waiver given": "{by} has released patch {name}{reason}",
    "apply failed": "patch {name} could not be written{reason}",
    "restore restored": "patch {name} was taken back{reason}",
    "rollback undone": "patch {name} was undone{reason}",
    "drop dropped": "patch {name} was given up{reason}",
}
"""By what was said of it; what is not here says nothing by itself."""


def told(data: Mapping[str, Any]) -> str | None:
    """What an event about a patch says; None when another one tells it."""
    words = _SAYS.get(str(data.get("said")))
    if words is None:
        return None
    reason = f": {data['reason']}" if data.get("reason") else ""
    return words.format(name=data.get("name"), by=data.get("by"), reason=reason)


_WHY = {
    "policy denied": "{reason}",
    "format failed": "{reason}",
    "approval refused": "{by} refuses it{because}",
    "approval void": "{reason}",
    "waiver given": "{by} has released {rule}{because}",
    "apply failed": "{reason}",
    "restore restored": "{reason}",
    "rollback undone": "{reason}",
    "drop dropped": "{reason}",
}


def why(entries: Sequence[Entry]) -> str | None:
    """Why a patch was refused, was taken back or is given up, on one line; None where nothing of
    that was said, or no reason was given."""
    for entry in reversed(entries):
        words = _WHY.get(f"{entry.kind} {entry.outcome}")
        if words is not None:
            reason = entry.reason or ""
            because = f": {reason}" if reason else ""
            rule = f"`{entry.found.get('rule')}`"
            said = words.format(by=entry.by, reason=reason, because=because, rule=rule)
            return " ".join(said.split()) or None
    return None
