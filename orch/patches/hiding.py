"""What is shown, and what is stored of it, without keys of known formats: `***` stands for each.
Pure, and linear in time.

A key of several lines (`-----BEGIN … PRIVATE KEY-----`) is known by its first line, and hidden to
its end.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ..git.masking import MASK, MaskedStream, Span, masked, spans
from .secret_formats import hits

MOST_KEY_BYTES = 64 * 1024
"""So far the end of a key of several lines is looked for."""
# In every key is one of these, and hardly in anything else: to look for all that keys begin with
# takes three times as long, and more where a word like `task-` is among it.
_RARE = (
    *b"KIA SIA BIA CCA ws_secret WS_SECRET ecretAccessKey ghp_ gho_ ghu_ ghs_ ghr_".split(),
    *b"github_pat_ lpat- gldt- glptt- glrt- glcbt- glft- glsoat- glimt- glagent- gloas-".split(),
    *b"xox xapp- hooks.slack k_live_ k_test_ whsec_ AIza GOCSPX sk-ant- sk-proj- sk-svc".split(),
    *b"sk-admin- sk-None- sk-or-v1- npm_ pypi-AgE PuTTY- eyJ AccountKey= Q~ hf_ _v1_".split(),
    *b"shpat_ shpca_ shppa_ shpss_ /webhooks/ dapi dckr_ hvs. hvb. AGE-SECRET".split(),
    b"PRIVATE KEY",
)
_RARE_SHAPES = (
    *(rb"sk-[A-Za-z0-9]{32}", rb"SK[0-9a-f]{32}"),
    *(rb"SG\.[A-Za-z0-9_-]{16}", rb":AA[A-Za-z0-9_-]{33}"),
)
_OF_SEVERAL_LINES = {"private key": False, "PuTTY private key": True}
"""Those that go on in the next lines, and whether the rest of the first belongs to them anyway."""
_MOST_REPEATED = 100
_DASHES, _LAST_LINE = b"-----", b"-----END "
# A line of such a key, or of what stands above it: quoted, in a diff, with its end written as \n.
_LINE = (
    rb"(?:[A-Za-z][A-Za-z0-9-]{2,29}: [^\r\n\\]{0,200}+|[A-Za-z0-9+/=]{16,}+"
    rb"|[A-Za-z0-9+/=]{4,}+[ \t\"',]{0,8}+(?=[\r\n\\]|\Z))[ \t\"',]{0,8}+"
)
_BEFORE = rb"[ \t+|>\"'-]{0,8}+"
_FIRST = rb"[^\r\n\\]{0,200}+"
_REST = (
    rb"(?:" + _BEFORE + _LINE + rb")?+"
    rb"(?:(?:(?:\\[nr]|\r?\n)" + _BEFORE + rb")++" + _LINE + rb")*+"
)


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


def suspects(text: str) -> bool:
    """Whether there may be a key in a text."""
    return _may_have(text.encode("ascii", "replace"))


def _may_have(content: bytes) -> bool:
    for piece in _RARE:
        if piece in content:
            return True
    return any(_compiled(shape).search(content) is not None for shape in _RARE_SHAPES)


def hidden(text: str, values: Iterable[str] = ()) -> str:
    """A text that is shown or stored, without what looks like a key, and without the values."""
    found = stretches(text.encode("ascii", "replace"))  # each character becomes one byte
    keys = dict.fromkeys(text[start:end] for start, end in found[:_MOST_REPEATED])
    return masked(text, [*values, *(key for key in keys if "\n" not in key)], *found)


def hidden_bytes(content: bytes, values: Iterable[str] = ()) -> bytes:
    """`hidden` of what need not be text."""
    stream = KeyStream(values)
    return stream.add(content) + stream.finish()


def covered(value: Any) -> Any:
    """A value of JSON, or of what is printed, with every text in it hidden."""
    if isinstance(value, str):
        return hidden(value) if suspects(value) else value
    if isinstance(value, dict):
        return {covered(key): covered(each) for key, each in value.items()}
    if isinstance(value, tuple):
        whole = [covered(each) for each in value]
        return type(value)(*whole) if hasattr(value, "_fields") else tuple(whole)
    return [covered(each) for each in value] if isinstance(value, list) else value


def stretches(content: bytes) -> list[Span]:
    """Where keys of known formats stand, each to its end; they may overlap."""
    found: list[Span] = []
    if not _may_have(content):
        return found
    for start, end, kind in hits(content):
        if kind in _OF_SEVERAL_LINES:
            rest = _compiled(_FIRST).match(content, end) if _OF_SEVERAL_LINES[kind] else None
            end = _end_of(content, end if rest is None else rest.end())
        found.append((start, end))
    return found


def _end_of(content: bytes, at: int) -> int:
    """Where a key ends that goes on there: with its last line, or, where that is missing or far
    away, with the last line that looks like one of it."""
    dashes = content.find(_DASHES, at, at + MOST_KEY_BYTES)
    if dashes >= 0 and content.startswith(_LAST_LINE, dashes):
        last = content.find(_DASHES, dashes + len(_LAST_LINE), dashes + 100)
        return last + len(_DASHES) if last >= 0 else dashes + len(_LAST_LINE)
    found = _compiled(_REST).match(content, at, min(len(content), at + MOST_KEY_BYTES))
    return at if found is None else found.end()


class KeyStream:
    """Bytes that come piece by piece, and are given out without keys and values. Where there are
    none they are the same bytes."""

    STEP_BYTES = 256 * 1024
    """So much is looked at together."""
    OVERLAP_BYTES = 16 * 1024
    """No key of one line is longer."""
    MOST_HELD_BYTES = 1024 * 1024

    def __init__(self, values: Iterable[str] = ()) -> None:
        given = tuple(values)
        self._values = MaskedStream(given) if given else None
        self._held = bytearray()
        self._at_least = self.STEP_BYTES
        self._inside = False

    def add(self, piece: bytes) -> bytes:
        """Take the next bytes; returns what can be given out by now."""
        self._held += piece if self._values is None else self._values.add(piece)
        if len(self._held) < self._at_least:
            return b""
        return self._given_out(len(self._held) - self.OVERLAP_BYTES)

    def finish(self) -> bytes:
        """The rest: nothing follows."""
        if self._values is not None:
            self._held += self._values.finish()
        return self._given_out(len(self._held), last=True)

    def _given_out(self, most: int, *, last: bool = False) -> bytes:
        content = bytes(self._held)
        found = self._found(content)
        if last and not found:
            return content
        cut = len(content) if last else content.rfind(b"\n", 0, most) + 1 or most
        crossing = next((each for each in found if each[0] < cut < each[1]), None)
        self._inside = False
        if crossing is not None and (crossing[0] > 0 or len(content) < self.MOST_HELD_BYTES):
            cut = crossing[0]
        elif crossing is not None:
            self._inside = True
        told = _without(content[:cut], found)
        del self._held[:cut]
        self._at_least = max(self.STEP_BYTES, 2 * len(self._held))
        return told

    def _found(self, content: bytes) -> list[Span]:
        known = stretches(content)
        if self._inside:
            known.append((0, _end_of(content, 0)))
        return spans(content, (), *known)


def _without(content: bytes, found: Iterable[Span]) -> bytes:
    """The content with a mask for each stretch that begins in it."""
    kept, at = [], 0
    for start, end in _within(found, len(content)):
        kept += [content[at:start], MASK.encode()]
        at = end
    return b"".join((*kept, content[at:]))


def _within(found: Iterable[Span], length: int) -> Iterator[Span]:
    return ((start, min(end, length)) for start, end in found if start < length)
