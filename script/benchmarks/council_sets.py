"""The labelled sets of councils, and what a tally makes of them: that of the installed package, or
that of another installed version, which is asked in its own interpreter."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inbox_orch.orch.council.tally import tally

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support.councils import DATA, council_of, labelled  # noqa: E402

SETS = ("set_a", "set_b")
"""Of one sentence an item, written for the purpose."""

LOOKED_AT = (*SETS, *(f"set_{letter}" for letter in "defghijklmnopqr"))
"""What the method was made with. Every other set is for the verdict: nobody who works on the method
looks at what it makes of those."""


def every_set() -> list[str]:
    """The names of the sets that are there."""
    return sorted(path.stem for path in DATA.glob("set_*.json"))


def outcome(name: str) -> dict[str, Any]:
    """What the tally of this interpreter makes of a set: groups of items, and opposed pairs."""
    items, _ = labelled(name)
    counted = tally(council_of(items))
    return {
        "groups": [[member.id for member in one.members] for one in counted.groups],
        "contested": [list(one.pair.items) for one in counted.contested],
    }


def outcomes(python: str | None, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The same by the package that another interpreter has installed, if one is named."""
    if python is None:
        return {name: outcome(name) for name in names}
    done = subprocess.run(
        [python, "-P", str(Path(__file__)), *names], capture_output=True, text=True, check=True
    )
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(outcomes(None, sys.argv[1:])))
