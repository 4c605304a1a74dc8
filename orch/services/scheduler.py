"""`Scheduler`: all that `orch` does, over one open bus."""

from .planning import Planning
from .waiting import Waiting


class Scheduler(Planning, Waiting):
    """Runs, tasks, attempts, waits. One for each open `Bus`; belongs to its thread."""
