"""Counts the way that four calls take through our modules, and through the database.

Each call is made once unseen, so that every module is loaded, and then counted, in this process
and on a real repository: the dispatch on the one task of a run that has no other. What is counted:

- a room: a module of ours (`inbox`, `orch`, `shared`, `migrations`) whose functions are entered;
  `later`, which only loads modules, is none;
- a move: a function is entered from another room than its own;
- a snapshot: a reading transaction, from its `BEGIN` on;
- a statement: what SQLite is given to run, `BEGIN`, `COMMIT` and `PRAGMA` among it;
- git: a process of git's that is started;
- ms: how long the call takes when nobody counts; of `worktree add` git's own command, which takes
  turns with our dispatch. The median of some.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import inbox_orch
from inbox_orch.inbox import Bus
from inbox_orch.orch.council import ask, count
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.plan import Opening, TaskSpec
from inbox_orch.shared.store.sqlite import creating

TURNS = 5
PACKAGE = str(Path(inbox_orch.__path__[0]).resolve()) + os.sep
LOADER = os.path.join("shared", "later.py")
COUNTED = ("rooms", "moves", "snapshots", "statements", "git")
REVIEWERS = ("one", "two", "three")
REPLY = "1. [must] Keep the index in memory, since the disk is slow.\n"


class Walk:
    """What one call has entered and run."""

    def __init__(self) -> None:
        self.rooms: dict[str, int] = {}
        self.moves = 0
        self.statements: list[str] = []
        self.git = 0

    def counts(self) -> dict[str, int]:
        """The figures of the table."""
        begun = [s for s in self.statements if s == "BEGIN"]
        figures = (len(self.rooms), self.moves, len(begun), len(self.statements), self.git)
        return dict(zip(COUNTED, figures, strict=True))

    def enter(self, frame: FrameType, event: str, argument: object) -> None:
        """For `sys.setprofile`."""
        if event == "call" and (room := room_of(frame)) is not None:
            self.rooms[room] = self.rooms.get(room, 0) + 1
            self.moves += room != room_before(frame)

    def run(self, statement: str) -> None:
        """For SQLite's trace, which gives what a trigger runs as a comment."""
        if not statement.startswith("--"):
            self.statements.append(statement)

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """For the hook of audits."""
        if event == "subprocess.Popen":
            command = arguments[1] if isinstance(arguments[1], list | tuple) else [arguments[1]]
            self.git += os.path.basename(os.fsdecode(command[0])) == "git"


def room_of(frame: FrameType) -> str | None:
    """The module of ours that a function stands in."""
    path = frame.f_code.co_filename
    room = path.removeprefix(PACKAGE) if path.startswith(PACKAGE) else LOADER
    return None if room == LOADER else room


def room_before(frame: FrameType) -> str | None:
    """The module of ours that has led here, through whatever is not ours."""
    caller = frame.f_back
    while caller is not None:
        if (room := room_of(caller)) is not None:
            return room
        caller = caller.f_back
    return None


_walks: list[Walk] = []
sys.addaudithook(lambda event, arguments: [walk.hear(event, arguments) for walk in _walks] and None)


@contextmanager
def watched(bus: Bus) -> Iterator[Walk]:
    """Count what happens in the block."""
    walk, connection = Walk(), bus.database.connection
    connection.set_trace_callback(walk.run)
    _walks.append(walk)
    sys.setprofile(walk.enter)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        _walks.remove(walk)
        connection.set_trace_callback(None)


