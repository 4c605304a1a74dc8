"""script/torture: many processes on one database under faults, and what the checker says."""

import argparse
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import checker
import git_actors
import history
from breaking import BROKEN
from nemesis import Nemesis

from inbox_orch.inbox import Bus
from inbox_orch.orch.services.scheduler import Scheduler
from inbox_orch.shared import creating

CREW = {"sender": 2, "worker": 4, "reader": 3, "watcher": 1, "caretaker": 1, "shell": 1}
GIT_CREW = {"leader": 2, "coder": 2}
DISK_MEGABYTES = 2048


def main() -> None:
    """Run, check, report; exit 1 when a promise was broken."""
    options = parsed()
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    with scratch(options.keep) as folder:
        summary = torture(folder, str(seed), options)
        text = as_text(summary)
        if options.output:
            Path(options.output).write_text(json.dumps(summary, indent=2) + "\n")
        print(json.dumps(summary, indent=2) if options.json else text)
    sys.exit(1 if summary["violations"] else 0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, help="of what happens by chance; printed")
    parser.add_argument("--break", dest="broken", choices=sorted(BROKEN), default="")
    parser.add_argument("--calm", action="store_true", help="no faults but kills")
    parser.add_argument("--no-git", action="store_true", help="only the bus")
    parser.add_argument("--crew", type=int, default=1, help="times as many processes")
    parser.add_argument("--kills", type=float, default=2.0, help="a second, on average")
    parser.add_argument("--keep", metavar="DIR", help="leave history and database there")
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


def torture(folder: Path, seed: str, options: argparse.Namespace) -> dict[str, Any]:
    """One run; its figures and violations."""
    for name in ("history", "backups", "errors"):
        (folder / name).mkdir()
    with Nemesis(folder, seed, calm=options.calm, kills=options.kills) as nemesis:
        creating.create(str(folder / "disk" / "project" / ".inbox" / "bus.db"))
        roles = dict(CREW) if options.no_git else CREW | GIT_CREW
        if not options.no_git:
            begin_run(folder)
        crew = Crew(folder, seed, options.broken, roles, options.crew)
        began = time.monotonic()
        try:
            nemesis.rage(crew, until=began + options.minutes * 60)
        finally:
            crew.stop()
        seconds = time.monotonic() - began
        operations = history.read(folder / "history")
        found = crew.crashes + checker.violations(operations, nemesis.faults, ending(folder))
    names = Counter(op.name for op in operations)
    return {
        "seed": int(seed),
        "broken": options.broken or None,
        "seconds": round(seconds, 1),
        "operations": len(operations),
        "through_command_line": sum(op.actor.startswith("shell") for op in operations),
        "by_name": dict(names.most_common()),
        "acknowledged": sum(op.acknowledged for op in operations),
        "refused": dict(Counter(op.error for op in operations if op.error).most_common()),
        "never_returned": sum(op.returned_ns is None for op in operations),
        "faults": dict(Counter(fault.kind for fault in nemesis.faults).most_common()),
        "not_tried": nemesis.not_tried,
        "violations": found[:50],
        "violation_count": len(found),
    }


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
        return checker.Ending(list(bus.export()), problems, commits, files)


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


class Crew:
    """The processes, each by its name; whoever dies is born again."""

    def __init__(
        self, folder: Path, seed: str, broken: str, roles: dict[str, int], times: int
    ) -> None:
        self.folder, self.seed, self.broken = folder, seed, broken
        self.crashes: list[str] = []
        self.environment: dict[str, str] = {}
        self._lives: Counter[str] = Counter()
        names = [f"{role}{n}" for role, number in roles.items() for n in range(number * times)]
        self.processes = {name: self._born(name) for name in names}

    def kill(self, name: str) -> None:
        """As the kernel does it, and a new life at once."""
        process = self.processes[name]
        process.kill()
        process.wait()
        self.processes[name] = self._born(name)

    def look_after(self) -> None:
        """Who has ended by itself has crashed."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                self._crashed(name, process)
                self.processes[name] = self._born(name)

    def stop(self) -> None:
        """Let everybody finish what it is doing."""
        (self.folder / "stop").touch()
        for name, process in self.processes.items():
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.crashes.append(f"{name} did not come to an end within 60 s")
            else:
                self._crashed(name, process)

    def _born(self, name: str) -> subprocess.Popen[bytes]:
        life = self._lives[name]
        self._lives[name] += 1
        program = Path(__file__).with_name("actors.py")
        with open(self.folder / "errors" / f"{name}.{life}", "wb") as errors:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    program,
                    self.folder,
                    name,
                    str(life),
                    self.seed,
                    self.broken,
                ],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env={**_environment(), **self.environment},
            )

    def _crashed(self, name: str, process: subprocess.Popen[bytes]) -> None:
        if process.returncode != 0:
            life = self._lives[name] - 1
            words = (self.folder / "errors" / f"{name}.{life}").read_text(errors="replace")
            self.crashes.append(f"{name}#{life} ended with {process.returncode}: {words[-600:]}")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}


def as_text(summary: dict[str, Any]) -> str:
    about = (
        f"seed {summary['seed']}, {summary['seconds']} s, {summary['operations']:,} operations "
        f"({summary['through_command_line']:,} through the command line), "
        f"{summary['acknowledged']:,} acknowledged, {summary['never_returned']:,} never returned"
    )
    faults = ", ".join(f"{n} {kind}" for kind, n in summary["faults"].items())
    refused = ", ".join(f"{n} {code}" for code, n in summary["refused"].items())
    lines = [about, f"faults: {faults}", f"refused: {refused}"]
    if summary["not_tried"]:
        lines.append("not tried here: " + ", ".join(summary["not_tried"]))
    lines.append(f"violations: {summary['violation_count']}")
    return "\n".join([*lines, *(f"  {found}" for found in summary["violations"])])


if __name__ == "__main__":
    main()
