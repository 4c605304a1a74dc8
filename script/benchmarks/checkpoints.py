"""What a checkpoint costs, and going back to one, in a large worktree: beside `git status` there.

The files that are changed each time are of the same number; each job is done in turn, so that a
busy moment is one for all of them.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, table
from worktrees import git_version, make_repository

ALLOWED_SECONDS = 0.6
JOBS = ("git status", "first checkpoint", "checkpoint", "going back")


def main() -> None:
    """Measure, and report."""
    options_parser = parser((__doc__ or "").splitlines()[0])
    options_parser.add_argument("--files", type=int, default=20_000, help="in the repository")
    options_parser.add_argument("--changed", type=int, default=20, help="files each time")
    options_parser.add_argument("--rounds", type=int, default=7)
    options = options_parser.parse_args()
    if options.quick:
        options.files, options.changed, options.rounds = 50, 5, 1
    facts = machine() | {"git": git_version()}
    with scratch() as folder:
        say(f"a repository of {options.files} files")
        ground = Ground(folder, options.files)
        rounds = [ground.turn(options.changed, number) for number in range(options.rounds)]
    jobs = {name: _middle([each[name] for each in rounds]) for name in JOBS}
    kept = all(jobs[name]["seconds"] <= ALLOWED_SECONDS for name in JOBS)
    figures = {
        "benchmark": "checkpoints",
        "machine": facts,
        "files": options.files,
        "changed": options.changed,
        "jobs": jobs,
        "allowed_seconds": ALLOWED_SECONDS,
        "kept": kept,
    }
    report(options, figures, as_text(figures))
    sys.exit(0 if options.quick or kept else 1)


Cost = dict[str, float]


class Ground:
    """A worktree, and the chain of its checkpoints."""

    def __init__(self, folder: Path, files: int) -> None:
        from inbox_orch.orch.git import snapshots
        from inbox_orch.orch.git.repository import Repository

        self.folder = make_repository(folder / "project", files)
        self.worktree = folder / "worktree"
        self._git("worktree", "add", "--quiet", "-b", "work", str(self.worktree))
        self.repository = Repository(str(self.folder))
        self.ref = snapshots.ref_of("0" * 26)
        self.first: str | None = None

    def turn(self, changed: int, number: int) -> dict[str, Cost]:
        """Each job once."""
        self._forget()
        costs = {"git status": _cost(lambda: self._git("status", "--short"))}
        costs["first checkpoint"] = _cost(self._keep)
        start = self.first
        for path in sorted(self.worktree.glob("part-*/*"))[:changed]:
            path.write_text(f"round {number}\n")
        costs["checkpoint"] = _cost(self._keep)
        costs["going back"] = _cost(lambda: self._go_back(str(start)))
        return costs

    def _keep(self) -> None:
        from inbox_orch.orch.git import snapshots

        at = str(self.worktree)
        made = snapshots.snapshot(self.repository, at, (), self.ref, "A checkpoint", None)
        self.first = self.first or made.commit

    def _go_back(self, commit: str) -> None:
        from inbox_orch.orch.git import snapshots, worktrees
        from inbox_orch.orch.git.worktrees import Place

        place = Place("work", str(self.worktree), commit, "bench")
        with worktrees.alone(self.repository, place) as hold:
            snapshots.restore(self.repository, str(self.worktree), hold, commit, ())

    def _forget(self) -> None:
        """What was hashed before is known no more, and there is no chain."""
        own = self.folder / ".git" / "worktrees" / "worktree"
        for path in own.glob("inbox-orch-*"):
            path.unlink()
        if self.first is not None:
            self._git("update-ref", "-d", self.ref)
        self.first = None

    def _git(self, *words: str) -> None:
        subprocess.run(
            ["git", *words],
            cwd=self.worktree if self.worktree.exists() else self.folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )


def _cost(job: Callable[[], None]) -> Cost:
    """Seconds, and those of the processor, in this process and in git."""
    before, began = os.times(), time.perf_counter()
    job()
    seconds, after = time.perf_counter() - began, os.times()
    spent = sum(after[:4]) - sum(before[:4])
    return {"seconds": seconds, "processor_seconds": spent}


def _middle(costs: list[Cost]) -> Cost:
    return {name: statistics.median(cost[name] for cost in costs) for name in costs[0]}


def as_text(figures: dict[str, Any]) -> str:
    """A table."""
    status = figures["jobs"]["git status"]["seconds"]
    rows = [
        (name, cost["seconds"], cost["processor_seconds"], cost["seconds"] / status)
        for name, cost in figures["jobs"].items()
    ]
    heading = f"{figures['files']:,} files, {figures['changed']} of them changed; medians"
    text = table(("job", "s", "s of processor", "times git status"), rows)
    said = "kept" if figures["kept"] else "NOT kept"
    return f"{heading}\n\n{text}\n\nAt most {figures['allowed_seconds']} s each: {said}"


if __name__ == "__main__":
    main()
