"""What is said of JSON from outside that cannot be read, in words of our own.

Python's own speak of its settings, which whoever wrote the text knows nothing of; and of a key that
stands twice Python keeps the last value and says nothing.
"""

from collections.abc import Sequence
from typing import Any


def whole_number(text: str) -> int:
    """For `parse_int` of `json`: raises ValueError for more digits than Python reads."""
    try:
        return int(text)
    except ValueError as error:
        raise ValueError("a number has too many digits") from error


def once_each(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """For `object_pairs_hook` of `json`: raises ValueError, which names the first key that stands
    twice in one object."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"the key {_twice(pairs)[:60]!r} stands twice in one object")
    return made


def _twice(pairs: Sequence[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    return ""


def words_of(error: ValueError | RecursionError) -> str:
    """Why the text cannot be read."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
