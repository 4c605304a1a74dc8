"""What every test may count on: where the installed commands are, and a clean environment."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from support.runs import Site

ROOT = Path(__file__).resolve().parent.parent

# A shell that runs the tests in the background has SIGINT ignored, and every command that a test
# starts would inherit that. With a handler here, they start with the default again.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure, and the same examples every time make a red run repeatable.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def inbox_bin() -> str:
    """The absolute path of the installed `inbox`."""
    return _installed("inbox")


@pytest.fixture(scope="session")
def orch_bin() -> str:
    """The absolute path of the installed `orch`."""
    return _installed("orch")


def _installed(command: str) -> str:
    # Not resolved: in a virtual environment the Python is a link to one outside of it.
    path = Path(sys.executable).parent / command
    assert path.is_file(), f"{path} is missing: run script/test, which installs it"
    return str(path)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory):
    """Keeps a developer's own settings, and a calling git hook's, out of the tests."""
    for name in os.environ:
        if name.startswith(("INBOX_", "ORCH_", "GIT_")):
            monkeypatch.delenv(name)
    for name in ("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(_home(tmp_path_factory)))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@example.invalid")


def _home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.getbasetemp() / "home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture
def site(tmp_path: Path):
    """A repository with a database and a scheduler."""
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tests first, so that no worker is left with one of them at the end."""
    items.sort(key=lambda item: "process" not in item.path.parts)
