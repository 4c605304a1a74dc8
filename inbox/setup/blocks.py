"""Pieces between two marked lines at the end of a file: in Markdown, and tables in TOML.

The first marked line has the digest of what is between them, so that lines which somebody has
changed are known, also where nothing remembers them.
"""

import json
import tomllib
from typing import Any, NamedTuple

from inbox_orch.shared.shell.texts import packaged

from .edits import Edited, UnfitError, cut, newline_of
from .facts import Part
from .states import Found, covers, digest

_SHOWN = 12
_MARKS = {"block": ("<!-- ", " -->"), "table": ("# ", "")}


class _Block(NamedTuple):
    """From where to where it goes, with the empty line before it; the digest that it shows."""

    start: int
    end: int
    shown: str
    body: str


def wanted(part: Part) -> str:
    """The digest of the piece as it should be."""
    return digest(_body(part))


def found(text: str, part: Part) -> Found | None:
    """The piece as it is in the text, None when it is missing. Raises UnfitError."""
    data = _table(text, part)
    if covers(data, part.value):
        return Found(wanted(part))  # also where it was written by hand
    block = _block(text, part)
    if block is None:
        there = data is not None or _begin(part, "") in text or _end(part) in text
        return Found("") if there else None
    if part.form == "table" and data != _at(_toml(block.body), part):
        return Found("")  # somebody has gone on with the table below it
    return Found(digest(block.body), digest(block.body)[:_SHOWN] == block.shown)


def add(edited: Edited, part: Part) -> tuple[Edited, int]:
    """The text with the piece at its end, after an empty line; nothing else is made for it."""
    text, end = edited.text, newline_of(edited.text)
    body = _body(part)
    block = f"{_begin(part, digest(body)[:_SHOWN])}\n{body}\n{_end(part)}\n".replace("\n", end)
    gap = "" if not text else end if text.endswith("\n") else end + end
    more = edited.insert([(len(text), gap + block)])
    try:
        _table(more.text, part)
    except UnfitError as error:
        raise UnfitError(
            f"cannot take the table {'.'.join(part.at)} without a change to what is there"
        ) from error
    return more, 0


def remove(text: str, part: Part, made: int) -> str:
    """The text without the piece and the empty line before it. Raises UnfitError when what others
    wrote would mean something else then."""
    assert made == 0
    block = _block(text, part)
    if block is None:
        return text
    rest = cut(text, (block.start, block.end))
    if part.form == "table":
        expected = _toml(text)
        _drop(expected, part)
        if _toml(rest) != expected:
            raise UnfitError("goes on with the table of inbox below it")
    return rest


def is_blank(text: str, part: Part) -> bool:
    """Whether nothing is in the file."""
    return not text.strip()


def _body(part: Part) -> str:
    if part.form == "block":
        assert part.text is not None
        return packaged("inbox_orch.inbox", part.text).rstrip("\n")
    # JSON's form of strings and arrays of strings is TOML's, too.
    keys = [f"{key} = {json.dumps(value)}" for key, value in part.value.items()]
    return "\n".join([f"[{'.'.join(part.at)}]", *keys])


def _begin(part: Part, shown: str) -> str:
    left, right = _MARKS[part.form]
    return f"{left}inbox setup: begin {shown}{right if shown else ''}"


def _end(part: Part) -> str:
    left, right = _MARKS[part.form]
    return f"{left}inbox setup: end{right}"


def _block(text: str, part: Part) -> _Block | None:
    """The only block there is; None when there is none, or more, or one that is not whole."""
    begin, end = _begin(part, ""), _end(part)
    start = text.find(begin)
    line = text.find("\n", start)
    stop = text.find(end, line)
    whole = 0 <= start < line < stop and text.count(begin) == text.count(end) == 1
    if not whole or text[start - 1 : start] not in ("", "\n"):
        return None
    shown = text[start + len(begin) : line].removesuffix("\r").removesuffix(_MARKS[part.form][1])
    behind = stop + len(end)
    behind += 2 if text.startswith("\r\n", behind) else text.startswith("\n", behind)
    for gap in ("\r\n", "\n"):
        if text[:start].endswith(gap) and text[: start - len(gap)][-1:] in ("", "\n"):
            start -= len(gap)
            break
    body = text[line + 1 : stop].replace("\r\n", "\n").removesuffix("\n")
    return _Block(start, behind, shown, body)


def _table(text: str, part: Part) -> Any:
    """The table as TOML has it, None where there is none, and for other files."""
    return _at(_toml(text), part) if part.form == "table" else None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise UnfitError(f"is not TOML: {error}") from error


def _at(data: Any, part: Part) -> Any:
    for name in part.at:
        if not isinstance(data, dict) or name not in data:
            return None
        data = data[name]
    return data


def _drop(data: dict[str, Any], part: Part) -> None:
    """Take the table out, and those above it that have nothing left."""
    path = [data]
    for name in part.at[:-1]:
        path.append(path[-1][name])
    for table, name in zip(reversed(path), reversed(part.at), strict=True):
        del table[name]
        if table:
            return
