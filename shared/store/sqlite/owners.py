"""Who carries something out: a process of this machine, since the file is on it, too."""

import functools
import os

from ...clock import Clock
from ...processes import processes
from ..engine import Owner


def this_process(clock: Clock) -> Owner:
    """The calling process, as it is written down."""
    number = os.getpid()
    started, namespace = _known(number)
    return Owner(clock.now().boot_id, number, started, namespace)


@functools.lru_cache(maxsize=1)
def _known(number: int) -> tuple[int, int]:
    """When this process began, and where it has its number: neither changes, and `number` is
    another one after a fork."""
    return processes.start_time(number) or 0, processes.namespace()


def runs(owner: Owner, clock: Clock) -> bool | None:
    """Whether the process of an owner is still there; None for one in another container, which
    cannot be seen from here."""
    if owner.boot_id != clock.now().boot_id:
        return False
    if owner.namespace != processes.namespace():
        return None
    return processes.is_running(owner.process, owner.started)
