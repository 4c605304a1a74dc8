"""Commands of which only the exit status is understood. Pure."""

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .reading import Reading, failed_exit


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """Anything but 0 has failed."""
    return Reading("passed") if ending.exit_status == 0 else failed_exit(gate, ending)
