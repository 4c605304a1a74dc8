"""What a piece of a set-up can be: in place, missing, older, or changed by hand."""

import hashlib
from typing import Any, NamedTuple

IN_PLACE, MISSING, OLDER, CHANGED = "in_place", "missing", "older", "changed"


class Found(NamedTuple):
    """A piece that is in a file, by its digest. `untouched`: it says itself that nobody has
    changed it since it was written. An empty digest is a piece that cannot be told from others."""

    digest: str
    untouched: bool = False


def digest(text: str) -> str:
    """What a text is told by."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def covers(value: Any, wanted: Any) -> bool:
    """Whether an object has all that is wanted; what else it has is its owner's affair."""
    if not isinstance(value, dict) or not isinstance(wanted, dict):
        return False
    return all(name in value and value[name] == each for name, each in wanted.items())


def state_of(found: Found | None, wanted: str, remembered: str | None) -> str:
    """`remembered` is the digest of what was written the last time."""
    if found is None:
        return MISSING
    if found.digest and found.digest == wanted:
        return IN_PLACE
    return OLDER if found.untouched or found.digest == remembered else CHANGED
