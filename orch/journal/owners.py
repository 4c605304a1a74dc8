"""Whether the process whose an intent is still carries it out."""

from ..runs.desk import Desk
from ..runs.limits import FOREIGN_SECONDS
from .rows import Intent


def is_abandoned(desk: Desk, intent: Intent, foreign_seconds: float = FOREIGN_SECONDS) -> bool:
    """Whether the process that was carrying out an intent is doing so no more.

    A process in another container cannot be seen from here: it counts as alive for a time.
    To be wrong is a waste and no harm, since what was begun is done under a lock and
    confirmed only by its owner.
    """
    runs = desk.database.runs(intent.owner)
    if runs is None:
        # Opened in the time to come: the clock was far ahead then, and has been set right.
        open_ms = abs(desk.database.now().wall_ms - intent.opened_at)
        return open_ms > foreign_seconds * 1000
    return not runs
