"""`Scheduler`: all that `orch` does, over one open bus."""

from .examining import Examining
from .planning import Planning
from .waiting import Waiting


class Scheduler(Planning, Waiting, Examining):
    """Runs, tasks, attempts, waits, checks. One for each open `Bus`; belongs to its thread."""
