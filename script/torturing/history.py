"""What every process did, written down by itself, outside of the database.

A call is written before it is made and its return after it, so that whoever is killed in between
leaves a call without a return: it may have happened or not. Times are of the machine's monotonic
clock, the same for all processes.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Operation(NamedTuple):
    """One call of one process. `returned_ns` is None when it never came back; then `value` and
    `error` are too."""

    actor: str
    life: int
    number: int
    name: str
    arguments: dict[str, Any]
    called_ns: int
    returned_ns: int | None = None
    value: dict[str, Any] | None = None
    error: str | None = None

    @property
    def acknowledged(self) -> bool:
        """Whether the caller was told that it was done."""
        return self.value is not None

    @property
    def refused(self) -> bool:
        """Whether the caller was told that nothing was done."""
        return self.error is not None

    def __str__(self) -> str:
        end = self.error or ("done" if self.acknowledged else "never returned")
        return f"{self.actor}#{self.life}.{self.number} {self.name} {self.arguments}: {end}"


class Fault(NamedTuple):
    """What was done to the processes or the machine, from when to when."""

    kind: str
    target: str
    began_ns: int
    ended_ns: int


class Journal:
    """The history of one process in one life, one line a call and one a return."""

    def __init__(self, folder: Path, actor: str, life: int) -> None:
        path = folder / f"{actor}.{life}.jsonl"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._number = 0

    def called(self, name: str, arguments: dict[str, Any]) -> int:
        """Write down that a call is about to be made; its number."""
        self._number += 1
        self._write([self._number, time.monotonic_ns(), name, arguments])
        return self._number

    def returned(self, number: int, value: dict[str, Any]) -> None:
        """It has been done."""
        self._write([number, time.monotonic_ns(), "ok", value])

    def refused(self, number: int, code: str) -> None:
        """It was refused with this code."""
        self._write([number, time.monotonic_ns(), "error", code])

    def _write(self, record: list[Any]) -> None:
        # One write, so that a kill leaves at most one line cut short, at the end.
        os.write(self._descriptor, json.dumps(record).encode() + b"\n")


class Lines:
    """How many lines there are in all histories, told while they are being written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, tuple[int, int]] = {}

    def count(self) -> int:
        """Only what has been added since the last time is read."""
        for entry in os.scandir(self._folder):
            offset, lines = self._read.get(entry.name, (0, 0))
            if entry.stat().st_size > offset:
                with open(entry.path, "rb") as file:
                    file.seek(offset)
                    added = file.read()
                self._read[entry.name] = offset + len(added), lines + added.count(b"\n")
        return sum(lines for _, lines in self._read.values())


def read(folder: Path) -> list[Operation]:
    """Every operation of every process, in the order of the calls."""
    found = [op for path in sorted(folder.glob("*.*.jsonl")) for op in _operations(path)]
    return sorted(found, key=lambda op: op.called_ns)


def _operations(path: Path) -> Iterator[Operation]:
    actor, life, _ = path.name.rsplit(".", 2)
    open_calls: dict[int, Operation] = {}
    for line in path.read_bytes().splitlines():
        try:
            number, at, name, rest = json.loads(line)
        except ValueError:
            continue  # the last line of a process that was killed while it wrote
        if name == "ok":
            yield open_calls.pop(number)._replace(returned_ns=at, value=rest)
        elif name == "error":
            yield open_calls.pop(number)._replace(returned_ns=at, error=rest)
        else:
            open_calls[number] = Operation(actor, int(life), number, name, rest, at)
    yield from open_calls.values()
