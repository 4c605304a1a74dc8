"""What became of a patch, in a person's words. Pure."""

from collections.abc import Mapping
from typing import Any

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
