"""What the tests of SQLite share: a leader and a worker on a fake clock, and a watch over all that
is written."""

from collections.abc import Iterator

import pytest

from inbox_orch.inbox import Bus
from sqlite.kind import Sqlite
from support.buses import Office


@pytest.fixture(autouse=True)
def every_write_has_the_write_lock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test of this folder does in its own process, nothing is written outside of a
    transaction that began by taking the write lock."""
    with Sqlite().only_written_with_the_lock(monkeypatch):
        yield


@pytest.fixture
def leader(office: Office) -> Bus:
    """Who sends."""
    return office.bus("leader")


@pytest.fixture
def worker(office: Office) -> Bus:
    """Who claims; its name is w1."""
    return office.bus("w1")
