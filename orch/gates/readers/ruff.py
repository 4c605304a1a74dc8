"""What `ruff check --output-format=json` says. Pure."""

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .documents import entries, number_at, text_at
from .reading import UNREADABLE, Found, Reading, by_exit, relative, suspect

EXITS = {0: "passed", 1: "failed", 2: "suspect"}
"""0: nothing found; 1: violations; 2: a wrong call or config, or a fault of its own
(docs.astral.sh/ruff/linter, "Exit codes")."""
_ASKED = "run it with --output-format=json"


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """A failure is `path:code`; a file that cannot be parsed has the code `invalid-syntax`."""
    if EXITS.get(ending.exit_status or 0) == "suspect":
        return by_exit(gate, ending, Found(), EXITS)
    said = entries(output if report is None else report)
    if said is None:
        return suspect(UNREADABLE, f"what ruff says cannot be read: {_ASKED}")
    found = Found()
    for entry in said:
        path = relative(text_at(entry, "filename"), folder)
        code = text_at(entry, "code") or "invalid-syntax"
        line = number_at(entry, "location", "row")
        found.add(f"{path}:{code}", f"{path}:{line}: {code} {text_at(entry, 'message')}")
    return by_exit(gate, ending, found, EXITS)
