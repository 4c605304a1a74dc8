"""Job of the comparison: listing and claiming with 1,000, 10,000 and 100,000 items stored.

Commands are whole processes; calls are of long-lived ones. Every round gives each of them its
turn at each size. Whoever fails, hangs or takes very long at one size is left out there.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from common import Turns, say
from contenders import OURS, THEIRS
from job_commands import Field
from job_drain import NOTES as DRAIN_NOTES
from results import Result, Row, as_row, median_ms, result
from roles import Role, Silent
from tools import LISTED, Inbox

SIZES = (1_000, 10_000, 100_000)
STEPS = ("listing", "claim")
# A turn that takes longer is not tried a second time at this size or a larger one.
PATIENCE_SECONDS = 5.0
TITLES = {
    "listing": "Listing, by how much is stored",
    "claim": "Claiming, by how much is stored",
}
# What to know about a call, by contender and step.
CALL_NOTES = {
    ("huey", "listing"): "bare contents",
    ("persist-queue", "listing"): "bare contents; `queue()` gives all: has no limit",
    **{(name, "claim"): note for name, note in DRAIN_NOTES.items() if note},
}
LISTING_CALLS = {
    "inbox": f"Bus.list(limit={LISTED})",
    "simplebroker": f"Queue.peek_many({LISTED})",
    "huey": f"SqliteStorage.enqueued_items({LISTED})",
    "persist-queue": "SQLiteAckQueue.queue()",
    "fleetwright": f"leases.units(limit={LISTED})",
}
NO_LIST = "has no call that lists what is queued"


def stored(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """Two results: listing and claiming."""
    sizes = (10, 20) if quick else SIZES
    command_rounds = Turns(1 if quick else 7, 40)
    call_rounds = Turns(2 if quick else 25, 20)
    table = _Table(sizes)
    fields = {}
    for size in sizes:
        field = fields[size] = Field(folder / str(size), bin_folder)
        for tool in list(field.tools.values()):
            if (why := tool.lacks.get(str(size))) is not None:
                table.omit(tool.name, size, why)
                del field.tools[tool.name]
                continue
            say(f"{size:,} items for {tool.name}")
            field.attempt(tool, tool.fill, size)
    for number in command_rounds:
        say(f"commands, round {number + 1}")
        for field, size in ((fields[size], size) for size in sizes):
            _commands(field, size, table)
    _calls(folder, bin_folder, sizes, call_rounds, table)
    for field, size in ((fields[size], size) for size in sizes):
        for name, why in field.out.items():
            table.omit(name, size, f"failed: {why}")
    return [
        result(
            f"stored-{'list' if step == 'listing' else step}",
            title=TITLES[step],
            did=(
                f"Commands are whole processes, medians of {command_rounds.done} rounds; calls"
                f" are of a long-lived process, medians of {call_rounds.done}. Who is ahead"
                f" is judged at {sizes[-1]:,}."
                + (f" A list is of {LISTED}, where it has a limit." if step == "listing" else "")
            ),
            unit="ms",
            columns={str(size): f"ms at {size:,}" for size in sizes},
            compared=[str(size) for size in sizes],
            rows=table.rows(step, fields[sizes[0]]),
            commands={**fields[sizes[0]].commands(step), **_call_names(step)},
            raw={f"{name}, {size}": t for (name, s, size), t in table.times.items() if s == step},
        )
        for step in STEPS
    ]


class _Table:
    """The times by (contender, step, size), and why some are missing."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.times: dict[tuple[str, str, int], list[float]] = {}
        self.missing: dict[tuple[str, int], str] = {}

    def add(self, name: str, step: str, size: int, seconds: float) -> None:
        self.times.setdefault((name, step, size), []).append(seconds)

    def omit(self, name: str, size: int, why: str) -> None:
        self.missing[name, size] = why

    def too_slow(self, name: str, step: str, size: int) -> bool:
        """Whether one turn has already taken all patience."""
        return any(t > PATIENCE_SECONDS for t in self.times.get((name, step, size), ()))

    def rows(self, step: str, field: Field) -> list[Row]:
        """Commands first, then calls."""
        names = dict.fromkeys(name for name, _, _ in self.times)
        rows = [self._row(name, step, field) for name in names]
        out = {name: why for (name, _), why in self.missing.items() if name not in names}
        return rows + [as_row(name, cannot=why) for name, why in out.items()]

    def _row(self, name: str, step: str, field: Field) -> Row:
        values = {
            str(size): median_ms(self.times[name, step, size])
            for size in self.sizes
            if (name, step, size) in self.times
        }
        if not values:
            return as_row(name, cannot=NO_LIST)
        notes = [self.missing[name, size] for size in self.sizes if (name, size) in self.missing]
        tool = field.tools.get(name)
        if tool is not None and step in tool.notes:
            notes.append(tool.notes[step])
        notes += [note for (who, what), note in CALL_NOTES.items()
                  if (_calling(who), what) == (name, step)]  # fmt: skip
        return as_row(name, values, note="; ".join(dict.fromkeys(notes)) or None)


