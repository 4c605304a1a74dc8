"""When a lease has expired, and what an attempt to hand work out again costs."""

from inbox_orch.shared.clock import Moment

BACKOFF_FIRST_SECONDS = 5.0
BACKOFF_MOST_SECONDS = 300.0


def is_expired(boot_id: str, deadline_monotonic: int, now: Moment) -> bool:
    """Whether a lease is over at `now`.

    Decided by the machine's monotonic clock: a wall clock that jumps frees nothing, and a
    suspended machine burns no lease. Another boot id means that the holder died with the boot.
    """
    return boot_id != now.boot_id or deadline_monotonic <= now.monotonic_ms


def backoff_seconds(deliveries: int, jitter: float) -> float:
    """Seconds before the next try after `deliveries` of them: doubling, capped, jittered.

    `jitter` is a number from 0 to 1, drawn by the caller.
    """
    whole = min(BACKOFF_MOST_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** min(deliveries - 1, 16))
    return whole * (0.5 + jitter / 2)
