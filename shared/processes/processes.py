"""Telling one process from another, also after its number has been given out again."""

import functools
import os

from ..clock import boot_time_shift_ns

# What a shift of the clock, which is no whole number of ticks, may change by rounding.
_ROUNDED_TICKS = 1


def start_time(process: int) -> int | None:
    """When a process began, in clock ticks since boot (proc(5), field 22 of stat), by the clock of
    the machine: in a time namespace the kernel shows it shifted.

    None when there is no such process. Where /proc is missing: 0 for any process that exists.
    """
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _exists(process)
    except ProcessLookupError:
        return None
    # The name, in parentheses, may itself hold spaces and parentheses.
    fields = stat[stat.rindex(")") + 2 :].split()
    # A zombie has ended; only its number is still taken.
    return None if fields[0] in ("Z", "X") else int(fields[19]) - _shifted_ticks()


def is_running(process: int, started: int) -> bool:
    """Whether a process that began at `started` (as from `start_time`) is there."""
    now = start_time(process)
    return now is not None and abs(now - started) <= _ROUNDED_TICKS


def _shifted_ticks() -> int:
    shift = boot_time_shift_ns()
    return shift * os.sysconf("SC_CLK_TCK") // 1_000_000_000 if shift else 0


def namespace() -> int:
    """Which numbers this process sees: the inode of its PID namespace (pid_namespaces(7)).

    A container has the boot id of its host and other numbers. 0 where there is no such thing.
    """
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


@functools.lru_cache(maxsize=1)
def known_by(own: int) -> tuple[int, int, int]:
    """By what this process, whose number is `own`, is known again: that number, when it began, and
    in which PID namespace. None of it changes; after a fork the number is another one."""
    return own, start_time(own) or 0, namespace()


def lives(process: int, started: int, in_namespace: int) -> bool | None:
    """Whether the process that was `known_by` these is there, within one boot; None for one in
    another PID namespace, which cannot be seen from here."""
    return is_running(process, started) if in_namespace == namespace() else None


def inside(folder: str) -> tuple[int, ...]:
    """The other processes whose working directory is a folder or in it (proc(5), `cwd`).

    What may not be looked at is left out, and so is everything where /proc is missing.
    """
    top = os.path.realpath(folder)
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return ()
    return tuple(n for n in sorted(numbers) if n != os.getpid() and _works_in(n, top))


def _works_in(process: int, top: str) -> bool:
    try:
        folder = os.readlink(f"/proc/{process}/cwd")
    except OSError:
        return False
    return folder == top or folder.startswith(top + os.sep)


def _exists(process: int) -> int | None:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return 0
    return 0
