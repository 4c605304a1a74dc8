"""Finding the JSON value in what a reviewer has written around it: banners, fences, trailers,
quotations of other replies.

A text is read once, whatever is in it: what was read in vain is not read again from the next brace.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.json_words import once_each, whole_number, words_of

_FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_OBJECT_START = re.compile(r"\{[ \t\r\n]*[\"}]")
_MOST_STARTS = 2000
"""Tries to parse; a text with more broken objects than that is no reply."""


class NotJson(Exception):
    """A value that was begun and could not be read, with line and column in the whole text."""


class Found(NamedTuple):
    """The objects in a text, outermost ones only, and why one that was begun is none; there may
    be both, when something readable stands inside."""

    objects: tuple[dict[str, Any], ...]
    trouble: str | None


def objects_in(text: str) -> Found:
    """Every outermost JSON object in a text, equal ones once.

    A text that is one object as a whole is just that. Otherwise what stands in fences counts,
    and only when there is none, what stands anywhere.
    """
    whole = text.strip()
    trouble = None
    if whole.startswith("{"):
        try:
            return Found((_parse(whole),), None)
        except NotJson as error:
            trouble = str(error)
    found: list[dict[str, Any]] = []
    unread: tuple[int, NotJson] | None = None
    for start, inner in _fenced(text):
        if inner.lstrip().startswith("{"):
            try:
                found.append(_parse(inner))
            except NotJson as error:
                unread = (start, error)
    if unread is not None:
        trouble = _shifted(text, *unread)
    if not found:
        found = _loose(text)
    return Found(tuple(_distinct(found)), trouble)


# -- fences --------------------------------------------------------------------------------


def _fenced(text: str) -> Iterator[tuple[int, str]]:
    """What stands in each fence, and where it begins. A fence ends at the next line that is the
    mark it began with and nothing else; one that never ends is none."""
    lines = text.split("\n")
    starts = _starts_of(lines)
    closing = _closing_lines(lines)
    number = 0
    while number < len(lines):
        opening = _FENCE_LINE.match(lines[number])
        end = None if opening is None else _next(closing.get(opening[1], []), number)
        if end is None:
            number += 1
            continue
        yield starts[number + 1], text[starts[number + 1] : starts[end]]
        number = end + 1


def _starts_of(lines: Sequence[str]) -> list[int]:
    """Where in the text each line begins."""
    starts, position = [], 0
    for line in lines:
        starts.append(position)
        position += len(line) + 1
    return starts


def _closing_lines(lines: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the lines that can end a fence, by its mark, the last one first."""
    found: dict[str, list[int]] = {}
    for number in reversed(range(len(lines))):
        opening = _FENCE_LINE.match(lines[number])
        if opening is not None and lines[number].strip(" \t\r") == opening[1]:
            found.setdefault(opening[1], []).append(number)
    return found


def _next(closing: list[int], after: int) -> int | None:
    """The next line of a mark; those passed already are taken away."""
    while closing and closing[-1] <= after:
        closing.pop()
    return closing[-1] if closing else None


# -- anywhere ------------------------------------------------------------------------------


def _loose(text: str) -> list[dict[str, Any]]:
    """Objects that begin anywhere; what lies inside one of them is a part of it.

    Where an object cannot be read, those that end inside of it count, and the search goes on
    from the place of the fault: what is open there cannot be read from its own beginning either.
    """
    found: list[dict[str, Any]] = []
    position = 0
    for _ in range(_MOST_STARTS):
        start = _OBJECT_START.search(text, position)
        if start is None:
            break
        gathered = _Gathering()
        try:
            _, position = gathered.decoder().raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            position = max(error.pos, start.start() + 1)
        except RecursionError:
            break
        found += gathered.outermost
    return found


class _Unreadable(NamedTuple):
    """Stands for a value that JSON knows and a reply must not have."""

    reason: str


class _Gathering:
    """The outermost sound objects of a text that is being parsed, also when that fails."""

    def __init__(self) -> None:
        self.outermost: list[dict[str, Any]] = []

    def decoder(self) -> json.JSONDecoder:
        return json.JSONDecoder(
            object_pairs_hook=self._take, parse_constant=_Unreadable, parse_int=_number
        )

    def _take(self, pairs: Sequence[tuple[str, Any]]) -> Any:
        """An object that has come to its end. Those that it holds were taken before it."""
        names = {name for name, _ in pairs}
        inside, sound = _inside([value for _, value in pairs])
        if not sound or len(names) != len(pairs):
            return _Unreadable("it holds what JSON does not allow")
        if inside:
            del self.outermost[-inside:]
        made = dict(pairs)
        self.outermost.append(made)
        return made


def _inside(values: list[Any]) -> tuple[int, bool]:
    """How many objects the values hold, lists within lists included, and whether all of them
    can be read."""
    objects, waiting = 0, values
    while waiting:
        value = waiting.pop()
        if isinstance(value, _Unreadable):
            return objects, False
        if isinstance(value, dict):
            objects += 1
        elif isinstance(value, list):
            waiting.extend(value)
    return objects, True


def _number(text: str) -> Any:
    try:
        return whole_number(text)
    except ValueError as error:
        return _Unreadable(str(error))


# -- one value -----------------------------------------------------------------------------


def _parse(text: str) -> dict[str, Any]:
    try:
        value = _decoder().decode(text)
    except json.JSONDecodeError as error:
        words = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise NotJson(words) from error
    except (ValueError, RecursionError) as error:
        words = f"this is no JSON that can be read: {words_of(error)}"
        raise NotJson(words[:300]) from error
    if not isinstance(value, dict):
        raise NotJson("the value is no object")
    return value


def _shifted(text: str, offset: int, error: NotJson) -> str:
    """A place in a fence as a place in the whole text."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return str(error)
    line = text.count("\n", 0, offset) + cause.lineno
    return f"line {line}, column {cause.colno}: {cause.msg}"


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=once_each, parse_constant=_constant, parse_int=whole_number
    )


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _distinct(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    for value in found:
        kept.setdefault(json.dumps(value, sort_keys=True), value)
    return list(kept.values())
