"""How long the salvage of a worktree takes, and the whole `orch cleanup` of it.

A part of the benchmark of worktrees.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ORCH = str(Path(sys.executable).parent / "orch")
LIMIT_SECONDS = 0.5
CHANGED = 20


def measure(repository: Path, rounds: int) -> dict[str, Any]:
    """Salvage worktrees with 20 changed, 20 untracked and 20 ignored files, each in a whole
    clean-up of its own.

    Returns seconds: of looking at the worktree, of storing what is in no commit, of both together
    (`salvage`), of the whole command, and of a bare `git status` of the same.
    """
    from inbox_orch.orch.git import condition, salvage
    from inbox_orch.orch.git.repository import Repository

    turns: dict[str, list[float]] = {"look": [], "store": [], "command": [], "git_status": []}
    for worktree in _ended_attempts(repository, rounds):
        turns["git_status"].append(_timed(["git", "status", "--porcelain", "-uall"], worktree))
        began = time.perf_counter()
        found = condition.look(worktree, Repository(str(repository)).common_directory)
        looked = time.perf_counter()
        commit = salvage.snapshot(Repository(str(repository)), worktree, found, "Measured")
        stored = time.perf_counter()
        assert commit is not None, "there was nothing to salvage"
        turns["look"].append(looked - began)
        turns["store"].append(stored - looked)
    keys = [f"t{number}" for number in range(rounds)]
    turns["command"] = [_timed([ORCH, "cleanup", key, "--force"], repository) for key in keys]
    both = [a + b for a, b in zip(turns["look"], turns["store"], strict=True)]
    return {
        **{f"{name}_seconds": seconds for name, seconds in turns.items()},
        "salvage_ms": statistics.median(both) * 1000,
        "slowest_ms": max(both) * 1000,
        "look_ms": statistics.median(turns["look"]) * 1000,
        "command_ms": statistics.median(turns["command"]) * 1000,
        "git_status_ms": statistics.median(turns["git_status"]) * 1000,
        "limit_ms": LIMIT_SECONDS * 1000,
    }


def _ended_attempts(repository: Path, count: int) -> list[str]:
    """Worktrees of attempts that failed and left something; their paths."""
    root = repository.parent / "salvage-worktrees"
    (repository / ".git" / "info" / "exclude").write_text(".inbox/\n*.ignored\n")
    _orch(repository, "run", "init", "--title", "Salvage", "--worktree-root", str(root))
    worktrees = []
    for number in range(count):
        key = f"t{number}"
        _orch(repository, "task", "add", "--task", key, "--title", key, "--max-attempts", "1")
        (item,) = _orch(repository, "dispatch", key)["data"]["items"]
        worktree = str(item["worktree"])
        tracked = subprocess.run(
            ["git", "ls-files"], cwd=worktree, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for name in tracked[:: len(tracked) // CHANGED][:CHANGED]:
            Path(worktree, name).write_text(f"changed by {key}\n" * 50)
        for index in range(CHANGED):
            Path(worktree, f"new-{index}.txt").write_text(f"new in {key}, {index}\n" * 50)
            Path(worktree, f"new-{index}.ignored").write_text(f"built in {key}, {index}\n" * 50)
        _cancel(repository, item["thread"])
        worktrees.append(worktree)
    return worktrees


def _orch(repository: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [ORCH, *arguments, "--json"], cwd=repository, capture_output=True, check=True
    )
    return json.loads(done.stdout)


def _cancel(repository: Path, thread: str) -> None:
    """End the attempt of a thread, and let it be noticed."""
    inbox = str(Path(ORCH).with_name("inbox"))
    command = [inbox, "cancel", thread, "--agent", "leader"]
    subprocess.run(command, cwd=repository, check=True, stdout=subprocess.DEVNULL)
    _orch(repository, "reconcile")


def _timed(command: list[str], folder: str | Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
