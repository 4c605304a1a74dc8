"""A set-up that is killed before any of its steps is told by --check, and mended by going on or by
taking it back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.timing import PATIENCE_SECONDS

_TESTS = str(Path(__file__).resolve().parent.parent)
_DRIVER = f"import sys; sys.path.insert(0, {_TESTS!r}); from support.setups import main; main()"


@pytest.mark.parametrize(
    "agent, scope, style",
    [
        ("claude", "project", "two_spaces"),
        ("codex", "user", "-"),
        ("gemini", "project", "tabs"),
        ("copilot", "user", "one_line"),
    ],
)
def test_a_kill_before_any_step_is_mended_either_way(
    agent: str, scope: str, style: str, tmp_path: Path
):
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _DRIVER, str(tmp_path), agent, scope, style],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert ended.returncode == 0, ended.stderr
    steps = json.loads(ended.stdout)
    assert steps["install"] > 30
    assert steps["undo"] > 10
