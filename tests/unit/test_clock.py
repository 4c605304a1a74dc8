"""The clock: what tells one boot from another, and how times are written."""

from types import SimpleNamespace

import pytest

from inbox_orch.shared import clock
from inbox_orch.shared.clock import SystemClock, rfc3339
from support.buses import refused


def test_two_clocks_of_one_boot_agree():
    first, second = SystemClock().now(), SystemClock().now()
    assert first.boot_id == second.boot_id
    assert second.monotonic_ms >= first.monotonic_ms


def test_without_a_boot_id_nothing_is_made_up(tmp_path, monkeypatch):
    monkeypatch.setattr(clock, "_BOOT_ID_FILE", str(tmp_path / "not-there"))
    monkeypatch.setattr(clock.sys, "platform", "linux")
    with refused("no_boot_id"):
        SystemClock()


@pytest.mark.parametrize(
    "wall_ms, text",
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000_007, "2027-01-15T08:00:00.007Z"),
        (None, None),
    ],
)
def test_times_are_utc_with_milliseconds(wall_ms: int | None, text: str | None):
    assert rfc3339(wall_ms) == text


def test_what_has_begun_of_a_millisecond_counts_before_a_deadline(monkeypatch):
    told = SimpleNamespace(time_ns=lambda: 7_000_001, monotonic_ns=lambda: 5_000_001)
    monkeypatch.setattr(clock, "time", told)
    now = SystemClock().now()
    assert (now.wall_ms, now.monotonic_ms) == (7, 5)
    assert now.monotonic_after(10) == 16
    assert now._replace(monotonic_rest_ns=0).monotonic_after(10) == 15


def test_the_first_years_have_four_digits():
    assert rfc3339(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"


def test_a_process_that_wakes_up_with_other_clocks_still_shows_the_machines(monkeypatch, tmp_path):
    told = SimpleNamespace(time_ns=lambda: 0, monotonic_ns=lambda: 70_000_000_000)
    monkeypatch.setattr(clock, "time", told)
    offsets, boots = [b"monotonic 0 0\nboottime 0 0\n"], tmp_path / "boot_id"
    boots.write_text("first\n")
    monkeypatch.setattr(clock, "_BOOT_ID_FILE", str(boots))
    monkeypatch.setattr(clock, "_read_offsets", lambda process="self": offsets[0])
    woken = SystemClock()
    assert woken.now()[1:3] == (70_000, "first")
    offsets[0] = b"monotonic           60 500000000\nboottime            9         0\n"
    boots.write_text("second\n")
    assert woken.now()[1:3] == (9_500, "second")
    offsets[0] = b"monotonic          -30         0\nboottime            9         0\n"
    assert woken.now()[1:3] == (100_000, "second")
