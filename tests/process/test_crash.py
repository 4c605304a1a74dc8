"""Killed at one step after the other of an operation: nothing is lost or there by half."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.crashes import SCENARIOS
from support.timing import PATIENCE_SECONDS

_TESTS = str(Path(__file__).resolve().parent.parent)
_DRIVER = f"import sys; sys.path.insert(0, {_TESTS!r}); from support.crashes import main; main()"


@pytest.mark.parametrize("operation", SCENARIOS)
def test_a_kill_before_any_step_leaves_it_whole_or_undone(operation, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _DRIVER, operation, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert ended.returncode == 0, ended.stderr
    deaths = json.loads(ended.stdout)
    sys.stdout.write(f"{operation}: killed before {deaths['steps']} steps\n")
    # Both kinds of death happened: before the result was there, and after it.
    assert deaths["after_return"] >= 1
    assert deaths["steps"] - deaths["after_return"] >= 10
