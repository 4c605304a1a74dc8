"""Makes docs/reference/convergence.md and failures.md: why an attempt with a blueprint goes on, or
ends. The first is made of the sequences that the tests judge (tests/data/convergence.toml).
"""

import tomllib
from pathlib import Path
from typing import Any

from inbox_orch.orch.stages.convergence import LEAST_LINES, VERDICTS
from inbox_orch.orch.stages.failures import FAILURES, THEN

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by script/reference. Change {source}, not this page. -->\n"

CONVERGENCE = """\
{made}
# Whether it converges

A loop of a blueprint mends what a gate found. After each visit it is judged, gate by gate, from
what is stored: the id of the tree, and the failures that count. Only visits that were to change
something are in a series; a new one begins when the gate passes, and when somebody answers
`continue`. Waiting and questions never count. The first verdict that fits is given:

{verdicts}
Where it stops, somebody decides. A repair counts its visits since its loop was last entered: the
stages between it and the gate that sends to it. Where loops lie in one another, the one whose stage
stands first in the file is the inner one, and begins anew each time the outer one comes back to it.

*Diverging* is a warning, and stops only with `on_diverging: pause`: a test that passed at the base
fails now; paths outside of the task were changed; the diff has grown by half twice in a row, to
{least} lines or more, without fewer failures.

## Sequence by sequence

`A x y*2` is a tree `A` with a failure `x` and two failures `y`; `A` alone has none. After `–` a new
series begins. A verdict in bold stops. The last column is how many visits are left at the end.
{groups}"""

FAILURES_PAGE = """\
{made}
# What becomes of a failure

Inside an attempt that goes by a blueprint. What ends nothing leaves the attempt as it is until
somebody has decided. Such an attempt is tried again only where `max_attempts` says so.

{failures}"""


def pages() -> dict[Path, str]:
    """Both pages, by their paths."""
    folder = ROOT / "docs" / "reference"
    return {folder / "convergence.md": _convergence(), folder / "failures.md": _failures()}


def _convergence() -> str:
    table = tomllib.loads((ROOT / "tests" / "data" / "convergence.toml").read_text("utf-8"))
    groups = [
        f"\n### {group['title']}\n\n"
        + _table(("what", "points", "verdicts", "left"), [_row(case) for case in group["cases"]])
        for group in table["group"]
    ]
    return CONVERGENCE.format(
        made=MADE.format(source="tests/data/convergence.toml"),
        verdicts=_table(("verdict", "when"), [list(each) for each in VERDICTS.items()]),
        least=LEAST_LINES,
        groups="".join(groups),
    )


def _row(case: dict[str, Any]) -> list[str]:
    points = ["–" if point == "--" else f"`{point.strip()}`" for point in case["points"]]
    verdicts = [
        f"**{word.rstrip('!')}**" if word.endswith("!") else word
        for word in case["verdicts"].split()
    ]
    return [case["name"], " ".join(points) or "none", ", ".join(verdicts), str(case["left"])]


def _failures() -> str:
    rows = [
        [failure.what, failure.ends or "–", failure.counts or "–", THEN[failure.then], failure.told]
        for failure in FAILURES.values()
    ]
    return FAILURES_PAGE.format(
        made=MADE.format(source="orch/stages/failures.py"),
        failures=_table(("what failed", "ends", "counts among", "then", ""), rows),
    )


def _table(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
