"""The one call of all readers. Pure."""

from collections.abc import Callable, Mapping

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from . import exit as exit_reader
from . import junit, lines, mypy, ruff, sarif
from .reading import Reading, not_judged

_READERS: Mapping[str, Callable[[Gate, Ending, bytes | None, bytes | None, str], Reading]] = {
    "exit": exit_reader.read,
    "junit": junit.read,
    "ruff": ruff.read,
    "mypy": mypy.read,
    "sarif": sarif.read,
    "lines": lines.read,
}


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str = ""
) -> Reading:
    """What a gate has said. `output`: what `listens_to` names, None when it is more than
    `MOST_BYTES`. `report`: the file that it was to write, None when it has written none, or a
    bigger one. `folder` is the top of the worktree, from which paths are told."""
    return not_judged(ending) or _READERS[gate.reads](gate, ending, output, report, folder)


def listens_to(gate: Gate) -> str | None:
    """What of a command's output is read for failures: `stdout`, `all`, or None for nothing."""
    if gate.reads in ("exit", "junit"):
        return None
    return "all" if gate.reads == "lines" else "stdout"
