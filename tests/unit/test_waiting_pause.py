"""How long a wait sleeps: longer and longer while nothing happens, short again afterwards."""

import pytest

from inbox_orch.shared.store import waits


def seconds(pause: waits.Pause, number: int) -> list[float]:
    return [pause.next() for _ in range(number)]


@pytest.mark.parametrize(
    "armed, bounds", [(True, waits.FALLBACK_SECONDS), (False, waits.POLL_SECONDS)]
)
def test_a_quiet_wait_sleeps_longer_and_never_beyond_its_bound(armed, bounds):
    shortest, longest = bounds
    slept = seconds(waits.Pause(armed), 20)

    assert shortest * 0.85 <= slept[0] <= shortest * 1.15
    assert all(longest * 0.85 <= pause <= longest * 1.15 for pause in slept[-5:])
    assert max(slept) <= longest * 1.15


def test_a_bell_makes_the_next_sleep_short_again(tmp_path, monkeypatch):
    class Ringing:
        def sleep(self, _: float) -> bool:
            return True

    pause = waits.Pause(armed=True)
    seconds(pause, 20)
    monkeypatch.setattr(waits, "_seconds_until", lambda *_: 60.0)

    looked = waits._Looked(1, waits.Look(None), 0.0, False)
    waits._sleep(None, Ringing(), pause, looked, None)

    assert pause.next() <= waits.FALLBACK_SECONDS[0] * 1.15
