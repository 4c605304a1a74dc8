"""Text and bytes without the secrets in them, as a whole or piece by piece.

Every occurrence of every secret counts, also where one begins inside another: what is replaced
are stretches of the original, so no order of replacing can leave a rest of one. The time grows
with the length of the content, once for each secret, whatever repeats itself in either.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import AnyStr

MASK = "***"
MIN_MASKED_LINE = 4
"""A line of a secret of several lines is masked by itself from so many characters on."""

Span = tuple[int, int]


def masked(text: str, values: Iterable[str], *known: Span) -> str:
    """Text in which no secret stands any more; of several lines, each long enough by itself. Where
    others stand may be `known`."""
    return _replaced(text, spans(text, _parts(values), *known), MASK)


def masked_bytes(content: bytes, values: Iterable[str]) -> bytes:
    """Output that need not be text, without the secrets, which it has as UTF-8."""
    return _replaced(content, spans(content, _encoded_parts(values)), MASK.encode())


class MaskedStream:
    """Bytes that come piece by piece: together they become what `masked_bytes` makes of all."""

    def __init__(self, values: Iterable[str]) -> None:
        self._parts = _encoded_parts(values)
        self._longest = max(map(len, self._parts), default=0)
        self._held = bytearray()
        # So many bytes at the beginning of what is held belong to a mask that has been given out.
        self._hidden = 0

    def add(self, chunk: bytes) -> bytes:
        """Take the next bytes; returns what can be given out by now."""
        self._held += chunk
        # What begins later than this may go on in the next piece. To look only at twice as much
        # keeps the work in proportion when the pieces are small.
        if len(self._held) < 2 * self._longest:
            return b""
        return self._given_out(len(self._held) - max(0, self._longest - 1))

    def finish(self) -> bytes:
        """The rest: nothing follows."""
        return self._given_out(len(self._held))

    def _given_out(self, length: int) -> bytes:
        """The first `length` bytes of what is held, masked; no secret may begin there and end
        beyond what is held."""
        held = bytes(self._held)
        told, at = [], 0
        for start, end in spans(held, self._parts, (0, self._hidden)):
            if start >= length:
                break
            told.append(held[at:start])
            if start > 0 or not self._hidden:
                told.append(MASK.encode())
            at = end
        told.append(held[at:length])
        self._hidden = max(0, at - length)
        del self._held[:length]
        return b"".join(told)


def spans(content: AnyStr, parts: Iterable[AnyStr], *known: Span) -> list[Span]:
    """(start, end) of each stretch that occurrences of the parts cover, and those `known`, in
    order; stretches that only touch stay two."""
    found = [span for span in known if span[0] < span[1]]
    for part in parts:
        found += _occurrences(content, part)
    joined: list[Span] = []
    for start, end in sorted(found):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _occurrences(content: AnyStr, part: AnyStr) -> Iterator[Span]:
    """What the occurrences of one part cover. A part that repeats itself may go on and on, each
    occurrence inside the last one; those are followed by its period instead of being searched."""
    at = content.find(part)
    period = _period(part) if at >= 0 else 0
    while at >= 0:
        end = at + len(part)
        while period < len(part) and content.startswith(part[-period:], end):
            end += period
        yield at, end
        at = content.find(part, end - len(part) + 1)


def _period(part: AnyStr) -> int:
    """The smallest distance at which the part can overlap itself; its length if it cannot."""
    borders = [0] * len(part)  # of each beginning, how long an end of it is a beginning, too
    border = 0
    for at in range(1, len(part)):
        while border and part[at] != part[border]:
            border = borders[border - 1]
        border += part[at] == part[border]
        borders[at] = border
    return len(part) - border


def _replaced(content: AnyStr, where: Iterable[Span], mask: AnyStr) -> AnyStr:
    kept: list[AnyStr] = []
    at = 0
    for start, end in where:
        kept += [content[at:start], mask]
        at = end
    kept.append(content[at:])
    return content[:0].join(kept)


def _parts(values: Iterable[str]) -> Collection[str]:
    """What is looked for: each value, and the lines of one that has several."""
    parts = {value: None for value in values if value}
    for value in list(parts):
        lines = (line.strip() for line in value.splitlines())
        parts |= dict.fromkeys(line for line in lines if len(line) >= MIN_MASKED_LINE)
    return parts


def _encoded_parts(values: Iterable[str]) -> Collection[bytes]:
    return {_encoded(part): None for part in _parts(values)}


def _encoded(text: str) -> bytes:
    """The bytes behind a text of the system's; half a character of UTF-16 stays by itself."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
