"""`Scheduler`: all that `orch` does, over one open bus."""

from .cleaning import Cleaning
from .comparing import Comparing
from .council_sitting import Councils
from .driving import Driving
from .examining import Examining
from .governing import Governing
from .integrating import Integrating
from .plans import Plans
from .reporting import Reporting
from .restoring import Restoring
from .showing import Showing
from .steering import Steering


class Scheduler(
    Councils,
    Plans,
    Governing,
    Steering,
    Showing,
    Integrating,
    Comparing,
    Cleaning,
    Restoring,
    Driving,
    Examining,
    Reporting,
):
    """Runs, tasks, attempts, waits, councils, checks. One for each open `Bus`, in its thread."""
