"""Graph: plans of 10,000 and 100,000 tasks: import, ready, status, export, closing a cycle.

Each command is measured as a whole process, and its work apart: the same service call in a process
that has everything loaded. The plan has three times as many dependencies as tasks, each on one of
the 300 before. The cycle would be closed at the end of a chain that is in the same run.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from common import machine, parser, report, say, scratch, summary, table

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.sqlite import creating

SIZES = (10_000, 100_000)
CHAIN = 2_000
WIDTH = 300
REFUSED = "dep add, refused"
# Seconds, for the first size.
ALLOWED = {
    "plan import": ("whole", 3.0),
    "ready": ("work", 0.3),
    "status": ("work", 0.3),
    REFUSED: ("work", 0.1),
}
COMMANDS = {
    "ready": ("ready", "--json"),
    "status": ("status", "--json"),
    "status, every row": ("status", "--json", "--limit", "1000000"),
    "plan export": ("plan", "export"),
    REFUSED: ("dep", "add", "c0", "--on", f"c{CHAIN - 1}", "--json"),
}


def main() -> None:
    """Measure, and report."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options_parser.add_argument("--rounds", type=int, default=7)
    options = options_parser.parse_args()
    if options.quick:
        options.sizes, options.rounds = [CHAIN + 100], 1
    figures: dict[str, Any] = {"benchmark": "graph", "machine": machine(), "sizes": {}}
    with scratch() as folder:
        for size in options.sizes:
            say(f"{size:,} tasks")
            figures["sizes"][str(size)] = measure(folder / str(size), size, options)
    report(options, figures, as_text(figures))


def plan_text(size: int) -> str:
    """A chain, and the rest with so many dependencies that there are three for each task."""
    random = Random(7)
    lines = ["run: {title: Graph}", "tasks:"]
    for number in range(CHAIN):
        after = f", depends_on: [c{number - 1}]" if number else ""
        lines.append(f"  - {{task: c{number}, title: Link {number} of the chain{after}}}")
    rest, edges = size - CHAIN, 3 * size - (CHAIN - 1)
    for number in range(rest):
        count = (number + 1) * edges // rest - number * edges // rest
        lines.append(f"  - task: t{number}")
        lines.append(f"    title: Task number {number}")
        lines.append(f"    body: Do the work of task {number}, with its tests.")
        before = range(max(0, number - WIDTH), number)
        upstream = random.sample(before, min(count, len(before)))
        if upstream:
            lines.append(f"    depends_on: [{', '.join(f't{u}' for u in upstream)}]")
    return "\n".join(lines) + "\n"


class Place:
    """A repository with one commit and a database, and commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(parents=True)
        self.path = self.folder / ".inbox" / "bus.db"
        self._environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
        who = ("-c", "user.name=B", "-c", "user.email=b@example.invalid")
        for command in (("init", "--quiet"), (*who, "commit", "-qm", "Begin", "--allow-empty")):
            subprocess.run(["git", *command], cwd=self.folder, check=True)
        creating.create(str(self.path))

    def orch(self, *arguments: str, expected: int = 0) -> bytes:
        """Run `orch` to its end; what it printed."""
        program = str(Path(sys.executable).parent / "orch")
        line = [program, *arguments, "--db", str(self.path)]
        done = subprocess.run(line, cwd=self.folder, env=self._environment, capture_output=True)
        assert done.returncode == expected, done.stderr
        return done.stdout


def measure(folder: Path, size: int, options: argparse.Namespace) -> dict[str, Any]:
    """Operation -> the summaries of the whole process and of its work."""
    place = Place(folder)
    (place.folder / "plan.yaml").write_text(plan_text(size), encoding="utf-8")
    imports, names = [], []
    for _ in range(min(options.rounds, 3)):
        started = time.perf_counter()
        done = place.orch("plan", "import", "plan.yaml", "--new-run", "--json")
        imports.append(time.perf_counter() - started)
        names.append(json.loads(done)["data"]["run"]["name"])
    found: dict[str, Any] = {"plan import": {"whole": summary(imports)}}
    for name, arguments in COMMANDS.items():
        line = (*arguments, "--run", names[0])
        expected = 4 if name == REFUSED else 0
        times = [timed(lambda a=line, e=expected: place.orch(*a, expected=e))
                 for _ in range(options.rounds)]  # fmt: skip
        found[name] = {"whole": summary(times)}
    for name, times in work(place.path, names[0], options.rounds).items():
        found[name]["work"] = summary(times)
    return found


def work(path: Path, run_name: str, rounds: int) -> dict[str, list[float]]:
    """The seconds of the service calls alone, taking turns."""
    times: dict[str, list[float]] = {}
    with Bus.open(path) as bus:
        scheduler = Scheduler(bus)
        run = scheduler.run(run_name)
        calls: dict[str, Callable[[], Any]] = {
            "ready": lambda: scheduler.ready(run),
            "status": lambda: scheduler.status(run),
            "plan export": lambda: scheduler.plan_export(run),
            REFUSED: lambda: refused(scheduler, run),
        }
        # As the commands do it: what is loaded by now is no garbage.
        gc.freeze()
        for _ in range(rounds):
            for name, call in calls.items():
                times.setdefault(name, []).append(timed(call))
    return times


def refused(scheduler: Scheduler, run: Run) -> None:
    """Let the first of the chain wait for the last."""
    try:
        scheduler.add_dependency(run, "c0", f"c{CHAIN - 1}")
    except InboxOrchError as error:
        if len(error.details["cycle"]) != CHAIN + 1:
            raise
    else:
        raise SystemExit("the cycle was let in")


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def as_text(figures: dict[str, Any]) -> str:
    """A table for people: medians in milliseconds."""
    sizes = list(figures["sizes"])
    headings = ["operation"]
    for size in sizes:
        headings += [f"whole ms at {int(size):,}", f"work ms at {int(size):,}"]
    rows = []
    for name in figures["sizes"][sizes[0]]:
        row: list[object] = [f"`{name}`"]
        for size in sizes:
            measured = figures["sizes"][size][name]
            row += [measured[part]["p50_ms"] if part in measured else None
                    for part in ("whole", "work")]  # fmt: skip
        kind, most = ALLOWED.get(name, ("", None))
        row.append("" if most is None else f"{most * 1000:.0f} {kind}")
        rows.append(row)
    return table([*headings, f"allowed at {int(sizes[0]):,}"], rows)


if __name__ == "__main__":
    main()
