"""Writing the results of the comparison down: the tables of docs/benchmarks.md, pictures, figures.

Replaces what stands between two marks of the page and leaves the rest, which is written by hand.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from charts import drawn
from common import ROOT, table
from results import Result, compared_with_ours, turns_disagree

PAGE = "benchmarks.md"
FOLDER = "benchmarks"
LEVEL = 1.1
_BEGIN = "<!-- figures: {name}, made by script/bench -->"
_END = "<!-- end of figures -->"


def write(folder: Path, found: Result, facts: Mapping[str, Any]) -> None:
    """One result: its picture, its raw figures, its part of the page."""
    (folder / FOLDER).mkdir(exist_ok=True)
    raw = json.dumps({**found, **facts}, indent=1, ensure_ascii=False)
    _store(folder / FOLDER / f"{found['name']}.json", raw + "\n")
    picture = drawn(found)
    if picture:
        _store(folder / FOLDER / f"{found['name']}.svg", picture)
    replace(folder, found["name"], as_markdown(found, with_picture=bool(picture)))


def replace(folder: Path, name: str, text: str) -> None:
    """Put a text between the marks of that name; a page without them gets them at its end."""
    page = folder / PAGE
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    begin = _BEGIN.format(name=name)
    part = f"{begin}\n\n{text.strip()}\n\n{_END}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(_END), re.DOTALL)
    after, number = pattern.subn(lambda match: part, before)
    _store(page, after if number else f"{before.rstrip()}\n\n{part}\n".lstrip())


def _store(path: Path, text: str) -> None:
    """Without the folders of this machine."""
    path.write_text(text.replace(str(ROOT), "."), encoding="utf-8")


def as_markdown(found: Result, *, with_picture: bool) -> str:
    """The picture, what was done, the table, who is ahead."""
    parts = [f"![{found['title']}]({FOLDER}/{found['name']}.svg)"] if with_picture else []
    parts += [found["did"], _table(found), said(found)]
    return "\n\n".join(part for part in parts if part)


def _table(found: Result) -> str:
    """Who has figures, then who has none and why, each reason once."""
    keys = list(found["columns"])
    noted = any(row["note"] for row in found["rows"])
    rows: list[list[object]] = []
    for row in found["rows"]:
        if row["cannot"] is None:
            name = f"**{row['name']}**" if row["ours"] else row["name"]
            values = [row["values"].get(key) for key in keys]
            rows.append([name, *values, *([row["note"]] if noted else [])])
    for reason, names in _reasons(found).items():
        rows.append([", ".join(names), reason, *[None] * (len(keys) - 1 + noted)])
    return table(["", *found["columns"].values(), *(["remarks"] if noted else [])], rows)


def _reasons(found: Result) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for row in found["rows"]:
        if row["cannot"] is not None:
            reasons.setdefault(row["cannot"].replace("|", "/"), []).append(row["name"])
    return reasons


def said(found: Result) -> str:
    """Who is ahead of ours, and who is level, in a sentence. What differs by less than a tenth
    differs by chance, and so does what one turn says and another contradicts."""
    clear, level = [], []
    margin = 1.0 if found["exact"] else LEVEL
    for name, factor in compared_with_ours(found):
        if 1 / margin < factor < margin or turns_disagree(found, name):
            level.append(name)
        elif factor > 1:
            clear.append(f"{name} ({_factor(factor)})")
    if not clear and not level:
        return "Nobody who can do this is ahead."
    parts = ["ahead: " + ", ".join(clear)] if clear else []
    text = "; ".join([*parts, *(["level: " + ", ".join(level)] if level else [])])
    return f"{text[0].upper()}{text[1:]}."


def _factor(value: float) -> str:
    if math.isinf(value):
        return "nothing could be measured of it"
    return f"{value:,.0f} times" if value >= 10 else f"{value:.2g} times"


def facts_text(facts: Mapping[str, Any]) -> str:
    """What the figures were made with."""
    machine, peers = facts["machine"], facts["releases"]
    named = ", ".join(f"{name} {release}" for name, release in peers.items())
    return (
        f"Made by `{facts['command']}` on {facts['date']} in {facts['minutes']:.1f} minutes:"
        f" {machine['processors']} processors ({machine['processor']}), {machine['kernel']},"
        f" Python {machine['python']}, SQLite {machine['sqlite']}, git {machine['git']}; load"
        f" {machine['load_before']} before it began. Peers: {named or 'none'}."
        f" Network while they ran: {facts['network']}."
    )
