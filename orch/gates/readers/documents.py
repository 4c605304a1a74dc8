"""JSON of tools, of which nothing is sure: not its form, not its depth, not its size. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .reading import decoded

_MOST_LINE_NUMBER = 10**9


def document(content: bytes | None) -> Any:
    """A document, None when it is none."""
    if content is None:
        return None
    try:
        return json.loads(decoded(content))
    except (ValueError, RecursionError):
        return None


def entries(content: bytes | None, *, stray: bool = False) -> list[Mapping[str, Any]] | None:
    """The mappings in a list, or those that stand on a line each; None when it is neither.
    `stray`: there may be other lines between them."""
    if content is None:
        return None
    whole = document(content)
    if isinstance(whole, list):
        return [entry for entry in whole if isinstance(entry, dict)]
    found: list[Mapping[str, Any]] = []
    for line in filter(None, map(str.strip, decoded(content).splitlines())):
        entry = document(line.encode("utf-8", "replace"))
        if isinstance(entry, dict):
            found.append(entry)
        elif not stray:
            return None
    return found or None


def at(here: Any, *keys: str | int) -> Any:
    """What stands where these keys lead, None where they do not lead on."""
    for key in keys:
        if isinstance(key, str) and isinstance(here, Mapping):
            here = here.get(key)
        elif isinstance(key, int) and isinstance(here, Sequence) and not isinstance(here, str):
            here = here[key] if 0 <= key < len(here) else None
        else:
            return None
    return here


def text_at(here: Any, *keys: str | int) -> str:
    """The text there, empty where there is none."""
    found = at(here, *keys)
    return found if isinstance(found, str) else ""


def number_at(here: Any, *keys: str | int) -> int:
    """The whole number there, 1 where there is none."""
    found = at(here, *keys)
    return found if type(found) is int and 0 <= found < _MOST_LINE_NUMBER else 1
