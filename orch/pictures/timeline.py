"""Attempts over time (a Gantt chart), as text of at most 80 columns and as SVG."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inbox_orch.shared.clock import rfc3339

from ..attempts.visits import Visit
from ..runs.model import Attempt
from ..views.stage_words import entry
from .drawing import COLOURS
from .svg import HEADING, LEAST_WIDTH, LEGEND, MARGIN, legend, opening, xml
from .text import Piece
from .widths import cells, fitted, padded

BAR_CELLS = 36
ROW = 26
CHART_WIDTH = 640
MOST_LABEL = 30
CELL = 7.3
_SMALL = 6.7  # a character of the axis
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


class Bar(NamedTuple):
    """One attempt: milliseconds since 1970; `live`: it has not ended, and goes up to now."""

    label: str
    state: str
    begin_ms: int
    end_ms: int
    live: bool


def bar_of(label: str, attempt: Attempt, end_ms: int) -> Bar:
    """The bar of an attempt."""
    return Bar(label, attempt.state, attempt.created_at, end_ms, attempt.live)


_LOOKS = {"live": "running", "error": "failed", "void": "cancelled"}
"""The states of visits that no attempt has, as bars have them."""


def bar_of_visit(visit: Visit, end_ms: int) -> Bar:
    """The bar of a visit, which stands below that of its attempt."""
    asks = visit.kind == "decision" and visit.live
    state = "blocked" if asks else _LOOKS.get(visit.state, visit.state)
    label = f"  {entry(visit.stage, visit.nth)}"
    return Bar(label, state, visit.created_at, end_ms, visit.live)


class Span(NamedTuple):
    """The time that a chart shows."""

    begin_ms: int
    end_ms: int

    @property
    def seconds(self) -> float:
        return max(0.001, (self.end_ms - self.begin_ms) / 1000)

    def share(self, at_ms: int) -> float:
        """Where a moment lies, from 0 to 1."""
        return min(1.0, max(0.0, (at_ms - self.begin_ms) / 1000 / self.seconds))


def span_of(bars: Sequence[Bar]) -> Span:
    """From the first beginning to the last end."""
    if not bars:
        return Span(0, 0)
    return Span(min(bar.begin_ms for bar in bars), max(bar.end_ms for bar in bars))


def how_long(seconds: float) -> str:
    """`4s`, `2m05s`, `3h20m`, `2d03h`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def spoken(seconds: float) -> str:
    """As people say it, to two units: `under 1 s`, `4 s`, `2 min 5 s`, `3 h`, `2 days 3 h`."""
    whole = int(seconds + 0.5)
    if seconds < 1:
        return "under 1 s"
    units = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    place = next(n for n, (_, length) in enumerate(units) if whole >= length)
    (unit, length), rest = units[place], units[place + 1 : place + 2]
    first = f"{whole // length} {unit}" + ("s" if unit == "day" and whole // length > 1 else "")
    second = [f"{whole % length // size} {name}" for name, size in rest if whole % length // size]
    return " ".join((first, *second))


def _of_bar(seconds: float) -> str:
    return "<1s" if seconds < 1 else how_long(seconds)


def timeline_lines(heading: str, bars: Sequence[Bar]) -> Iterator[list[Piece]]:
    """The lines, in pieces."""
    yield [(fitted(heading, 80), None)]
    if not bars:
        yield [("no attempts yet", None)]
        return
    span = span_of(bars)
    label = min(18, max(cells(bar.label) for bar in bars))
    yield [(" " * (label + 1) + _axis(span), None)]
    for bar in bars:
        seconds = (bar.end_ms - bar.begin_ms) / 1000
        begin = min(int(span.share(bar.begin_ms) * BAR_CELLS), BAR_CELLS - 1)
        end = max(begin + 1, round(span.share(bar.end_ms) * BAR_CELLS))
        drawn = "█" * (end - begin - 1) + ("▶" if bar.live else "█")
        yield [
            (padded(bar.label, label) + " ", None),
            (" " * begin, None),
            (drawn, bar.state),
            (" " * (BAR_CELLS - end + 1), None),
            (_of_bar(seconds).rjust(6) + " ", None),
            (fitted(bar.state, 80 - label - BAR_CELLS - 9), bar.state),
        ]


def _axis(span: Span) -> str:
    begin, end = _clock(span.begin_ms, span), _clock(span.end_ms, span)
    gap = BAR_CELLS - len(begin) - len(end)
    return f"{begin}{'·' * gap}{end}"


def _clock(at_ms: int, span: Span) -> str:
    """The time of day; with the day where the span has more than one."""
    begin, end, at = (str(rfc3339(ms)) for ms in (span.begin_ms, span.end_ms, at_ms))
    return at[11:19] if begin[:10] == end[:10] else f"{at[:10]} {at[11:16]}"


def timeline_svg(heading: str, bars: Sequence[Bar]) -> str:
    """The picture."""
    return "\n".join(_svg(heading, bars)) + "\n"


def _svg(heading: str, bars: Sequence[Bar]) -> Iterator[str]:
    span = span_of(bars)
    label = min(MOST_LABEL, max((cells(bar.label) for bar in bars), default=8)) * CELL + 12
    left, top = MARGIN + label, MARGIN + HEADING + 20
    tail = 8 * CELL
    width = max(left + CHART_WIDTH + tail + MARGIN, LEAST_WIDTH)
    bottom = top + ROW * len(bars)
    height = bottom + LEGEND + MARGIN
    yield from opening(width, height, heading)
    if bars:
        yield from _ticks(span, left, top, bottom)
    for row, bar in enumerate(bars):
        yield from _bar(bar, span, left, top + row * ROW)
    yield from legend(_counts(bars), height - MARGIN - 12, width)
    yield "</svg>"


def _counts(bars: Sequence[Bar]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for bar in bars:
        counts[bar.state] = counts.get(bar.state, 0) + 1
    return list(counts.items())


def _ticks(span: Span, left: float, top: float, bottom: float) -> Iterator[str]:
    """A line every so many seconds, at most about eight of them."""
    step = next((s for s in _STEPS if span.seconds / s <= 8), None)
    if step is None:
        step = int(span.seconds / 8 / 86400 + 1) * 86400
    begin = f"{_clock(span.begin_ms, span)} UTC"
    for number in range(int(span.seconds // step) + 1):
        x = left + number * step / span.seconds * CHART_WIDTH
        yield (
            f'<line class="tick" x1="{x:.1f}" y1="{top - 6:.1f}" x2="{x:.1f}" y2="{bottom:.1f}"'
            ' stroke="#d0d7de"/>'
        )
        text = how_long(number * step) if number else begin
        if number and x - left < (len(begin) + len(text) / 2 + 1) * _SMALL:
            continue  # it would stand on the first one
        anchor = "middle" if number else "start"
        yield (
            f'<text x="{x:.1f}" y="{top - 12:.1f}" text-anchor="{anchor}" fill="#57606a"'
            f' font-size="11">{text}</text>'
        )


def _bar(bar: Bar, span: Span, left: float, y: float) -> Iterator[str]:
    fill, line = COLOURS[bar.state]
    x = left + span.share(bar.begin_ms) * CHART_WIDTH
    end = left + span.share(bar.end_ms) * CHART_WIDTH
    seconds = xml(_of_bar((bar.end_ms - bar.begin_ms) / 1000))
    dashed = ' stroke-dasharray="4 2"' if bar.live else ""
    yield (
        f"<g><title>{xml(f'{bar.label}: {bar.state}')}, {seconds}</title>"
        f'<text x="{MARGIN}" y="{y + 15:.1f}">{xml(fitted(bar.label, MOST_LABEL))}</text>'
        f'<rect class="bar" x="{x:.1f}" y="{y + 3:.1f}" width="{max(3.0, end - x):.1f}"'
        f' height="{ROW - 8}" rx="4" fill="{fill}" stroke="{line}"{dashed}/>'
        f'<text x="{max(x + 3, end) + 6:.1f}" y="{y + 15:.1f}" fill="#57606a">{seconds}</text></g>'
    )
