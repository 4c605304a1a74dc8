"""Checks and gates side by side."""

from collections.abc import Iterator

import pytest

from inbox_orch.orch.attempts import gate_slots, judge
from inbox_orch.orch.attempts.gate_slots import GateSlots, slots_of


def test_without_being_asked_checks_stay_one_at_a_time(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    assert (slots_of(None), slots_of(5)) == (GateSlots(1, 6), GateSlots(5, 5))
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert slots_of(None) == GateSlots(1, 2)


def test_all_are_put_back_although_one_cannot_be(monkeypatch):
    left: list[int] = []

    def checking(*_: object, staged: bool) -> Iterator[None]:
        number = len(begun)
        if not staged or number == 3:
            return None
        begun.append(number)
        try:
            yield
        finally:
            left.append(number)
            if number == 1:
                raise OSError("it cannot be put back")

    begun: list[int] = []
    monkeypatch.setattr(judge, "checking", checking)
    monkeypatch.setattr("inbox_orch.shared.store.waits.version", lambda _: 1)

    class Desk:
        database = None

    steps = gate_slots.working(Desk(), None, None, GateSlots(1, 3), refill=False)
    next(steps)
    with pytest.raises(OSError, match="put back"):
        steps.close()

    assert sorted(left) == [0, 1, 2]
