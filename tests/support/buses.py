"""Buses on real files, and what tests expect to fail."""

from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support import engines
from support.clocks import FakeClock


class Office:
    """A database in a folder of its own, with buses for several agents on one fake clock."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.address = engines.chosen().make(folder, self.clock)
        self.path = Path(self.address)
        self._open: list[Bus] = []

    def bus(self, agent: str | None = None) -> Bus:
        """A connection of its own for an agent."""
        bus = Bus.open(self.address, agent=agent, clock=self.clock)
        self._open.append(bus)
        return bus

    def close(self) -> None:
        """Close every bus."""
        for bus in self._open:
            bus.close()


class refused:  # noqa: N801 - reads like `pytest.raises`
    """`with refused("lease_lost") as failure:` — the call fails with this code."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._raises = pytest.raises(InboxOrchError)

    def __enter__(self):
        self._info = self._raises.__enter__()
        return self._info

    def __exit__(self, *exc_info: object) -> bool | None:
        outcome = self._raises.__exit__(*exc_info)
        assert self._info.value.code == self._code, self._info.value
        return outcome
