"""script/torture: many processes on one database under faults, and what the checker says."""

import argparse
import gc
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import checker
import git_actors
import history
from breaking import BROKEN
from crew import CREW, GIT_CREW, Crew
from nemesis import Nemesis

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.store.sqlite import creating

OUTCOME = "outcome.json"
COUNT_SECONDS = 5.0
MOST_AHEAD = 1.2
SCHEDULING = ("task add", "dispatch", "reconcile", "cleanup", "integrate", "retry", "status")


def main() -> None:
    """Run, check, report; exit 1 when a promise was broken."""
    options = parsed()
    if options.again:
        summary = judged(Path(options.again))
    else:
        seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
        with scratch(options.keep) as folder:
            torture(folder, str(seed), options)
            summary = judged(folder)
    if options.output:
        Path(options.output).write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2) if options.json else as_text(summary))
    sys.exit(1 if summary["violations"] else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="at least so long")
    parser.add_argument("--operations", type=int, default=0, help="at least so many")
    parser.add_argument("--seed", type=int, help="of what happens by chance; printed")
    parser.add_argument("--break", dest="broken", choices=sorted(BROKEN), default="")
    parser.add_argument("--calm", action="store_true", help="no faults but kills")
    parser.add_argument("--no-git", action="store_true", help="only the bus")
    parser.add_argument("--crew", type=int, default=1, help="times as many processes")
    parser.add_argument("--kills", type=float, default=2.0, help="a second, on average")
    parser.add_argument("--keep", metavar="DIR", help="leave history and database there")
    parser.add_argument("--again", metavar="DIR", help="only check what is left there once more")
    parser.add_argument("--json", action="store_true", help="print the raw summary")
    parser.add_argument("--output", metavar="FILE", help="store the raw summary there")
    return parser.parse_args()


