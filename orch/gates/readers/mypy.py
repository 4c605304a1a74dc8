"""What `mypy` says, as text or with `--output json`. Pure."""

from collections.abc import Iterator

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .documents import entries, number_at, text_at
from .reading import (
    BROKEN,
    UNREADABLE,
    Found,
    Reading,
    by_exit,
    decoded,
    one_line,
    relative,
    suspect,
)

EXITS = {0: "passed", 1: "failed", 2: "suspect"}
"""1: errors; 2: it could not go on: a wrong call, a file that cannot be parsed, a fault of its own
(mypy/main.py)."""

_Error = tuple[str, str, str, str]  # path, line, code, message


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """A failure is `path:code`. Notes are none."""
    content = output if report is None else report
    if content is None:
        return suspect(UNREADABLE, "there is too much output to look for errors in it")
    text, found, first = decoded(content), Found(), ""
    for path, line, code, message in _from_json(content) if _is_json(text) else _from_text(text):
        where = relative(path, folder)
        told = f"{where}:{line}: {message} [{code}]"
        first = first or told
        found.add(f"{where}:{code}", told)
    if EXITS.get(ending.exit_status or 0) == "suspect" and first:
        return suspect(BROKEN, f"mypy could not go on: {one_line(first)}")
    return by_exit(gate, ending, found, EXITS)


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _from_json(content: bytes) -> Iterator[_Error]:
    for entry in entries(content, stray=True) or ():
        if text_at(entry, "severity") == "error":
            code = text_at(entry, "code") or "misc"
            line = str(number_at(entry, "line"))
            yield text_at(entry, "file"), line, code, text_at(entry, "message")


def _from_text(text: str) -> Iterator[_Error]:
    """`path:line: error: message  [code]`, with a column or an end where that is switched on."""
    for each in text.splitlines():
        place, separator, said = each.partition(": error: ")
        if not separator:
            continue
        path, *numbers = place.split(":")
        while numbers and not numbers[0].isdigit():
            path += ":" + numbers.pop(0)
        message, _, code = said.rpartition("  [")
        if not code.endswith("]"):
            message, code = said, "misc]"
        yield path, numbers[0] if numbers else "1", code[:-1], message
