"""Lines of text that fit a width, in cells of a terminal. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inbox_orch.shared.shell.blocks import harmless

from ..patches.hiding import hidden
from ..pictures.widths import cells, fitted, padded

Piece = tuple[str, str | None]
"""A text, and how it looks: the name of a state, or of a look of the board's own."""
Line = tuple[Piece, ...]

BAR_CELLS = 5


class Column(NamedTuple):
    """A column of a table: its heading, its cells, and how wide it may become. Those with a
    `weight` share by it what the others leave when there is no room for all."""

    heading: str
    texts: tuple[Piece, ...]
    most: int
    weight: int = 0

    @property
    def wanted(self) -> int:
        """Cells that it needs to show everything, within its limit."""
        return min(self.most, max(cells(self.heading), *(cells(text) for text, _ in self.texts), 1))


def table(columns: Sequence[Column], width: int) -> list[Line]:
    """The heading and every row, each of at most `width` cells; two are between columns."""
    widths = _shared(columns, width)
    heads = [(column.heading, "heading") for column in columns]
    rows = zip(*(column.texts for column in columns), strict=True)
    return [cut(_row(cells_of, widths), width) for cells_of in (heads, *rows)]


def _shared(columns: Sequence[Column], width: int) -> list[int]:
    """How wide each column is."""
    widths = [column.wanted for column in columns]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    weighed = [n for n, column in enumerate(columns) if column.weight]
    for some in (weighed, range(len(columns))):
        while excess > 0 and any(widths[n] > 6 for n in some):
            widest = max(some, key=lambda n: widths[n] / (columns[n].weight or 1))
            widths[widest] -= 1
            excess -= 1
    return widths


def _row(pieces: Iterable[Piece], widths: Sequence[int]) -> Line:
    found: list[Piece] = []
    for (text, look), width in zip(pieces, widths, strict=True):
        if found:
            found.append(("  ", None))
        found.append((padded(text, width), look))
    return tuple(found)


def rule(text: str, width: int) -> Line:
    """A heading that is drawn through."""
    head = fitted(f"── {text} ", width)
    return ((head + "─" * (width - cells(head)), "waiting"),)


def cut(line: Line, width: int) -> Line:
    """A line of at most `width` cells; what is cut off is `…`."""
    found: list[Piece] = []
    left = width
    for text, look in line:
        if left <= 0:
            break
        shown = fitted(text, left)
        found.append((shown, look))
        left -= cells(shown)
        if shown != harmless(text):
            break
    return tuple(found)


def wrapped(text: str, width: int, *, most: int | None = None) -> list[str]:
    """A user's text in lines of at most `width` cells, broken between words where that is possible;
    at most so many lines, the last of which then says how many there are more."""
    width = max(4, width)
    lines: list[str] = []
    for line in harmless(hidden(text), lines=True).replace("\t", "    ").split("\n"):
        lines += _broken(line.rstrip(), width)
    if most is not None and len(lines) > most:
        return [*lines[: most - 1], f"… {len(lines) - most + 1} more lines"]
    return lines


def _broken(line: str, width: int) -> list[str]:
    """In time that grows as the line does, whatever stands in it."""
    found: list[str] = []
    start = 0
    while (end := _end_of(line, start, width)) < len(line):
        blank = line.rfind(" ", start + 1, end + 1)
        if blank < 0 or not line[start:blank].strip():
            blank = end
        found.append(line[start:blank].rstrip())
        start = blank
        while start < len(line) and line[start] == " ":
            start += 1
    return [*found, line[start:]] if start < len(line) or not found else found


def _end_of(line: str, start: int, width: int) -> int:
    """Up to where it fits, one character at least."""
    if line.isascii():
        return min(len(line), start + width)
    used = 0
    for number in range(start, len(line)):
        used += cells(line[number])
        if used > width:
            return max(start + 1, number)
    return len(line)


def one_line(text: str | None, most: int = 300) -> str:
    """A text on one line, its beginning."""
    return " ".join(hidden((text or "")[: most * 4]).split())[:most]


def bar(percent: int, width: int = BAR_CELLS) -> str:
    """A part of a whole as a bar."""
    full = min(width, max(0, round(percent * width / 100)))
    return "▰" * full + "▱" * (width - full)


def span(milliseconds: int) -> str:
    """How long something took, in the largest unit that fits, as people say it."""
    seconds = max(0, milliseconds) // 1000
    for unit, length, until in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * until:
            return f"{seconds // length} {unit}"
    return f"{seconds // 86_400} days"
