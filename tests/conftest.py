"""What every test may count on: where the installed commands are, a clean environment, and an order
of the tests that is another one every time and can be had again."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from support import engines
from support.buses import Office
from support.locking import refuse_git_in_transactions
from support.runs import Site

ROOT = Path(__file__).resolve().parent.parent

# A shell that runs the tests in the background has SIGINT ignored, and nohup(1) SIGHUP; every
# command that a test starts would inherit that. With a handler here, they start with the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for ignored in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, lambda number, frame: None)

# A busy machine is no failure, and the same examples every time make a red run repeatable.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

# Settings of a developer, of a calling git hook, of a terminal, that would be met by every command.
FOREIGN_PREFIXES = ("GIT_", "INBOX_", "LC_", "ORCH_", "PYTHON", "SUDO_", "XDG_")
FOREIGN = {
    *("BASH_ENV", "CDPATH", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "EDITOR", "ENV"),
    *("FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "NO_COLOR", "PAGER", "POSIXLY_CORRECT"),
    *("PYTEST_ADDOPTS", "TERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "TZ", "VISUAL"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--engine NAME`: what the conformance suite (tests/store) runs on."""
    parser.addoption(
        "--engine",
        choices=sorted(engines.ENGINES),
        default=engines.DEFAULT,
        help="what tests/store runs on",
    )


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


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which every test has its home."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(scope="session", autouse=True)
def clean_environment(homes: Path) -> Iterator[None]:
    """Keeps a developer's own settings, and a calling git hook's, out of the tests.

    For the whole session, so that what several tests share is made in it, too.
    """
    mask = os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(FOREIGN_PREFIXES) or name in FOREIGN:
                patch.delenv(name)
        patch.setenv("HOME", tempfile.mkdtemp(dir=homes))
        patch.setenv("LANG", "C.UTF-8")
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "Tester")
            patch.setenv(f"GIT_{role}_EMAIL", "tester@example.invalid")
        yield
    os.umask(mask)


@pytest.fixture(autouse=True)
def no_git_while_the_write_lock_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test does in its own process."""
    refuse_git_in_transactions(monkeypatch)


@pytest.fixture(autouse=True)
def empty_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test leaves at home, no other finds."""
    monkeypatch.setenv("HOME", tempfile.mkdtemp(dir=homes))


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A database, with buses for several agents on one fake clock."""
    made = Office(tmp_path)
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A repository with a database and a scheduler."""
    made = Site(tmp_path)
    yield made
    made.close()


def pytest_collection_finish() -> None:
    """The collected tests stay until the end: nothing needs to look through them for garbage.

    Hypothesis makes its source of chance at its first example, and warns when it sees nothing that
    holds it. From Python 3.14 on it does not see what is frozen, so the first example comes before.
    """
    given(strategies.none())(lambda none: None)()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tests first, so that no worker is left with one of them at the end.

    The sort is stable: among the long ones, and among the others, the random order stays.
    """
    items.sort(key=lambda item: "process" not in item.path.parts)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """How to have the order of a red run again; the header that says it may have been left out."""
    seed = config.getoption("randomly_seed", None)
    if exitstatus and isinstance(seed, int):
        terminalreporter.line(f"This order again: script/test --randomly-seed={seed}")
