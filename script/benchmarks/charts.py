"""A picture of one result: horizontal bars as SVG, in light and in dark.

Plain text, no script, nothing loaded from elsewhere. The ground changes with the colours, so the
picture can be read also on a page that is not as dark or light as the reader's system. Written
by hand because a library for plots neither follows `prefers-color-scheme` nor keeps text as text,
and the smoke test needs no package index this way.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape

from results import Result

WIDTH = 780
LABELS = 220
RIGHT = 96
TOP = 62
BAR = 13
GAP = 10
# Beyond this ratio of the longest bar to the shortest, a linear scale shows the short ones no more.
LOG_FROM = 25.0

_STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de }
  text { fill: #1f2328; font: 12px system-ui, -apple-system, "Segoe UI", sans-serif }
  .title { font-size: 14px; font-weight: 600 }
  .quiet { fill: #59636e }
  .line { stroke: #d8dee4 }
  .ours { fill: #0969da } .theirs { fill: #8c959f } .floor { fill: #d4a72c }
  .s1 { opacity: .65 } .s2 { opacity: .4 }
  .bold { font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117; stroke: #30363d }
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .line { stroke: #30363d }
    .ours { fill: #4493f8 } .theirs { fill: #7d8590 } .floor { fill: #bb8009 }
  }
"""


class Scale:
    """From a value to a distance; linear from zero, or logarithmic from a power of ten."""

    def __init__(self, values: Sequence[float], room: float) -> None:
        least, most = min(values), max(values)
        self.logarithmic = least > 0 and most / least > LOG_FROM
        self._room = room
        if self.logarithmic:
            self._low = math.floor(math.log10(least) - 0.05)
            self._high = math.ceil(math.log10(most))
        else:
            self._step = _round_step(most / 5)
            self._high = max(1, math.ceil(most / self._step - 1e-9)) * self._step

    def at(self, value: float) -> float:
        """Where a value lies."""
        if self.logarithmic:
            share = (math.log10(value) - self._low) / (self._high - self._low)
        else:
            share = value / self._high
        return max(0.0, share) * self._room

    def ticks(self) -> list[float]:
        """The values that the axis names."""
        if self.logarithmic:
            return [10.0**power for power in range(self._low, self._high + 1)]
        return [self._step * number for number in range(round(self._high / self._step) + 1)]


def _round_step(least: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def drawn(result: Result) -> str:
    """The picture, or an empty text where nobody has a figure."""
    rows = [row for row in result["rows"] if any(row["values"].get(k) for k in result["compared"])]
    values = [v for row in rows for k in result["compared"] if (v := row["values"].get(k))]
    if not values:
        return ""
    return "\n".join(_lines(result, rows, Scale(values, WIDTH - LABELS - RIGHT))) + "\n"


def _lines(result: Result, rows: list[dict[str, Any]], scale: Scale) -> Iterator[str]:
    keys = result["compared"]
    each = BAR * len(keys) + GAP
    bottom = TOP + each * len(rows)
    height = bottom + 44
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img">'
    )
    yield f"<title>{escape(_plain(result['title']))}</title>"
    yield f"<style>{_STYLE}</style>"
    yield f'<rect class="ground" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>'
    yield f'<text class="title" x="16" y="26">{escape(_plain(result["title"]))}</text>'
    yield from _legend(result)
    yield from _axis(result, scale, bottom)
    for number, row in enumerate(rows):
        yield from _row(row, keys, scale, TOP + each * number)
    yield "</svg>"


def _legend(result: Result) -> Iterator[str]:
    """Which way is better, and the names of the bars of one row."""
    better = "less is better" if result["less_is_better"] else "more is better"
    yield f'<text class="quiet" x="16" y="46">{better}</text>'
    if len(result["compared"]) < 2:
        return
    x = LABELS
    for place, key in enumerate(result["compared"]):
        heading = result["columns"][key]
        yield f'<rect class="theirs s{place}" x="{x}" y="36" width="11" height="11" rx="2"/>'
        yield f'<text class="quiet" x="{x + 16}" y="46">{escape(heading)}</text>'
        x += 34 + 7 * len(heading)


def _axis(result: Result, scale: Scale, bottom: float) -> Iterator[str]:
    for tick in scale.ticks():
        x = LABELS + scale.at(tick)
        yield f'<path class="line" d="M{x:.1f} {TOP - 6}V{bottom}"/>'
        yield (
            f'<text class="quiet" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">'
            f"{figure(tick)}</text>"
        )
    unit = result["unit"] + (" (logarithmic)" if scale.logarithmic else "")
    middle = LABELS + (WIDTH - LABELS - RIGHT) / 2
    yield (
        f'<text class="quiet" x="{middle:.0f}" y="{bottom + 34}" text-anchor="middle">'
        f"{escape(unit)}</text>"
    )


def _row(row: dict[str, Any], keys: Sequence[str], scale: Scale, top: float) -> Iterator[str]:
    kind = "ours" if row["ours"] else "floor" if row["floor"] else "theirs"
    bold = ' class="bold"' if row["ours"] else ""
    middle = top + BAR * len(keys) / 2 + 4
    yield (
        f'<text{bold} x="{LABELS - 10}" y="{middle:.1f}" text-anchor="end">'
        f"{escape(row['name'])}</text>"
    )
    for place, key in enumerate(keys):
        value = row["values"].get(key)
        if not value:
            continue
        y, length = top + BAR * place, max(1.5, scale.at(value))
        yield (
            f'<rect class="{kind} s{place}" x="{LABELS}" y="{y}" width="{length:.1f}"'
            f' height="{BAR - 2}" rx="2"/>'
        )
        yield f'<text x="{LABELS + length + 6:.1f}" y="{y + BAR - 3}">{figure(value)}</text>'


def _plain(text: str) -> str:
    """Without the marks of Markdown."""
    return text.replace("`", "")


def figure(value: float) -> str:
    """To three digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.001 else f"{value:.1g}"
