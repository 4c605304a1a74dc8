"""What the tests of the commands share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inbox_orch.inbox.cli import program
from inbox_orch.shared.shell.execution import execute
from support.commands import Outcome, Project


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs a command line of `inbox --json` in this process: for calls by the hundred."""

    def run(*arguments: str) -> Outcome:
        code = execute("inbox", lambda: program, ["--json", *arguments])
        out, err = capfd.readouterr()
        return Outcome(code, out.encode(), err.encode())

    return run


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A folder with a database, for commands."""
    return Project(tmp_path / "project")
