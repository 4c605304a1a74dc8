"""Who carries something out: a process of this machine, since the file is on it, too."""

import os

from ...clock import Clock
from ...processes import processes
from ..engine import Owner


def this_process(clock: Clock) -> Owner:
    """The calling process, as it is written down."""
    number = os.getpid()
    started = processes.start_time(number) or 0
    return Owner(clock.now().boot_id, number, started, processes.namespace())


def runs(owner: Owner, clock: Clock) -> bool | None:
    """Whether the process of an owner is still there; None for one in another container, which
    cannot be seen from here."""
    if owner.boot_id != clock.now().boot_id:
        return False
    if owner.namespace != processes.namespace():
        return None
    return processes.is_running(owner.process, owner.started)
