"""`Scheduler`: all that `orch` does, over one open bus."""

from .boarding import Boarding
from .cleaning import Cleaning
from .comparing import Comparing
from .council_sitting import Councils
from .examining import Examining
from .integrating import Integrating
from .plans import Plans
from .reporting import Reporting
from .restoring import Restoring
from .showing import Showing
from .steering import Steering


class Scheduler(
    Councils,
    Plans,
    Steering,
    Showing,
    Integrating,
    Comparing,
    Cleaning,
    Restoring,
    Boarding,
    Examining,
    Reporting,
):
    """Runs, tasks, attempts, waits, councils, checks. One for each open `Bus`, in its thread."""