@contextmanager
def scratch(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        folder = Path(keep).resolve()
        folder.mkdir(parents=True)
        yield folder
        return
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class Outcome(NamedTuple):
    """What a run leaves besides its histories."""

    seed: str
    broken: str
    seconds: float
    lives: int
    crashes: list[str]
    faults: list[history.Fault]
    not_tried: list[str]
    ending: checker.Ending


def torture(folder: Path, seed: str, options: argparse.Namespace) -> None:
    """One run; what it leaves is in `folder`."""
    for name in ("history", "backups", "errors"):
        (folder / name).mkdir()
    with Nemesis(folder, seed, calm=options.calm, kills=options.kills) as nemesis:
        creating.create(str(folder / "disk" / "project" / ".inbox" / "bus.db"))
        roles = dict(CREW) if options.no_git else CREW | GIT_CREW
        if not options.no_git:
            begin_run(folder)
        gc.freeze()  # so that the children share what is there now
        crew = Crew(folder, seed, options.broken, roles, options.crew)
        began = time.monotonic()
        enough = Enough(folder, options.minutes, options.operations)
        signal.signal(signal.SIGTERM, lambda *_: enough.call_off())
        try:
            nemesis.rage(crew, enough)
        finally:
            crew.stop()
        seconds = time.monotonic() - began
        say(f"{seconds:.0f} s are over; looking at what there is")
        outcome = Outcome(
            *(seed, options.broken, seconds, crew.lives, crew.crashes),
            *(nemesis.faults, nemesis.not_tried, checker.Ending([], ["nobody has looked at it"])),
        )
        store(outcome, folder / OUTCOME)  # for whoever has to find out why the next line fails
        store(outcome._replace(ending=ending(folder)), folder / OUTCOME)


def store(outcome: Outcome, path: Path) -> None:
    """For `stored`."""
    with open(path, "w") as file:
        json.dump([*outcome[:-1], checker.as_json(outcome.ending)], file)


def stored(path: Path) -> Outcome:
    """What `store` has written."""
    with open(path) as file:
        *others, faults, not_tried, ending = json.load(file)
    told = [history.Fault(*fault) for fault in faults]
    return Outcome(*others, told, not_tried, checker.from_json(ending))


def judged(folder: Path) -> dict[str, Any]:
    """The figures and violations of the run that was in this folder."""
    outcome = stored(folder / OUTCOME)
    operations = history.read(folder / "history")
    say(f"checking {len(operations):,} operations")
    found = outcome.crashes + checker.violations(operations, outcome.faults, outcome.ending)
    return {
        "seed": int(outcome.seed),
        "broken": outcome.broken or None,
        "seconds": round(outcome.seconds, 1),
        "lives": outcome.lives,
        **counted(operations),
        "faults": dict(Counter(fault.kind for fault in outcome.faults).most_common()),
        "not_tried": outcome.not_tried,
        "stored": dict(outcome.ending.stored),
        "violations": found[:50],
        "violation_count": len(found),
    }


class Enough:
    """Whether a run has been long enough, and has done enough.

    Where the machine does far more than was wanted, storms and lulls take turns: what is stored
    grows with every operation, and so does the time that looking at it takes.
    """

    def __init__(self, folder: Path, minutes: float, operations: int) -> None:
        self._lines = history.Lines(folder / "history")
        self._lull = folder / "lull"
        self._operations = operations
        self._began = time.monotonic()
        self._seconds = minutes * 60
        self._next_count = 0.0
        self._called_off = False

    def call_off(self) -> None:
        """What has been done is enough; it is judged all the same."""
        self._called_off = True

    def __call__(self) -> bool:
        if self._called_off:
            return True
        passed = time.monotonic() - self._began
        if passed < min(self._next_count, self._seconds):
            return False
        self._next_count = passed + COUNT_SECONDS
        # A call and its return are a line each.
        done = self._lines.count() // 2
        say(f"{passed:.0f} s: about {done:,} operations")
        ahead = done > MOST_AHEAD * self._operations * passed / self._seconds
        if self._operations and ahead:
            self._lull.touch()
        else:
            self._lull.unlink(missing_ok=True)
        return passed >= self._seconds and done >= self._operations


def say(text: str) -> None:
    """How far it is; the summary alone goes to standard output."""
    print(text, file=sys.stderr, flush=True)


def counted(operations: Sequence[history.Operation]) -> dict[str, Any]:
    """How many there were, by what they were, how they were made, and how they ended."""
    return {
        "operations": len(operations),
        "through": dict(Counter(map(way, operations)).most_common()),
        "by_name": dict(Counter(op.name for op in operations).most_common()),
        "acknowledged": sum(op.acknowledged for op in operations),
        "refused": dict(Counter(op.error for op in operations if op.error).most_common()),
        "never_returned": sum(op.returned_ns is None for op in operations),
    }


def way(operation: history.Operation) -> str:
    """How an operation was made."""
    if operation.actor.startswith("shell"):
        return "command line"
    if operation.name in SCHEDULING:
        return "Scheduler"
    return "git and files" if operation.name in ("edit", "commit") else "Bus"


def begin_run(folder: Path) -> None:
    """The repository, and the run in it."""
    with Bus.open(folder / "disk" / "project" / ".inbox" / "bus.db") as bus:
        project = folder / "disk" / "project"
        git_actors.open_run(Scheduler(bus), project, folder / "disk" / "worktrees")


def ending(folder: Path) -> checker.Ending:
    """What there is when everybody has left, and a last leader has put things in order."""
    with Bus.open(folder / "disk" / "project" / ".inbox" / "bus.db", agent="judge") as bus:
        examined = bus.doctor(verify=True)
        problems = [
            f"{c.name}: {c.text} {c.items}" for c in examined.checks if c.status == "problem"
        ]
        commits: frozenset[str] = frozenset()
        files: frozenset[str] = frozenset()
        project = folder / "disk" / "project"
        if (project / ".git").exists():
            scheduler = Scheduler(bus, "judge")
            scheduler.reconcile(scheduler.run(None))
            checks = scheduler.doctor(verify=True).checks
            problems += [f"{c.name}: {c.text} {c.items}" for c in checks if c.status == "problem"]
            problems += fsck(project)
            commits, files = reachable(project, folder / "disk" / "worktrees")
        bus.backup(folder / "ending.db")
        lines, stored = checker.needed(bus.export())
        return checker.Ending(lines, problems, commits, files, stored)


def fsck(project: Path) -> list[str]:
    """What git finds wrong with its repository."""
    done = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling"], cwd=project, capture_output=True, text=True
    )
    return [] if done.returncode == 0 else [f"git fsck: {done.stdout}{done.stderr}"[:1000]]


def reachable(project: Path, worktrees: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The commits that refs reach, and the names of all files in them and on the disk."""
    listed = subprocess.run(
        ["git", "rev-list", "--objects", "--all"],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    commits = frozenset(line for line in listed if " " not in line)
    names = {line.split(" ", 1)[1].rsplit("/", 1)[-1] for line in listed if " " in line}
    names |= {name for _, _, there in os.walk(worktrees) for name in there}
    return commits, frozenset(names)


def as_text(summary: dict[str, Any]) -> str:
    """The figures for people."""

    def listed(name: str) -> str:
        return ", ".join(f"{number:,} {what}" for what, number in summary[name].items())

    lines = [
        f"seed {summary['seed']}, {summary['seconds']} s, {summary['lives']:,} lives",
        f"{summary['operations']:,} operations ({listed('through')})",
        f"{summary['acknowledged']:,} acknowledged, {summary['never_returned']:,} never returned",
        f"refused: {listed('refused')}",
        f"faults: {listed('faults')}",
        f"stored at the end: {listed('stored')}",
    ]
    if summary["not_tried"]:
        lines.append("not tried here: " + ", ".join(summary["not_tried"]))
    lines.append(f"violations: {summary['violation_count']}")
    return "\n".join([*lines, *(f"  {found}" for found in summary["violations"])])


if __name__ == "__main__":
    main()
