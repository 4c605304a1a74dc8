"""Edits of a text: insertions, which can be taken back exactly, and cuts, for texts that have been
changed since."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class UnfitError(Exception):
    """A file that cannot take a piece, or be read for one; the text says why, after its name."""


# (where, what): made one after the other, each in the text that the one before has left.
Insertion = tuple[int, str]
# (where, how many characters) of the same, as they are remembered.
Span = tuple[int, int]


class Edited(NamedTuple):
    """A text, and the insertions that led to it."""

    text: str
    spans: tuple[Span, ...] = ()

    def insert(self, insertions: Iterable[Insertion]) -> "Edited":
        """This text with more inserted."""
        text, spans = self.text, list(self.spans)
        for where, what in insertions:
            text = text[:where] + what + text[where:]
            spans.append((where, len(what)))
        return Edited(text, tuple(spans))


def taken_back(text: str, spans: Sequence[Span]) -> str:
    """The text before the insertions."""
    for where, length in reversed(spans):
        text = text[:where] + text[where + length :]
    return text


def cut(text: str, *pieces: tuple[int, int]) -> str:
    """The text without what stands from … to …, for each of the pieces."""
    for start, end in sorted(pieces, reverse=True):
        text = text[:start] + text[end:]
    return text


def newline_of(text: str) -> str:
    """How lines end in a text."""
    return "\r\n" if "\r\n" in text else "\n"
