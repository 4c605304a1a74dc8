"""A thread that becomes available between two looks at the clock is not overlooked."""

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import claiming, working
from inbox_orch.inbox.services.claiming import Claimed
from inbox_orch.shared.clock import Moment

DELAY_MS = 40


class TickingClock:
    """A millisecond passes with every look at it."""

    def __init__(self, clock):
        self.clock = clock

    def now(self) -> Moment:
        self.clock.advance(0.001)
        return self.clock.now()


@pytest.mark.parametrize("earlier_ms", range(6))
def test_a_claim_that_finds_nothing_always_says_when_to_look_again(office, earlier_ms):
    delay_seconds = (DELAY_MS - earlier_ms) / 1000
    office.bus("leader").send(to="w1", subject="later", delay_seconds=delay_seconds)
    with Bus.open(office.path, agent="w1", clock=TickingClock(office.clock)) as bus:
        for _ in range(DELAY_MS):
            found = working.claim_if_any(bus.desk, (), lease_seconds=60)
            if isinstance(found, Claimed):
                return
            assert found.due_wall_ms is not None
    pytest.fail("the thread became available, and nobody noticed")


@pytest.mark.parametrize("earlier_ms", range(6))
def test_a_wait_for_a_delayed_thread_looks_again_when_it_is_due(office, earlier_ms):
    delay_seconds = (DELAY_MS - earlier_ms) / 1000
    sent = office.bus("leader").send(to="w1", subject="later", delay_seconds=delay_seconds)
    with Bus.open(office.path, agent="w1", clock=TickingClock(office.clock)) as bus:
        for thread in (sent.thread.id, None):
            for _ in range(DELAY_MS // 2):
                if claiming.worth_claiming(bus.desk, ("w1",), thread):
                    break
                assert claiming.due(bus.desk, ("w1",), thread).due_wall_ms is not None
