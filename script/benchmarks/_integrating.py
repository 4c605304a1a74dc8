"""How long `orch integrate` takes, beside git's own merges in memory of the same commits.

A part of the benchmark of worktrees; also runs by itself.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ORCH = str(Path(sys.executable).parent / "orch")
_NAMED = (
    *("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid"),
    *("-c", "commit.gpgsign=false", "-c", "gc.auto=0"),
)


def git(folder: Path, *arguments: str) -> str:
    """The output of git, without its last line end."""
    done = subprocess.run(
        ["git", *_NAMED, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.rstrip("\n")


def make_repository(folder: Path, files: int) -> Path:
    """A repository with so many small files, a hundred in a folder, in one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(files):
        path = folder / f"part-{number // 100:04}" / f"file-{number:06}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"file {number}\n" * 8)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def measure(repository: Path, attempts: int) -> dict[str, Any]:
    """Accept the work of so many attempts, integrate it, and let git merge the same by itself.

    Returns seconds: of the whole command, of its work without the start of Python, and of git's
    `merge-tree` and `commit-tree` processes alone.
    """
    from inbox_orch.inbox import Bus
    from inbox_orch.orch.leader.scheduler import Scheduler
    from inbox_orch.shared.store.sqlite import creating

    database = repository / ".inbox" / "bus.db"
    creating.create(str(database))
    with Bus.open(database) as bus:
        scheduler = Scheduler(bus)
        heads = _accepted(scheduler, repository, attempts)
        scheduler.run(None)
    base = git(repository, "rev-parse", "main")
    bare = _bare_seconds(repository, base, heads)
    dry = _timed([_ORCH, "integrate", "--dry-run", "--json"], repository)
    idle = _timed([_ORCH, "run", "list", "--json"], repository)
    with Bus.open(database) as bus:
        scheduler = Scheduler(bus)
        began = time.perf_counter()
        done = scheduler.integrate(scheduler.run(None))
        work = time.perf_counter() - began
    assert [r.state for r in done.results] == ["merged"] * attempts
    return {
        "attempts": attempts,
        "bare_seconds": round(bare, 3),
        "work_seconds": round(work, 3),
        "beyond_seconds": round(work - bare, 3),
        "dry_run_command_seconds": round(dry, 3),
        "start_seconds": round(idle, 3),
    }


def _accepted(scheduler: Any, repository: Path, attempts: int) -> list[str]:
    """The heads of work that is accepted: each changes ten files of its own and adds one."""
    from inbox_orch.orch.runs.plan import Opening, TaskSpec

    scheduler.run_init(
        Opening("Bench"),
        repository=str(repository),
        worktree_root=str(repository.parent / "worktrees"),
    )
    run = scheduler.run(None)
    for number in range(attempts):
        scheduler.add_task(run, TaskSpec(f"t{number}", f"Task {number}"))
    heads = []
    for number, item in enumerate(scheduler.dispatch(run).items):
        tree = Path(item["worktree"])
        for changed in sorted(tree.glob(f"part-*{number}/*.txt"))[:10]:
            changed.write_text(f"changed by {number}\n")
        (tree / f"new-{number}.txt").write_text("new\n")
        git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "--message", f"Work {number}")
        heads.append(git(tree, "rev-parse", "HEAD"))
        claimed = scheduler.bus.claim(item["thread"], mailboxes=[item["mailbox"]], agent="w")
        scheduler.bus.done(item["thread"], claimed.lease.token, body="done")
    scheduler.reconcile(run)
    return heads


def _bare_seconds(repository: Path, base: str, heads: list[str]) -> float:
    """What git's own part takes."""
    tip, began = base, time.perf_counter()
    for head in heads:
        tree = git(repository, "merge-tree", "--write-tree", tip, head)
        tip = git(repository, "commit-tree", tree, "-p", tip, "-p", head, "-m", "merge")
    return time.perf_counter() - began


def _timed(command: list[str], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    """Measure in a temporary folder, and print the figures as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", type=int, default=20_000)
    options.add_argument("--attempts", type=int, default=10)
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-integrate-"))
    try:
        repository = make_repository(folder / "project", given.files)
        print(json.dumps(measure(repository, given.attempts), indent=2))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
