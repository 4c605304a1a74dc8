"""How long `orch dispatch` takes, beside git's own `worktree add` of the same commit.

A part of the benchmark of worktrees. Our command counts as a whole process, from its start to its
end; git's too. They take turns, so that whatever else the machine does meets both.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ORCH = str(Path(sys.executable).parent / "orch")
LIMITS = {"one": 1.2, "eight": 1.1}
AT_ONCE = 8


def measure(repository: Path, rounds: int) -> dict[str, Any]:
    """Dispatch one attempt, and eight at once, beside as many `git worktree add`.

    A host that gives this machine little memory makes single turns several times as long as
    others, on either side, so a few turns show nothing: twelve are the least.

    Returns seconds of each turn, the ratio of the medians, and that of each pair of turns.
    """
    places = Places(repository)
    return {
        "one": _beside(places, 1, rounds),
        "eight": _beside(places, AT_ONCE, rounds),
        "limits": LIMITS,
    }


def _beside(places: "Places", attempts: int, rounds: int) -> dict[str, Any]:
    ours: list[Turn] = []
    gits: list[Turn] = []
    places.dispatch(1)  # neither pays for what only the first one does
    places.add(1)
    for turn in range(rounds):
        both = [(ours, places.dispatch), (gits, places.add)]
        for turns, act in both if turn % 2 else reversed(both):
            turns.append(act(attempts))
    wall = [statistics.median(t.seconds for t in turns) for turns in (ours, gits)]
    processor = [statistics.median(t.processor_seconds for t in turns) for turns in (ours, gits)]
    return {
        "attempts": attempts,
        "orch_turns": ours,
        "git_turns": gits,
        "orch_ms": wall[0] * 1000,
        "git_ms": wall[1] * 1000,
        "ratio": wall[0] / wall[1],
        "ratios_of_turns": [o.seconds / g.seconds for o, g in zip(ours, gits, strict=True)],
        "orch_processor_ms": processor[0] * 1000,
        "git_processor_ms": processor[1] * 1000,
        "processor_ratio": processor[0] / processor[1],
    }


class Turn(NamedTuple):
    """How long something took, and how much of the processors, with all its child processes."""

    seconds: float
    processor_seconds: float


@contextmanager
def _timed() -> Iterator[list[Turn]]:
    """Gives a list that has its one turn when the block is over."""
    turns: list[Turn] = []
    before, began = os.times(), time.perf_counter()
    yield turns
    seconds, after = time.perf_counter() - began, os.times()
    used = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    turns.append(Turn(seconds, used))


class Places:
    """Where the worktrees are made, and taken away between two turns."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._number = 0
        self._environment = {
            **{
                k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "INBOX_", "ORCH_"))
            },
            "XDG_STATE_HOME": str(repository.parent / "state"),
        }
        self._run("run", "init", "--title", "Bench")

    def dispatch(self, attempts: int) -> Turn:
        """Ours: that many attempts with one command."""
        keys = [f"t{self._next()}" for _ in range(attempts)]
        for key in keys:
            self._run("task", "add", "--task", key, "--title", "Bench")
        with _timed() as turns:
            data = self._run("dispatch", *keys)
        items = data["items"]
        assert [item["state"] for item in items] == ["offered"] * attempts
        self._remove([item["worktree"] for item in items])
        return turns[0]

    def add(self, attempts: int) -> Turn:
        """Git's own, one after the other."""
        paths = [str(self._repository.parent / "bare" / str(self._next())) for _ in range(attempts)]
        with _timed() as turns:
            for path in paths:
                branch = f"bare/{Path(path).name}"
                self._git("worktree", "add", "--quiet", "-b", branch, path, "main")
        self._remove(paths)
        return turns[0]

    def _remove(self, paths: list[str]) -> None:
        for path in paths:
            self._git("worktree", "remove", "-f", "-f", path)
        subprocess.run(["sync"], check=True)  # what one wrote is not for the other to wait for

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self._repository, env=self._environment, check=True)

    def _run(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [ORCH, *arguments, "--json"],
            cwd=self._repository,
            env=self._environment,
            capture_output=True,
            check=True,
        )
        data: dict[str, Any] = json.loads(done.stdout)["data"]
        return data

    def _next(self) -> int:
        self._number += 1
        return self._number
