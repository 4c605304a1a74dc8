"""Output of which a pattern says which lines are failures. Pure."""

import re

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .reading import UNREADABLE, Found, Reading, decoded, failed_exit, suspect

_MOST_LOOKED_AT = 4000  # characters of a line
# Anchored where a word begins, so that a long one is looked at once.
_PATH = re.compile(r"(?<!\S)\S*/\S*|(?<![\w-])[\w-]+\.[A-Za-z]\w{0,4}(?=[:,(\s]|$)")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|[0-9]+(?:[.,:T_-][0-9]+)*")
_EMPTY_PLACE = re.compile(r"[\s:,()#]+")


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """Each line in which the pattern is found is a failure. Its id is what the group `id` of the
    pattern has matched; without such a group, the line without paths, numbers and times."""
    content = output if report is None else report
    if content is None:
        return suspect(UNREADABLE, "there is too much output to look for failures in it")
    pattern, found = re.compile(gate.pattern or ""), Found()
    for line in decoded(content).splitlines():
        match = pattern.search(line[:_MOST_LOOKED_AT])
        if match is not None:
            found.add(_id_of(match, line[:_MOST_LOOKED_AT]), line)
    if found:
        return found.failed(gate)
    return Reading("passed") if ending.exit_status == 0 else failed_exit(gate, ending)


def _id_of(match: re.Match[str], line: str) -> str:
    return (match.groupdict().get("id") or "").strip() or normalised(line)


def normalised(line: str) -> str:
    """What stays of a line when other lines are added above it, or on another day: neither paths
    nor numbers nor times."""
    return _EMPTY_PLACE.sub(" ", _NUMBER.sub("", _PATH.sub("", line))).strip() or "failure"
