"""Makes docs/reference/policy.md: the rules of a policy, the floor, the keys that are known."""

import json
from pathlib import Path
from typing import Any

from inbox_orch.orch.patches import floor
from inbox_orch.orch.patches.secret_formats import FORMATS
from inbox_orch.orch.runs.policies import ASK_PATHS, KINDS, RULES, Rule

ROOT = Path(__file__).resolve().parent.parent
PAGE = """\
<!-- Made by script/reference. Change orch/runs/policies.py, not this page. -->

# Rules of a policy

What they are for, and where they are given, says the [guide](../policies.md); which are in force,
`orch policy show`.

## Rules

{rules}
`ask_paths` asks by itself about {asked}

How the values of several layers come together:

{kinds}
## The floor

Holds for every change, with a policy or without. Nothing loosens it.

{floor}
A change that could not be judged, because there is too much of it or because something went
wrong, is denied as well (`unjudged`), and says so.

## Keys that are known

{keys}
"""


def pages() -> dict[Path, str]:
    """The page, by its path."""
    kinds = sorted({form.kind for form in FORMATS})
    text = PAGE.format(
        rules=_table(
            ("rule", "built-in value", "broken", "what it is"), map(_rule, RULES.values())
        ),
        asked=", ".join(f"`{pattern}`" for pattern in ASK_PATHS) + ".",
        kinds=_table(("rules", "together"), map(_kind, KINDS.items())),
        floor=_table(("rule", "broken where"), ((f"`{n}`", why) for n, why in floor.RULES.items())),
        keys=", ".join(kinds) + ".",
    )
    return {ROOT / "docs" / "reference" / "policy.md": text}


def _rule(rule: Rule) -> tuple[str, ...]:
    value = rule.default
    shown = "(see below)" if isinstance(value, tuple) else f"`{json.dumps(value).strip(chr(34))}`"
    broken = {None: "as it says", "deny": "denied", "ask": "asked"}[rule.broken]
    broken = "–" if rule.kind == "history" else broken
    return f"`{rule.name}`", "–" if value is None else shown, broken, rule.meaning


def _kind(entry: tuple[str, str]) -> tuple[str, str]:
    kind, meaning = entry
    names = (f"`{rule.name}`" for rule in RULES.values() if rule.kind == kind)
    return ", ".join(names), meaning


def _table(headings: tuple[str, ...], rows: Any) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
