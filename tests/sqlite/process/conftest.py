"""What the tests of real processes at one file share: a database on the real clock."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from support.templates import make_database


@pytest.fixture(autouse=True)
def every_write_has_the_write_lock() -> None:
    """These tests take the library's calls apart themselves, and other processes write."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database, for processes to open."""
    path = tmp_path / ".inbox" / "bus.db"
    make_database(path)
    return path


@pytest.fixture
def leader(path: Path) -> Iterator[Bus]:
    """Who sends, in the process of the test."""
    with Bus.open(path, agent="leader") as leader:
        yield leader
