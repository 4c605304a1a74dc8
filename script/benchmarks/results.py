"""The shape of what a job of the comparison has found, whatever was measured.

A result becomes one table and one picture; `as_row` and `result` make its parts. Imports nothing
of the package and draws nothing.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Result = dict[str, Any]
Row = dict[str, Any]


def as_row(
    name: str,
    values: Mapping[str, float | int | str | None] | None = None,
    *,
    cannot: str | None = None,
    floor: bool = False,
    note: str | None = None,
) -> Row:
    """One contender. `cannot` says why it has no figures; `floor` marks what is no contender, but
    what the machine gives at best."""
    return {
        "name": name,
        "ours": name.startswith(("inbox", "orch")),
        "group": "call" if name.endswith("(call)") else "",
        "floor": floor,
        "values": dict(values or {}),
        "cannot": cannot,
        "note": note,
    }


def result(
    name: str,
    *,
    title: str,
    did: str,
    unit: str,
    columns: Mapping[str, str],
    compared: Sequence[str],
    rows: Sequence[Row],
    less_is_better: bool = True,
    commands: Mapping[str, Any] | None = None,
    raw: Any = None,
) -> Result:
    """One result. `columns`: key -> heading; `compared`: the keys that are drawn, of which the
    last one decides who is ahead; `did` says in words what was done."""
    assert set(compared) <= set(columns), (compared, columns)
    return {
        "name": name,
        "title": title,
        "did": did,
        "unit": unit,
        "less_is_better": less_is_better,
        "columns": dict(columns),
        "compared": list(compared),
        "rows": list(rows),
        "commands": dict(commands or {}),
        "raw": raw,
    }


def median_ms(seconds: Sequence[float]) -> float:
    """The median in milliseconds."""
    return statistics.median(seconds) * 1000


def ahead(found: Result) -> list[tuple[str, float]]:
    """Who is ahead of ours in what decides, and how many times, the farthest first. Commands are
    compared with commands, and calls with calls."""
    key, less = found["compared"][-1], found["less_is_better"]
    shown = [row for row in found["rows"] if row["values"].get(key) is not None]
    factors = []
    for group in {row["group"] for row in shown}:
        rows = [row for row in shown if row["group"] == group and not row["floor"]]
        ours = [row["values"][key] for row in rows if row["ours"]]
        for row in rows if ours else ():
            theirs = row["values"][key]
            factor = _times(min(ours), theirs) if less else _times(theirs, max(ours))
            factors.append((row["name"], factor))
    return sorted((pair for pair in factors if pair[1] > 1), key=lambda pair: -pair[1])


def _times(more: float, less: float) -> float:
    """`less` in `more`: infinitely often where nothing could be measured of it."""
    return more / less if less else (math.inf if more else 1.0)
