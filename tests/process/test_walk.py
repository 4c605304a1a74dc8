"""How far the ways are that calls take through our modules and through the database, as
`script/walk` counts them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "script" / "_walk.py"
MOST = {
    "claim": {"rooms": 19, "snapshots": 1, "statements": 22, "git": 0},
    "dispatch": {"rooms": 37, "snapshots": 2, "statements": 45, "git": 8},
    "council wait": {"rooms": 50, "snapshots": 24, "statements": 262},
    "council report": {"rooms": 62, "snapshots": 12, "statements": 129},
}


@pytest.fixture(scope="module")
def walked() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", str(SCRIPT), "--json", "--turns", "0"],
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("call", MOST)
def test_a_call_goes_no_further_than_it_has_to(walked, call: str):
    found = walked[call]

    longer = {name: found[name] for name, most in MOST[call].items() if found[name] > most}

    assert longer == {}, (sorted(found["entered"]), found["said"])


def test_one_snapshot_is_taken_before_anything_is_chosen_and_one_in_the_lock_of_the_attempt(walked):
    said = walked["dispatch"]["said"]

    assert [s for s in said if s.startswith("BEGIN")] == ["BEGIN", "BEGIN IMMEDIATE"] * 2
