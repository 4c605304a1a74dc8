"""Job of the comparison: importing a large plan."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import graph
from common import say
from results import Result, as_row, result

SIZE = 10_000
WITHOUT = (
    *("agent-collab", "agent-lanes", "agent-mail", "pac-collab"),
    *("simplebroker", "huey", "litequeue", "persist-queue"),
)
_FLOOR = """
import sys, yaml, graphlib
plan = yaml.load(open(sys.argv[1]), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
tasks = {task["task"]: task.get("depends_on", ()) for task in plan["tasks"]}
assert len(tuple(graphlib.TopologicalSorter(tasks).static_order())) == len(tasks)
"""
COMMANDS = {
    "orch plan import": "orch plan import plan.yaml --new-run --json",
    "read and sorted only": f"python -c '{_FLOOR.strip()}' plan.yaml",
    "fleetwright": "fleetwright add task --from-file names.txt",
}
NOTES = {
    "read and sorted only": "PyYAML's C parser and `graphlib`; stores nothing",
    "fleetwright": "`add --from-file`: names only, without dependencies, titles and bodies",
}
NO_PLAN = "has no plan: takes one item a command or a call"


def plans(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """A plan of 10,000 tasks with 30,000 dependencies."""
    size, rounds = (graph.CHAIN + 100, 1) if quick else (SIZE, 3)
    place = graph.Place(folder)
    (place.folder / "plan.yaml").write_text(graph.plan_text(size), encoding="utf-8")
    names = "".join(f"t{number}\n" for number in range(size))
    (place.folder / "names.txt").write_text(names, encoding="utf-8")
    times: dict[str, list[float]] = {}
    for number in range(rounds):
        say(f"plans, round {number + 1} of {rounds}")
        for name, act in _acts(place, bin_folder, number).items():
            before = time.perf_counter()
            act()
            times.setdefault(name, []).append(time.perf_counter() - before)
    rows = [
        as_row(
            name,
            {"s": statistics.median(found)},
            floor=name.startswith("read"),
            note=NOTES.get(name),
        )
        for name, found in times.items()
    ]
    return [
        result(
            "plan-import",
            title=f"Importing a plan of {SIZE:,} tasks with {3 * SIZE:,} dependencies",
            did=f"Whole processes; medians of {rounds} rounds.",
            unit="s",
            columns={"s": "s"},
            compared=["s"],
            rows=rows + [as_row(name, cannot=NO_PLAN) for name in WITHOUT],
            commands=COMMANDS,
            raw=times,
        )
    ]


def _acts(
    place: graph.Place, bin_folder: str | None, number: int
) -> dict[str, Callable[[], object]]:
    """What is measured; each round imports into a run, or a store, of its own."""
    here = place.folder
    floor = (sys.executable, "-c", _FLOOR, "plan.yaml")
    acts: dict[str, Callable[[], object]] = {
        "orch plan import": lambda: place.orch(*COMMANDS["orch plan import"].split()[1:]),
        "read and sorted only": lambda: _run(here, *floor),
    }
    fleet = f"{bin_folder}fleetwright"
    if bin_folder and Path(fleet).exists():
        store = ("--db", f"fleet{number}.db", "--create")
        _run(here, fleet, "start", *store)
        words = COMMANDS["fleetwright"].split()[2:]
        acts["fleetwright"] = lambda: _run(here, fleet, "add", *store, *words)
    return acts


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
