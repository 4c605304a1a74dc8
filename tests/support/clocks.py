"""Clocks that a test turns by hand, or puts forward."""

from inbox_orch.shared.clock import Moment, SystemClock


class FakeClock:
    """Starts at a fixed moment; both hands move only when told to."""

    def __init__(self) -> None:
        self.wall_ms = 1_800_000_000_000
        self.monotonic_ms = 5_000_000
        self.boot_id = "first-boot"

    def now(self) -> Moment:
        """The moment that the test has set."""
        return Moment(self.wall_ms, self.monotonic_ms, self.boot_id)

    def advance(self, seconds: float) -> None:
        """Time passes: both hands move."""
        self.wall_ms += int(seconds * 1000)
        self.monotonic_ms += int(seconds * 1000)

    def jump_wall(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall_ms += int(seconds * 1000)

    def reboot(self) -> None:
        """The machine starts again: the monotonic clock restarts."""
        self.monotonic_ms = 1_000
        self.boot_id = f"after-{self.boot_id}"


class SteppingClock:
    """The machine's clock, which a test can put forward."""

    def __init__(self, ahead_seconds: float = 0) -> None:
        self._real = SystemClock()
        self.ahead_ms = int(ahead_seconds * 1000)

    def now(self) -> Moment:
        """The moment at the machine's own pace."""
        moment = self._real.now()
        return moment._replace(
            wall_ms=moment.wall_ms + self.ahead_ms,
            monotonic_ms=moment.monotonic_ms + self.ahead_ms,
        )
