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
    files, number = (50, 2) if quick else (2_000, 9)
    say(f"a repository of {files:,} files")
    places = Places(make_repository(folder / "project", files))
    contest = _Contest(places, _pac_collab(folder, bin_folder, files))
    for attempts in (1, AT_ONCE):
        say(f"{attempts} at once")
        for turn in Turns(number, 20 if attempts == 1 else 60):
            # The first one pays for what only the first one does.
            contest.turn(attempts, counts=turn > 0)
    turns = min(map(len, contest.seconds.values()))
    return [
        result(
            "dispatch",
            title="Giving out a task with a worktree, beside `git worktree add`",
            did=(
                f"Whole processes on a repository of {files:,} files, at least {turns} turns each;"
                " eight are one `orch dispatch`, and eight commands of the others. The repository"
                " is small so that the comparison ends in time; for 20,000 files see Worktrees."
            ),
            unit="ms a worktree",
            columns={"1": "one: ms", str(AT_ONCE): "eight at once: ms each"},
            compared=["1", str(AT_ONCE)],
            rows=contest.rows() + [as_row(name, cannot=NO_WORKTREES) for name in WITHOUT],
            commands=contest.commands(),
            raw={f"{name}, {n}": seconds for (name, n), seconds in contest.seconds.items()},
        )
    ]


class _Contest:
    """The turns of everybody who makes worktrees."""

    def __init__(self, places: Places, pac: PacCollab | None) -> None:
        self.seconds: dict[tuple[str, int], list[float]] = {}
        self._places = places
        self._pac = pac
        self._fallen = ""

    def turn(self, attempts: int, *, counts: bool) -> None:
        """One turn of each with so many worktrees."""
        found = {
            "orch dispatch": self._places.dispatch(attempts).seconds,
            "git worktree add": self._places.add(attempts).seconds,
        }
        if self._pac is not None and not self._fallen:
            try:
                found["pac-collab"] = _acquired(self._pac, attempts)
            except Refused as error:
                self._fallen = str(error)
        for name, seconds in found.items() if counts else ():
            self.seconds.setdefault((name, attempts), []).append(seconds)

    def rows(self) -> list[Row]:
        """Milliseconds a worktree."""
        rows = []
        for name in dict.fromkeys(name for name, _ in self.seconds):
            values = {
                str(n): statistics.median(self.seconds[name, n]) * 1000 / n
                for n in (1, AT_ONCE)
                if (name, n) in self.seconds
            }
            note = "fetches from `origin` first" if name == "pac-collab" else None
            rows.append(as_row(name, values, note=note))
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
