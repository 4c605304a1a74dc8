"""Time limits of commands that begin only when the command has got somewhere."""

from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.gates import running
from support.processes import until


def limited_once_written(monkeypatch: pytest.MonkeyPatch, mark: Path) -> None:
    """The limit of a check or a set-up begins when there is a line in `mark`: a short one would
    be over before a slow machine had started the shell."""
    watch = running.Runner._watch

    def watch_later(runner: running.Runner, *arguments: Any) -> Any:
        until(lambda: mark.exists() and mark.read_text().endswith("\n"))
        return watch(runner, *arguments)

    monkeypatch.setattr(running.Runner, "_watch", watch_later)
