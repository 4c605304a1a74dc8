"""Whose an intent is, and whether that process still carries it out."""

import functools
import os

from inbox_orch.shared.processes import processes

from ..runs.desk import Desk
from ..runs.limits import FOREIGN_SECONDS
from .rows import Intent, Owner


def this_process(desk: Desk) -> Owner:
    """Who carries out an intent: this process, so that its death can be told."""
    number = os.getpid()
    started, namespace = _known(number)
    return Owner(desk.database.clock.now().boot_id, number, started, namespace)


@functools.lru_cache(maxsize=1)
def _known(number: int) -> tuple[int, int]:
    """When this process began, and where it has its number: neither changes, and `number` is
    another one after a fork."""
    return processes.start_time(number) or 0, processes.namespace()


def is_abandoned(desk: Desk, intent: Intent, foreign_seconds: float = FOREIGN_SECONDS) -> bool:
    """Whether the process that was carrying out an intent is doing so no more.

    A process in another container cannot be seen from here: it counts as alive for a time.
    To be wrong is a waste and no harm, since what was begun is done under a lock and
    confirmed only by its owner.
    """
    now, owner = desk.database.clock.now(), intent.owner
    if owner.boot_id != now.boot_id:
        return True
    if owner.namespace != processes.namespace():
        return now.wall_ms - intent.opened_at > foreign_seconds * 1000
    return not processes.is_running(owner.process, owner.started)
