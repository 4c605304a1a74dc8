"""Blocks: what a command has to say, before it is known to whom.

How they look on a terminal is the affair of `terminal`; here is how they stand in a pipe, and
what makes somebody's text harmless in both.
"""

import contextlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from .clock import rfc3339


class When(NamedTuple):
    """A moment, as a value: how long ago it was for a terminal, RFC 3339 for a pipe.

    Both in milliseconds since 1970; `now_ms` is when it was looked at.
    """

    at_ms: int
    now_ms: int


class Sentence(NamedTuple):
    """A sentence for a terminal; for a pipe the values in it, tab-separated."""

    text: str
    values: tuple[object, ...] = ()


class Facts(NamedTuple):
    """Labelled values: aligned on a terminal, `label<TAB>value` lines for a pipe."""

    rows: tuple[tuple[str, object], ...]


class Table(NamedTuple):
    """Rows under headings. On a terminal that is too narrow, columns are cut, but for those in
    `fixed`; those in `folded` go on in the next line instead. What is cut loses its end, in the
    columns of `named` its middle: paths and branches begin alike and end in what tells them
    apart. A column in `sparse` is left out on a terminal when it says nothing in any row: empty
    or zero."""

    headings: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    empty: str = "nothing"
    fixed: tuple[int, ...] = (0,)
    folded: tuple[int, ...] = ()
    sparse: tuple[int, ...] = ()
    named: tuple[int, ...] = ()


class Body(NamedTuple):
    """Somebody's text, shown as it is, with what would drive a terminal made harmless; above it
    a line of values. For a pipe `values`, if there are any, stand tab-separated around the text:
    it is the one that is None."""

    heading: tuple[object, ...]
    text: str
    values: tuple[object, ...] = ()


class Lines(NamedTuple):
    """Lines that are drawn as they are, of pieces of text; a piece with a state has the colour of
    that state on a terminal."""

    rows: tuple[tuple[tuple[str, str | None], ...], ...]


class Page(NamedTuple):
    """A whole document in markdown: laid out on a terminal, as it is in a pipe. What would drive
    a terminal is made harmless in both."""

    text: str


Block = Sentence | Facts | Table | Body | Lines | Page


def readable(text: str) -> str:
    """Paths come from the system as bytes; in a locale that is not UTF-8 Python leaves what it
    cannot read as half characters (PEP 383). Here they become the text that they are."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        with contextlib.suppress(UnicodeEncodeError):
            return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return text


# C0 and C1 control characters, line and paragraph separators, and what reorders text. Not compiled
# here: that takes 2 ms, and most texts have nothing of it.
_REORDERING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HARMFUL = f"[\x00-\x1f\x7f-\x9f\u2028\u2029{_REORDERING}]"
_HARMFUL_IN_LINES = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{_REORDERING}]"


def harmless(text: str, *, lines: bool = False) -> str:
    """Text with everything escaped that would drive a terminal or break a line (Unicode TR 36,
    section 2.10). With `lines`, tabs and line ends stay."""
    text = readable(text)
    if text.isprintable():  # none of those characters is
        return text
    return re.sub(_HARMFUL_IN_LINES if lines else _HARMFUL, lambda found: _escape(found[0]), text)


# What `json.dumps` leaves as it is, and a terminal would obey.
_HARMFUL_IN_JSON = f"[\x7f-\x9f\u2028\u2029{_REORDERING}]"


def harmless_json(text: str) -> str:
    """JSON with the same value and no character that would drive a terminal: outside of strings
    there is none anyway, and in strings any may be escaped (RFC 8259, section 7)."""
    if text.isprintable() or (text.isascii() and "\x7f" not in text):
        return text
    return re.sub(_HARMFUL_IN_JSON, lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def plain(block: Block) -> str:
    """A block for a pipe: full values, tab-separated, one line each."""
    if isinstance(block, Sentence):
        return _line(block.values) if block.values else harmless(block.text) + "\n"
    if isinstance(block, Facts):
        return "".join(_line(row) for row in block.rows)
    if isinstance(block, Table):
        return "".join(_line(row) for row in block.rows)
    if isinstance(block, Lines):
        return "".join(_drawn(row) + "\n" for row in block.rows)
    if isinstance(block, Page):
        return harmless(block.text, lines=True).rstrip("\n") + "\n"
    if block.values:
        return _line([block.text if value is None else value for value in block.values])
    return " ".join(map(_value, block.heading)) + "\t" + _line((block.text,))


def _drawn(row: Sequence[tuple[str, str | None]]) -> str:
    return harmless("".join(text for text, _ in row)).rstrip()


def _line(values: Sequence[object]) -> str:
    return "\t".join(_value(value) for value in values) + "\n"


def _value(value: object) -> str:
    """A value on one line: backslash, tab and line ends are escaped so that it can be undone."""
    if value is None:
        return ""
    if isinstance(value, When):
        return str(rfc3339(value.at_ms))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_value, value))
    return harmless(str(value).replace("\\", "\\\\"))
