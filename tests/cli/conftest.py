"""What the tests of the commands share."""

from collections.abc import Callable

import pytest

from inbox_orch.inbox.cli import program
from inbox_orch.shared.commandline import execute
from support.commands import Outcome


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs a command line of `inbox --json` in this process: for calls by the hundred."""

    def run(*arguments: str) -> Outcome:
        code = execute("inbox", lambda: program, ["--json", *arguments])
        out, err = capfd.readouterr()
        return Outcome(code, out.encode(), err.encode())

    return run
