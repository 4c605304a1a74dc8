"""`Scheduler`: all that `orch` does, over one open bus."""

from .examining import Examining
from .integrating import Integrating
from .planning import Planning
from .waiting import Waiting


class Scheduler(Planning, Integrating, Waiting, Examining):
    """Runs, tasks, attempts, waits, checks. One for each open `Bus`; belongs to its thread."""
