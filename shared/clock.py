"""Time: the wall clock for people and schedules, the machine's monotonic clock for leases.

Nothing else in the program asks the operating system what time it is. A service takes one
`Moment` per transaction and decides everything by it.
"""

import os
import sys
import time
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from .errors import InboxOrchError

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_OFFSETS_FILE = "timens_offsets"
_NS_IN_A_SECOND = 1_000_000_000


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
    one boot from another. A time namespace shifts it for those who are inside
    (time_namespaces(7)), so what counts is the clock of the machine itself, which all share.
    """

    def __init__(self) -> None:
        self._offsets = _read_offsets()
        self._shift_ns = _shift_ns(self._offsets)
        self._boot_id = _read_boot_id()

    def now(self) -> Moment:
        """The present moment of this machine."""
        offsets = _read_offsets()
        if offsets != self._offsets:
            # This process was put to sleep and woken up elsewhere, perhaps after a boot.
            self._shift_ns, self._boot_id = _shift_ns(offsets), _read_boot_id()
            self._offsets = offsets
        machine_ns = time.monotonic_ns() - self._shift_ns
        monotonic_ms, rest_ns = divmod(machine_ns, 1_000_000)
        return Moment(time.time_ns() // 1_000_000, monotonic_ms, self._boot_id, rest_ns)


def boot_time_shift_ns() -> int:
    """How far the time since boot that this process is shown is ahead of the machine's own."""
    return _shift_ns(_read_offsets(), b"boottime")


def _read_offsets(process: int | str = "self") -> bytes:
    """What time_namespaces(7) calls timens_offsets; nothing where there are no such namespaces."""
    try:
        # By hand: every look at the clock does it.
        descriptor = os.open(f"/proc/{process}/{_OFFSETS_FILE}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _shift_ns(offsets: bytes, clock: bytes = b"monotonic") -> int:
    """The offset of one clock, in nanoseconds. Also where this process is not in the namespace
    that the file tells of: it is that of the children, and after unshare(2) another one."""
    shift = _offset_in(offsets, clock)
    if shift == 0 and _namespace("self", "time") == _namespace("self", "time_for_children"):
        return 0
    own = _namespace("self", "time")
    for process in ("self", os.getppid(), 1):
        if own is not None and _namespace(process, "time_for_children") == own:
            return _offset_in(_read_offsets(process), clock)
    return 0


def _offset_in(offsets: bytes, clock: bytes) -> int:
    for line in offsets.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[0] == clock:
            return int(fields[1]) * _NS_IN_A_SECOND + int(fields[2])
    return 0


def _namespace(process: int | str, kind: str) -> int | None:
    try:
        return os.stat(f"/proc/{process}/ns/{kind}").st_ino
    except OSError:
        return None


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
