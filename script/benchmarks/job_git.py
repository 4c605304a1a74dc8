"""Job of the comparison: giving out worktrees, beside git's own way of making them."""

import statistics
import subprocess
from pathlib import Path
from typing import Any

from _dispatching import AT_ONCE, Places
from common import Turns, say
from results import Result, Row, as_row, result
from tool import Refused
from tools import PacCollab
from worktrees import make_repository

NOTES = {
    "orch dispatch": "writes the files with a process for each processor (`checkout.workers`)",
    "git worktree add": "writes the files with one process, as git does unless told otherwise",
    "pac-collab": "fetches from `origin` first; writes the files with one process",
}
NO_WORKTREES = "makes no worktrees"
WITHOUT = (
    *("agent-collab", "agent-lanes", "agent-mail", "fleetwright"),
    *("simplebroker", "huey", "litequeue", "persist-queue"),
)


class _InRepository(PacCollab):
    """pac-collab in a repository that is there already; it wants an `origin` to fetch from."""

    def set_up(self) -> None:
        git = ("git", "-C", str(self.folder / "repo"))
        for words in (("push", "--quiet", "origin", "main"), ("fetch", "--quiet", "origin")):
            subprocess.run([*git, *words], check=True, capture_output=True)


def dispatch(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """One worktree and eight at once, everybody in turn."""
    files, number = (50, 2) if quick else (500, 13)
    say(f"a repository of {files:,} files")
    places = Places(make_repository(folder / "project", files))
    contest = _Contest(places, _pac_collab(folder, bin_folder, files))
    for attempts in (1, AT_ONCE):
        say(f"{attempts} at once")
        for turn in Turns(number, 20 if attempts == 1 else 60):
            # The first one pays for what only the first one does.
            contest.turn(attempts, number=turn)
    one, eight = (min(len(s) for (_, n), s in contest.seconds.items() if n == attempts)
                  for attempts in (1, AT_ONCE))  # fmt: skip
    return [
        result(
            "dispatch",
            title="Giving out a task with a worktree, beside `git worktree add`",
            did=(
                f"Whole processes on a repository of {files:,} files; medians of {one} turns of one"
                f" and {eight} turns of eight, each turn in another order. Eight are one"
                " `orch dispatch`, and of the others eight commands, one after the other. The"
                " repository is small so that there is time for more turns; for 20,000 files see"
                " Worktrees. Eight at once decides who is ahead; *level* is also who was faster"
                " in some turns and slower in others, unless five of six agree."
            ),
            unit="ms a worktree",
            columns={"1": "one: ms", str(AT_ONCE): "eight at once: ms each"},
            compared=["1", str(AT_ONCE)],
            rows=contest.rows() + [as_row(name, cannot=NO_WORKTREES) for name in WITHOUT],
            commands=contest.commands(),
            raw={f"{name}, {n}": seconds for (name, n), seconds in contest.seconds.items()},
            turns={name: s for (name, n), s in contest.seconds.items() if n == AT_ONCE},
        )
    ]


def in_turn(names: list[str], turn: int) -> list[str]:
    """The same names in another order, so that after every second turn each has been before
    each other one as often as behind it."""
    first = turn // 2 % len(names)
    order = names[first:] + names[:first]
    return order[::-1] if turn % 2 else order


class _Contest:
    """The turns of everybody who makes worktrees."""

    def __init__(self, places: Places, pac: PacCollab | None) -> None:
        self.seconds: dict[tuple[str, int], list[float]] = {}
        self._places = places
        self._pac = pac
        self._fallen = ""

    def turn(self, attempts: int, *, number: int) -> None:
        """One turn of each with so many worktrees, in an order of its own; the first does
        not count."""
        acts = {
            "orch dispatch": lambda: self._places.dispatch(attempts).seconds,
            "git worktree add": lambda: self._places.add(attempts).seconds,
        }
        if (pac := self._pac) is not None and not self._fallen:
            acts["pac-collab"] = lambda: _acquired(pac, attempts)
        for name in in_turn(list(acts), number):
            try:
                seconds = acts[name]()
            except Refused as error:
                self._fallen = str(error)
                continue
            if number > 0:
                self.seconds.setdefault((name, attempts), []).append(seconds)

    def rows(self) -> list[Row]:
        """Milliseconds a worktree."""
        rows = []
        for name in (name for name in NOTES if (name, 1) in self.seconds):
            values = {
                str(n): statistics.median(self.seconds[name, n]) * 1000 / n
                for n in (1, AT_ONCE)
                if (name, n) in self.seconds
            }
            rows.append(as_row(name, values, note=NOTES[name]))
        if self._fallen:
            rows.append(as_row("pac-collab", cannot=f"failed: {self._fallen}"))
        return rows

    def commands(self) -> dict[str, Any]:
        """The command lines."""
        return {
            "orch dispatch": "orch dispatch TASK… --json",
            "git worktree add": "git worktree add --quiet -b BRANCH PATH main",
            "pac-collab": self._pac.commands.get("claim") if self._pac else None,
        }


def _pac_collab(folder: Path, bin_folder: str | None, files: int) -> PacCollab | None:
    """The tool with a repository of its own, as large."""
    if bin_folder is None or not Path(f"{bin_folder}pac-collab").exists():
        return None
    place = folder / "pac"
    repository = make_repository(place / "repo", files)
    origin = place / "origin.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(origin)], check=True)
    subprocess.run(["git", "remote", "add", "origin", str(origin)], cwd=repository, check=True)
    tool = _InRepository(place, bin_folder)
    tool.set_up()
    return tool


def _acquired(pac: PacCollab, attempts: int) -> float:
    """Seconds of so many `acquire`; what they have made is taken away again."""
    seconds, taken = 0.0, []
    for _ in range(attempts):
        spent, name = pac.timed("claim", "worker")
        seconds += spent
        taken.append(name)
    for name in taken:
        pac.done(name, "worker")
    subprocess.run(["sync"], check=True)
    return seconds
