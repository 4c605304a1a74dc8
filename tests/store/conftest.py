"""What the tests of the stores share: a leader and a worker on a fake clock, and a watch over all
that is written."""

from collections.abc import Iterator

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared import connecting
from inbox_orch.shared.layout import Layout
from support.buses import Office
from support.writing import Writing, watched


@pytest.fixture(autouse=True)
def every_write_has_the_write_lock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test of this folder does in its own process, nothing is written outside of a
    transaction that began by taking the write lock."""
    connect = connecting._connected
    connections: list[Writing] = []

    def watching(layout: Layout, *, alone: bool = False) -> object:
        connections.append(Writing())
        return watched(connect(layout, alone=alone), connections[-1])

    monkeypatch.setattr(connecting, "_connected", watching)
    yield
    assert [fault for writing in connections for fault in writing.faults] == []


@pytest.fixture
def leader(office: Office) -> Bus:
    """Who sends."""
    return office.bus("leader")


@pytest.fixture
def worker(office: Office) -> Bus:
    """Who claims; its name is w1."""
    return office.bus("w1")