class Ground:
    """A repository with a database, a leader and a worker."""

    def __init__(self, folder: Path) -> None:
        self.repository = folder / "project"
        self._git_in(folder, "init", "--quiet", "--initial-branch", "main", "project")
        for n in range(20):
            (self.repository / f"file{n}").write_text(f"{n}\n" * 20)
        self._git("add", "--all")
        self._git("-c", "user.name=W", "-c", "user.email=w@x", "commit", "--quiet", "-m", "Begin")
        path = self.repository / ".inbox" / "bus.db"
        creating.create(str(path))
        self.bus, self.worker = Bus.open(path, agent="leader"), Bus.open(path, agent="worker")
        self.leader = Scheduler(self.bus)
        self.worktrees = folder / "worktrees"
        self.run: Any = None
        self.council: Any = None
        self._number = 0

    def _git(self, *arguments: str) -> None:
        self._git_in(self.repository, *arguments)

    @staticmethod
    def _git_in(folder: Path, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=folder, check=True)

    def next(self) -> int:
        """A new number."""
        self._number += 1
        return self._number

    # -- the four calls ----------------------------------------------------------------------

    def add_task(self) -> None:
        """A run with one task."""
        opened = self.leader.run_init(
            Opening(f"Run {self.next()}"),
            repository=str(self.repository),
            worktree_root=str(self.worktrees),
        )
        self.run = self.leader.run(opened.data["run"]["name"])
        self.leader.add_task(self.run, TaskSpec("one", "Write it", body="All of it."))

    def dispatch(self) -> None:
        done = self.leader.dispatch(self.run)
        assert [item["state"] for item in done.items] == ["offered"], done

    def send(self) -> None:
        """A message to claim."""
        self.bus.send(to="jobs", subject="Do", body="It.")

    def claim(self) -> None:
        assert self.worker.claim(mailboxes=["jobs"]) is not None

    def convene(self) -> None:
        """A council whose reviewers have all answered."""
        asked = ask.check_asked(ask.CouncilSpec("# What is missing?\n", reviewers=REVIEWERS))
        answer = self.leader.start_council(asked)
        self.council = self.leader.council(answer.data["council"]["id"])
        for reviewer in REVIEWERS:
            claimed = self.worker.claim(mailboxes=[reviewer])
            assert claimed.lease.token is not None
            self.worker.done(claimed.thread.id, claimed.lease.token, body=REPLY)

    def council_wait(self) -> None:
        self.leader.wait_for_council(self.council)

    def close_round(self) -> None:
        """A council that has been waited for."""
        self.convene()
        self.council_wait()

    def report(self) -> None:
        counted = self.leader.tally_of(self.council)
        content = count.rendered(counted, "md")
        self.leader.keep_report(counted, count.report_name("md"), content)

    def add_worktree(self) -> float:
        """Seconds that git's own `worktree add` takes."""
        name = f"bare{self.next()}"
        began = time.perf_counter()
        self._git("worktree", "add", "--quiet", "-b", name, f"../bare/{name}", "main")
        return time.perf_counter() - began


def calls(ground: Ground) -> dict[str, tuple[Callable[[], None], Callable[[], None], Bus]]:
    """What is counted: what goes before it, the call, and whose connection it is on."""
    return {
        "claim": (ground.send, ground.claim, ground.worker),
        "dispatch": (ground.add_task, ground.dispatch, ground.bus),
        "council wait": (ground.convene, ground.council_wait, ground.bus),
        "council report": (ground.close_round, ground.report, ground.bus),
    }


def measured(folder: Path, turns: int) -> dict[str, Any]:
    """The figures of each call, by its name, and whichever rooms a dispatch has entered."""
    ground = Ground(folder)
    found: dict[str, Any] = {}
    for name, (before, call, bus) in calls(ground).items():
        before()
        call()
        before()
        with watched(bus) as walk:
            call()
        found[name] = {**walk.counts(), "ms": timed(before, call, turns)}
        found[name]["entered"] = dict(sorted(walk.rooms.items()))
        found[name]["said"] = walk.statements
    found["worktree add"] = {"git": 1, "ms": add_worktrees(ground, turns)}
    return found


def timed(before: Callable[[], None], call: Callable[[], None], turns: int) -> float:
    """How many milliseconds a call takes."""
    taken = []
    for _ in range(turns):
        before()
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000 if taken else 0.0


def add_worktrees(ground: Ground, turns: int) -> float:
    """How many milliseconds `git worktree add` takes."""
    taken = [ground.add_worktree() for _ in range(turns)]
    return statistics.median(taken) * 1000 if taken else 0.0


def print_table(found: dict[str, Any]) -> None:
    print(f"{'':<16}" + "".join(f"{name:>12}" for name in (*COUNTED, "ms")))
    for name, figures in found.items():
        cells = [str(figures.get(column, "")) for column in COUNTED]
        print(f"{name:<16}" + "".join(f"{c:>12}" for c in (*cells, f"{figures['ms']:.1f}")))


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/walk", description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS, help=f"of the time (default {TURNS})")
    parser.add_argument("--json", action="store_true", help="all of it: rooms and statements, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = os.path.join(folder, "state")
        found = measured(Path(folder), options.turns)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_table(found)


if __name__ == "__main__":
    main()
