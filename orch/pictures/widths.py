"""How wide text is in cells of a fixed-width font, and text cut to such a width."""

import unicodedata

from inbox_orch.shared.shell.blocks import harmless


def cells(text: str) -> int:
    """Two for wide characters (Unicode annex 11), none for combining ones."""
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def fitted(text: str, width: int) -> str:
    """Harmless text of at most `width` cells; what was cut off is `…`."""
    text = harmless(text)
    if cells(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _cells_of(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "…"


def padded(text: str, width: int) -> str:
    """Fitted, with spaces up to the width."""
    text = fitted(text, width)
    return text + " " * (width - cells(text))
