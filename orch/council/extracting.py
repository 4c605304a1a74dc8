"""Finding the JSON value in what a reviewer has written around it: banners, fences, trailers,
quotations of other replies."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.json_words import whole_number, words_of

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)
_OBJECT_START = re.compile(r"\{\s*[\"}]")
_MOST_STARTS = 2000
"""Tries to parse; a text with more braces than that is no reply."""


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
    if whole.startswith("{"):
        try:
            return Found((_parse(whole),), None)
        except NotJson as error:
            trouble = str(error)
    else:
        trouble = None
    found: list[dict[str, Any]] = []
    for fence in _FENCE.finditer(text):
        inner = fence.group(2)
        if inner.lstrip().startswith("{"):
            try:
                found.append(_parse(inner))
            except NotJson as error:
                trouble = _shifted(text, fence.start(2), error)
    if not found:
        found = _loose(text)
    return Found(tuple(_distinct(found)), trouble)


def _loose(text: str) -> list[dict[str, Any]]:
    """Objects that begin anywhere; what lies inside one of them is a part of it."""
    decoder = _decoder()
    found: list[dict[str, Any]] = []
    position, tries = 0, 0
    while tries < _MOST_STARTS:
        start = _OBJECT_START.search(text, position)
        if start is None:
            break
        tries += 1
        try:
            value, position = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            position = start.start() + 1
        else:
            found.append(value)
    return found


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
        object_pairs_hook=_object, parse_constant=_constant, parse_int=whole_number
    )


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} stands twice in one object")
    return made


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _distinct(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[str, dict[str, Any]] = {}
    for value in found:
        kept.setdefault(json.dumps(value, sort_keys=True), value)
    return list(kept.values())
