"""What a reader has understood of a gate's output, and what all readers have in common. Pure."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.processes.endings import Ending, ending_text

from ..definitions import Gate

MOST_BYTES = 16 * 1024 * 1024
"""Of a report, or of output that is read for failures."""
MOST_IDS = 2000
MOST_TEXTS = 200
_MOST_ID = 300  # characters
_MOST_LINE = 300

# Why a result is suspect; the end of the id of a failure that has no better one.
TIMED_OUT, KILLED, NOT_STARTED = "timed-out", "killed", "not-started"
BROKEN, NO_TESTS, UNREADABLE = "broken", "no-tests", "unreadable"
PATTERN = "pattern"
"""The pattern of a gate takes too long: that is nobody's to mend who works on what is judged."""
EXIT = "exit"
"""The end of the id of a failure of which only the exit status tells."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# `sh` itself says with these that a command could not be run, and with the second range that a
# signal has ended it (POSIX, 2.8.2).
_NOT_RUN = (126, 127)
_SIGNALLED = range(129, 193)


class Reading(NamedTuple):
    """`state` is `passed`, `failed` or `suspect`. `failures`: id to how often; `texts` has a line
    for most of them. `tests`: how many have run, None where that is not told. `reason`: one line;
    `cause`: in a word, why it is suspect."""

    state: str
    failures: Mapping[str, int] = {}
    texts: Mapping[str, str] = {}
    tests: int | None = None
    reason: str | None = None
    cause: str | None = None


class Found:
    """Failures while they are collected."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def add(self, name: str, text: str) -> None:
        """One failure by its id, and what it is."""
        name = _short_id(name)
        self._failures[name] += 1
        if len(self._texts) < MOST_IDS:
            self._texts.setdefault(name, one_line(text))

    def __bool__(self) -> bool:
        return bool(self._failures)

    def failed(self, gate: Gate, tests: int | None = None) -> Reading:
        """The reading of a gate that has these failures. Of very many ids the first in their
        order are kept, the others count as one."""
        names = sorted(self._failures)
        failures = {name: self._failures[name] for name in names[:MOST_IDS]}
        if len(names) > MOST_IDS:
            failures[f"{gate.name}:more"] = sum(self._failures[n] for n in names[MOST_IDS:])
        told = [name for name in failures if name in self._texts][:MOST_TEXTS]
        return Reading("failed", failures, {name: self._texts[name] for name in told}, tests)


def suspect(cause: str, reason: str) -> Reading:
    """A result that says nothing about the work, as it seems."""
    return Reading("suspect", reason=one_line(reason), cause=cause)


def failed_exit(gate: Gate, ending: Ending, tests: int | None = None) -> Reading:
    """A failure of which nothing is known but the exit status."""
    found = Found()
    found.add(f"{gate.name}:{EXIT}", f"it ended with exit status {ending.exit_status}")
    return found.failed(gate, tests)


def not_judged(ending: Ending) -> Reading | None:
    """The suspect reading of a command that did not come to its own end; None of one that did."""
    if ending.timed_out is not None:
        return suspect(TIMED_OUT, ending_text(ending, "it").rstrip("."))
    status = ending.exit_status
    if status is None:
        return suspect(KILLED, ending_text(ending, "it").rstrip("."))
    if status in _NOT_RUN:
        return suspect(NOT_STARTED, f"its command could not be run (exit status {status})")
    if status in _SIGNALLED:
        return suspect(KILLED, f"a command in it was killed by signal {status - 128}")
    return None


def by_exit(gate: Gate, ending: Ending, found: Found, exits: Mapping[int, str]) -> Reading:
    """The reading of a tool that names its failures, by them and by its table of exit codes.
    What is named counts, also where the tool was told to end with 0."""
    status = ending.exit_status or 0
    if exits.get(status) == "suspect":
        return suspect(BROKEN, f"it could not judge: it ended with exit status {status}")
    if found:
        return found.failed(gate)
    if status == 0:
        return Reading("passed")
    return suspect(UNREADABLE, f"it ended with exit status {status}, and no failure can be read")


def one_line(text: str) -> str:
    """Text of others as one short line without control characters."""
    line = "".join(c if c.isprintable() else " " for c in text[: 4 * _MOST_LINE])
    line = " ".join(line.split())
    return line if len(line) <= _MOST_LINE else line[: _MOST_LINE - 1] + "…"


def relative(path: str, folder: str) -> str:
    """A path as it is from the top of the worktree `folder`, if it is below it."""
    top = folder.rstrip("/") + "/"
    path = path[len(top) :] if folder and path.startswith(top) else path
    while path.startswith("./"):
        path = path[2:]
    return path


def decoded(content: bytes) -> str:
    """Text of a tool, whatever bytes are in it, without colours."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff")
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _short_id(name: str) -> str:
    name = "".join(c if c.isprintable() else "?" for c in name)
    if len(name) <= _MOST_ID:
        return name
    digest = sha256_hex(name.encode("utf-8", "surrogatepass"))[:12]
    return f"{name[: _MOST_ID - 13]}…{digest}"
