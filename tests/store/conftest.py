"""What the tests of the stores share: a leader and a worker on a fake clock."""

import pytest

from inbox_orch.inbox import Bus
from support.buses import Office


@pytest.fixture
def leader(office: Office) -> Bus:
    """Who sends."""
    return office.bus("leader")


@pytest.fixture
def worker(office: Office) -> Bus:
    """Who claims; its name is w1."""
    return office.bus("w1")
