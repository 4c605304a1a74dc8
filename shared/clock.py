"""Time: the wall clock for people and schedules, the machine's monotonic clock for leases.

Nothing else in the program asks the operating system what time it is. A service takes one
`Moment` per transaction and decides everything by it.
"""

import sys
import time
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from .errors import InboxOrchError

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


class Moment(NamedTuple):
    """One instant on both clocks, in whole milliseconds; `monotonic_rest_ns` is what the
    monotonic one shows beyond them."""

    wall_ms: int
    monotonic_ms: int
    boot_id: str
    monotonic_rest_ns: int = 0

    def monotonic_after(self, milliseconds: int) -> int:
        """The first whole millisecond of the monotonic clock at which so much has passed.

        Counted from `monotonic_ms`, what is promised would be over up to a millisecond early.
        """
        return self.monotonic_ms + milliseconds + (self.monotonic_rest_ns > 0)


class Clock(Protocol):
    """Where the present moment comes from; tests put their own in its place."""

    def now(self) -> Moment:
        """The present moment."""


class SystemClock:
    """The machine's clocks.

    On Linux the monotonic clock stands still while the machine is suspended (CLOCK_MONOTONIC,
    clock_gettime(2)), so a closed laptop burns no lease. It restarts at boot; the boot id tells
    one boot from another.
    """

    def __init__(self) -> None:
        self._boot_id = _read_boot_id()

    def now(self) -> Moment:
        """The present moment of this machine."""
        monotonic_ms, rest_ns = divmod(time.monotonic_ns(), 1_000_000)
        return Moment(time.time_ns() // 1_000_000, monotonic_ms, self._boot_id, rest_ns)


def _read_boot_id() -> str:
    try:
        # As bytes: a text file in ASCII would load one more codec in every command.
        with open(_BOOT_ID_FILE, "rb") as file:
            return file.read().decode("ascii").strip()
    except OSError as error:
        boot_id = _darwin_boot_session() if sys.platform == "darwin" else None
        if boot_id is None:
            # Anything made up from the wall clock would change when the clock is set, and free
            # the leases of the living.
            raise InboxOrchError(
                "no_boot_id",
                f"{_BOOT_ID_FILE} cannot be read: without it a lease from before a reboot cannot "
                "be told from one of now",
                hint="make /proc readable here (in a sandbox: mount it)",
            ) from error
        return boot_id


def _darwin_boot_session() -> str | None:
    import ctypes
    import ctypes.util

    library = ctypes.CDLL(ctypes.util.find_library("c"))
    size = ctypes.c_size_t(64)
    buffer = ctypes.create_string_buffer(64)
    name = b"kern.bootsessionuuid"
    if library.sysctlbyname(name, buffer, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return None
    return buffer.value.decode("ascii")


def rfc3339(wall_ms: int | None) -> str | None:
    """RFC 3339 in UTC with milliseconds, the form of every time in JSON."""
    if wall_ms is None:
        return None
    # Not strftime, which takes ten times as long: an export has millions of times.
    seconds = datetime.fromtimestamp(wall_ms // 1000, UTC).isoformat()[: len("2000-01-01T00:00:00")]
    return f"{seconds}.{wall_ms % 1000:03d}Z"
