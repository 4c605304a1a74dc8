"""A lease is never shorter than what was promised, not by a part of a millisecond either."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared import clock
from support.buses import refused

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND


class Hands:
    """What the operating system says that the time is, in nanoseconds."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 1_800_000_000 * SECOND, 5_000 * SECOND

    def advance(self, nanoseconds: int) -> None:
        self.wall += nanoseconds
        self.monotonic += nanoseconds


@pytest.fixture
def hands(monkeypatch) -> Hands:
    made = Hands()
    told = SimpleNamespace(time_ns=lambda: made.wall, monotonic_ns=lambda: made.monotonic)
    monkeypatch.setattr(clock, "time", told)
    return made


@pytest.fixture
def bus(engine, tmp_path, hands) -> Iterator[Bus]:
    with Bus.open(engine.make(tmp_path), agent="s") as made:
        made.send(to="pool", subject="s", body="b")
        yield made


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("into_the_millisecond", [0, 1, 999_999])
def test_nobody_takes_over_before_the_whole_lease_is_over(
    bus, hands, into_the_millisecond, renewed
):
    hands.advance(into_the_millisecond)
    held = bus.claim(mailboxes=["pool"], lease_seconds=2, agent="first")
    if renewed:
        hands.advance(MILLISECOND)
        bus.renew(held.thread.id, held.lease.token)

    hands.advance(2 * SECOND - 1)
    with refused("nothing_available"):
        bus.claim(mailboxes=["pool"], agent="second")
    bus.renew(held.thread.id, held.lease.token, lease_seconds=1)

    hands.advance(SECOND + MILLISECOND)
    assert bus.claim(mailboxes=["pool"], agent="second").lease.epoch == 2
