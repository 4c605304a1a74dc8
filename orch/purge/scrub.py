"""What is looked for, and what is left of a text without it. Pure.

A value is found as it is, and as JSON writes it, also in JSON that stands in JSON; not in another
encoding, and not where it is cut in two. Equal texts stay equal, so that what refers to another by
a digest still does, once that has been replaced as well (`Renames`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, AnyStr, NamedTuple

from ..git.masking import spans

MASK = "***REMOVED***"
MIN_BYTES = 8
"""Shorter values stand in many places that have nothing to do with them."""
_SEPARATORS = ((",", ":"), (", ", ": "))
_ID = re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
_WHOLE_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}|[0-9A-HJKMNP-TV-Z]{26}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LENGTHS = ("bytes", "body_bytes", "raw_bytes", "size")
"""Where the length of what a digest is of stands beside it."""


class Renames(NamedTuple):
    """Digests and ids of git that stand for something else now; `lengths` has, by the old digest,
    how long it was and is."""

    ids: Mapping[str, str]
    lengths: Mapping[str, tuple[int, int]]

    def with_more(self, other: "Renames") -> "Renames":
        """Both."""
        return Renames({**self.ids, **other.ids}, {**self.lengths, **other.lengths})


NONE = Renames({}, {})


class Scrub:
    """Takes `values` out. `renames` are carried over; whole strings of `names` stay as they are,
    because rows are found by them."""

    def __init__(
        self, values: Iterable[str], renames: Renames = NONE, names: Iterable[str] = ()
    ) -> None:
        self.values = tuple(dict.fromkeys(values))
        self.renames = renames
        self.names = frozenset(names)
        self.forms = tuple(sorted(_forms(self.values), key=len, reverse=True))
        self.forms_in_bytes = tuple(form.encode("utf-8", "surrogatepass") for form in self.forms)
        self._any = re.compile("|".join(map(re.escape, self.forms)))
        self._any_bytes = re.compile(b"|".join(map(re.escape, self.forms_in_bytes)))

    def carrying(self, renames: Renames, names: Iterable[str] = ()) -> "Scrub":
        """The same values, with more renames and names."""
        return Scrub(self.values, self.renames.with_more(renames), (*self.names, *names))

    def holds(self, text: str) -> bool:
        """Whether one of the values is in a text."""
        return self._any.search(text) is not None

    def holds_bytes(self, content: bytes) -> bool:
        """The same of bytes."""
        return self._any_bytes.search(content) is not None

    def content(self, content: bytes) -> bytes:
        """Bytes without the values."""
        if not self.holds_bytes(content):
            return content
        return _replaced(content, self.forms_in_bytes, MASK.encode())

    def digested(self, text: str) -> str:
        """A text of which there is a digest, without the values: ids in it stay, since they may be
        older than it."""
        return _replaced(text, self.forms, MASK) if self.holds(text) else text

    def text(self, text: str) -> str:
        """A text without the values, and with the ids of today."""
        ids = self.renames.ids
        scrubbed = self.digested(text)
        return _ID.sub(lambda found: ids.get(found[0], found[0]), scrubbed) if ids else scrubbed

    def id(self, value: str) -> str:
        """A column that has a digest or an id of git."""
        return self.renames.ids.get(value, value)

    def json(self, text: str, *, own_keys: bool = False) -> str:
        """JSON without the values; what is not touched stays to the letter. `own_keys`: plain
        words that name its members are ours, and stay. Numbers stay, too."""
        if not self._may_touch(text):
            return text
        before = json.loads(text)
        after = self._walked(before, own_keys)
        return text if after == before else _written(after, before, text)

    def _may_touch(self, text: str) -> bool:
        if self.holds(text):
            return True
        ids = self.renames.ids
        return bool(ids) and any(found[0] in ids for found in _ID.finditer(text))

    def _walked(self, value: Any, own_keys: bool) -> Any:
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, list):
            return [self._walked(each, own_keys) for each in value]
        if not isinstance(value, dict):
            return value
        walked = {
            name if own_keys and _WORD.fullmatch(name) else self._string(name): self._walked(
                each, own_keys
            )
            for name, each in value.items()
        }
        for each in value.values():
            if isinstance(each, str) and each in self.renames.lengths:
                before, after = self.renames.lengths[each]
                for name in _LENGTHS:
                    if walked.get(name) == before:
                        walked[name] = after
        return walked

    def _string(self, value: str) -> str:
        if value in self.names:
            return value
        if value in self.values:
            return MASK
        if _WHOLE_ID.fullmatch(value):
            return self.id(value)
        return self.text(value)


def pieces(scrub: Scrub, read: Iterator[bytes]) -> Iterator[bytes]:
    """What `Scrub.content` makes of content that comes piece by piece."""
    longest = max(map(len, scrub.forms_in_bytes))
    held = b""
    for piece in read:
        held += piece
        if len(held) < 4 * longest:
            continue
        # What begins before `safe` ends in what is held, and so does what overlaps with it.
        safe, at, told = len(held) - longest + 1, 0, []
        for start, end in spans(held, scrub.forms_in_bytes):
            if end > safe:
                safe = min(safe, start)
                break
            told += [held[at:start], MASK.encode()]
            at = end
        yield b"".join([*told, held[at:safe]])
        held = held[safe:]
    yield scrub.content(held)


def _forms(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        yield value
        for ascii_only in (True, False):
            once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
            yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1])
            # Some write the slash so.
            yield once.replace("/", "\\/")


def _replaced(content: AnyStr, forms: Iterable[AnyStr], mask: AnyStr) -> AnyStr:
    kept: list[AnyStr] = []
    at = 0
    for start, end in spans(content, forms):
        kept += [content[at:start], mask]
        at = end
    kept.append(content[at:])
    return content[:0].join(kept)


def _written(value: Any, before: Any, text: str) -> str:
    """As `text` was written."""
    for separators in _SEPARATORS:
        for ascii_only in (False, True):
            write = json.JSONEncoder(ensure_ascii=ascii_only, separators=separators).encode
            if write(before) == text:
                return write(value)
    return json.dumps(value, separators=_SEPARATORS[0])