def _commands(field: Field, size: int, table: _Table) -> None:
    """One round at one size."""
    for tool in list(field.tools.values()):
        for step, arguments in (("listing", ()), ("claim", ("worker",))):
            if table.too_slow(tool.name, step, size):
                continue
            timed = field.attempt(tool, tool.timed, step, *arguments)
            if timed is None:
                break
            table.add(tool.name, step, size, timed[0])


# -- calls -------------------------------------------------------------------------------------


def _calls(
    folder: Path, bin_folder: str | None, sizes: tuple[int, ...], rounds: Turns, table: _Table
) -> None:
    """All rounds of the libraries; each has one process at each size."""
    pythons = {"inbox": sys.executable}
    if bin_folder:
        pythons |= dict.fromkeys(THEIRS, f"{bin_folder}python")
    roles: dict[tuple[str, int], Role] = {}
    try:
        for size in sizes:
            for name, python in pythons.items():
                say(f"{size:,} items for calls of {name}")
                # Ours are those of the commands.
                place = folder / str(size) / (Inbox.name if name == "inbox" else f"{name}-calls")
                place.mkdir(parents=True, exist_ok=True)
                roles[name, size] = Role(python, __file__, name, str(place), str(size))
                _heard(roles, name, size, table, None)
        for _ in rounds:
            for name, size in list(roles):
                for step, seconds in (_heard(roles, name, size, table, "go") or {}).items():
                    table.add(_calling(name), step, size, seconds)
    finally:
        for role in roles.values():
            role.end()


def _heard(
    roles: dict[tuple[str, int], Role], name: str, size: int, table: _Table, order: str | None
) -> Any:
    """The answer of a role; one that fails is out."""
    role = roles[name, size]
    try:
        if order is not None:
            role.tell(order)
        return role.hear(60)
    except Silent as error:
        say(f"{name} with {size:,} is out: {error}")
        table.omit(_calling(name), size, f"failed: {error}"[:200])
        role.end()
        del roles[name, size]
        return None


def _call_names(step: str) -> dict[str, str]:
    """What is called, by contender."""
    names = LISTING_CALLS if step == "listing" else {
        name: contender.calls for name, contender in {**OURS, **THEIRS}.items()
        if not name.startswith("raw")
    }  # fmt: skip
    return {_calling(name): call for name, call in names.items()}


def _calling(name: str) -> str:
    return f"{name} (call)"


def serve(name: str, folder: str, size: str) -> None:
    """Fill unless that is done, then list and claim at each order, and tell the seconds."""
    contender = {**OURS, **THEIRS}[name]
    if name != "inbox":
        contender.fill(Path(folder), int(size))
    queue = contender.open(Path(folder), "caller")
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        times = {}
        if hasattr(queue, "listing"):
            before = time.perf_counter()
            queue.listing()
            times["listing"] = time.perf_counter() - before
        done = queue.cycle()
        assert done is not None, "nothing was left to claim"
        times["claim"] = done[1][0]
        print(json.dumps(times), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
