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
    """One contender. `cannot` says why it has no figures; `floor` marks what is no contender
    but a measure, such as a bare Python."""
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
    turns: Mapping[str, Sequence[float]] | None = None,
    exact: bool = False,
) -> Result:
    """One result. `columns`: key -> heading; `compared`: the keys that are drawn, of which the
    last one decides who is ahead; `did` says in words what was done. `turns`, where single turns
    differ much: the figures of what decides, by contender and turn. `exact`: the same again in
    every run, so that nothing differs by chance."""
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
        "exact": exact,
        "turns": {name: list(found) for name, found in (turns or {}).items()},
    }


def median_ms(seconds: Sequence[float]) -> float:
    """The median in milliseconds."""
    return statistics.median(seconds) * 1000


def compared_with_ours(found: Result) -> list[tuple[str, float]]:
    """How many times everybody else is ahead of ours in what decides, the farthest first; less
    than one time is behind. Commands are compared with commands, and calls with calls."""
    key, less = found["compared"][-1], found["less_is_better"]
    shown = [row for row in found["rows"] if row["values"].get(key) is not None]
    factors = []
    for group in {row["group"] for row in shown}:
        rows = [row for row in shown if row["group"] == group and not row["floor"]]
        ours = [row["values"][key] for row in rows if row["ours"]]
        for row in (row for row in rows if ours and not row["ours"]):
            theirs = row["values"][key]
            factor = _times(min(ours), theirs) if less else _times(theirs, max(ours))
            factors.append((row["name"], factor))
    return sorted(factors, key=lambda pair: -pair[1])


def turns_disagree(found: Result, name: str) -> bool:
    """Whether ours was faster in some turns and slower in others, so that a median decides
    nothing: unless five of six turns agree, or more."""
    theirs = found["turns"].get(name)
    ours = [turns for row in found["rows"] if row["ours"]
            if (turns := found["turns"].get(row["name"])) is not None]  # fmt: skip
    if theirs is None or not ours:
        return False
    pairs = list(zip(ours[0], theirs, strict=False))
    less = sum(one < other for one, other in pairs)
    return max(less, len(pairs) - less) * 6 < len(pairs) * 5


def _times(more: float, less: float) -> float:
    """`less` in `more`: infinitely often where nothing could be measured of it."""
    return more / less if less else (math.inf if more else 1.0)
