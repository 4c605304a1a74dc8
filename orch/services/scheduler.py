"""`Scheduler`: all that `orch` does, over one open bus."""

from .cleaning import Cleaning
from .comparing import Comparing
from .driving import Driving
from .examining import Examining
from .integrating import Integrating
from .plans import Plans
from .restoring import Restoring


class Scheduler(Plans, Integrating, Comparing, Cleaning, Restoring, Driving, Examining):
    """Runs, tasks, attempts, waits, checks. One for each open `Bus`; belongs to its thread."""
