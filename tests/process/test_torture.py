"""The torture runs, finds nothing, and notices a guarantee that is broken on purpose.

A short form runs always; `TORTURE_MINUTES=N` makes it longer, and tries every broken guarantee.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "script" / "torturing" / "__main__.py"
MINUTES = float(os.environ.get("TORTURE_MINUTES", "0.1"))
LONG = "TORTURE_MINUTES" in os.environ


def torture(tmp_path: Path, *options: str) -> dict[str, Any]:
    """The summary of a run."""
    done = subprocess.run(
        [sys.executable, PROGRAM, "--keep", tmp_path / "run", "--json", *options],
        capture_output=True,
        text=True,
        timeout=MINUTES * 60 + 240,
    )
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if summary["violations"] else 0)
    return summary


def test_many_processes_under_faults_break_no_promise(tmp_path):
    summary = torture(tmp_path, "--minutes", str(MINUTES), "--seed", "11")

    assert summary["violations"] == []
    assert summary["faults"]["kill -9"] > 0
    assert summary["acknowledged"] > 100


@pytest.mark.skipif(not LONG, reason="TORTURE_MINUTES=N tries it")
@pytest.mark.parametrize("broken", ["one-owner", "fencing", "cursor", "bell", "event"])
def test_a_broken_guarantee_is_noticed(broken, tmp_path):
    options = ("--seed", "11", "--calm", "--no-git", "--crew", "2")
    summary = torture(tmp_path, "--minutes", str(MINUTES), "--break", broken, *options)

    assert summary["violation_count"] > 0
