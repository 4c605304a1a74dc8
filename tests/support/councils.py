"""Councils for tests: the labelled sets as replies, and replies written by hand."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inbox_orch.orch.council.model import Council, Decision, Item, Parameters, Reply, Seat

DATA = Path(__file__).resolve().parents[1] / "data" / "council"
COUNCIL_ID, BRIEF_SHA256 = "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ab" * 32
DECISIONS = (Decision("D1", "Which journal mode?", ("WAL", "DELETE")),)


def labelled(name: str) -> tuple[list[Item], dict[str, str]]:
    """The items of a labelled set, and the true group of each by its id."""
    items, truth = [], {}
    for number, row in enumerate(json.loads((DATA / f"{name}.json").read_text())):
        item = Item(
            id=f"{row['reviewer']}/i{number:03}",
            reviewer=row["reviewer"],
            title=row["text"] if "text" in row else row["title"],
            proposal=row.get("proposal", ""),
            rationale=row.get("rationale", ""),
            keywords=tuple(row["keywords"]),
            stance={"dont": "avoid"}.get(row["stance"], row["stance"]),
            about=row["anchor"],
        )
        items.append(item)
        truth[item.id] = row["group"]
    return items, truth


def opposed_topics(name: str) -> set[frozenset[str]]:
    """Pairs of groups of a labelled set that speak against each other."""
    rows = json.loads((DATA / "opposites.json").read_text()).get(name, [])
    return {frozenset(row) for row in rows}


def council_of(items: Iterable[Item], *, seats: int = 3, **options: Any) -> Council:
    """A closed council whose reviewers raised these items."""
    by_reviewer: dict[str, list[Item]] = {}
    for item in items:
        by_reviewer.setdefault(item.reviewer, []).append(item)
    names = list(by_reviewer) + [f"absent{n}" for n in range(seats - len(by_reviewer))]
    return Council(
        id=COUNCIL_ID,
        title="How to store the state",
        brief_sha256=BRIEF_SHA256,
        seats=tuple(
            Seat(name, "valid", Reply(name, "approve", items=tuple(by_reviewer[name])))
            if name in by_reviewer
            else Seat(name, "timed_out", None, "no reply before the deadline")
            for name in names
        ),
        **{"parameters": Parameters(), **options},
    )


def item(name: str, title: str, keywords: Sequence[str] = (), **options: Any) -> Item:
    """An item by its id."""
    values = {"stance": "do", **options}
    return Item(name, name.split("/")[0], title, keywords=tuple(keywords), **values)


def reply(**changes: Any) -> dict[str, Any]:
    """A whole reply as JSON has it."""
    recommendation = {
        "id": "wal",
        "title": "Enable WAL mode",
        "proposal": "Switch the journal mode, so that readers do not wait.",
        "keywords": ["wal", "sqlite", "journal mode"],
        "stance": "do",
    }
    return {
        "schema": "orch.council.reply/1",
        "council_id": COUNCIL_ID,
        "round": 1,
        "brief_sha256": BRIEF_SHA256,
        "checked": ["S1"],
        "decisions": [{"decision": "D1", "choice": "WAL"}],
        "recommendations": [recommendation],
        "verdict": "approve",
        **changes,
    }
