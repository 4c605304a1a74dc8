"""Buses on real files, and what tests expect to fail."""

from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.sqlite.database import Database
from inbox_orch.shared.store.sqlite.sessions import Snapshot
from support.clocks import FakeClock
from support.templates import make_database


def looking(database: Database) -> Snapshot:
    """A session that sees, at each look, what has been committed by then."""
    return Snapshot(database.connection)


class Office:
    """A database in a folder of its own, with buses for several agents on one fake clock."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / ".inbox" / "bus.db"
        self.clock = FakeClock()
        make_database(self.path, self.clock)
        self._open: list[Bus] = []

    def bus(self, agent: str | None = None) -> Bus:
        """A connection of its own for an agent."""
        bus = Bus.open(self.path, agent=agent, clock=self.clock)
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
