"""Worktrees: what making and salvaging them costs beside git's own way of doing the same.

Each part has a module of its own, makes its own repository, and says what may be exceeded.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import _dispatching
import _integrating
import _salvage
from common import machine, parser, report, say, scratch, table


def main() -> None:
    """Measure, and report."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--files", type=int, default=20_000, help="in the repository")
    options_parser.add_argument("--rounds", type=int, default=15)
    options = options_parser.parse_args()
    integrated = INTEGRATED
    if options.quick:
        options.files, options.rounds, integrated = 200, 1, 2
    facts = machine() | {"git": git_version()}
    with scratch() as folder:
        say(f"a repository of {options.files:,} files")
        repository = make_repository(folder / "dispatching", options.files)
        say("dispatch beside git worktree add")
        dispatching = _dispatching.measure(repository, options.rounds)
        say("salvage")
        repository = make_repository(folder / "salvage", options.files)
        salvage = _salvage.measure(repository, min(options.rounds, SALVAGES))
        say("integrate beside git merge-tree")
        repository = make_repository(folder / "integrating" / "project", options.files)
        integrating = _integrating.measure(repository, integrated)
    figures = {
        "benchmark": "worktrees",
        "machine": facts,
        "files": options.files,
        "dispatching": dispatching,
        "salvage": salvage,
        "integrating": integrating,
    }
    report(options, figures, as_text(figures))
    kept = is_kept(dispatching) and salvage["salvage_ms"] <= salvage["limit_ms"]
    sys.exit(0 if options.quick or kept else 1)


def make_repository(folder: Path, files: int) -> Path:
    """A repository with so many files of about 2 KiB, a hundred in a folder, in one commit."""
    folder.mkdir(parents=True)
    for number in range(files):
        path = folder / f"part-{number // 100:04}" / f"file-{number:06}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"line of file {number}\n" * 100)
    for words in (
        ("init", "--quiet", "--initial-branch", "main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "Begin"),
        ("repack", "-a", "-d", "--quiet"),
    ):
        named = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
        subprocess.run(["git", *named, "-c", "gc.auto=0", *words], cwd=folder, check=True)
    return folder


def git_version() -> str:
    """Git's own name for its release."""
    text = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    return text.strip().removeprefix("git version ")


def is_kept(dispatching: dict[str, Any]) -> bool:
    """Whether no ratio is above what is promised."""
    return all(dispatching[name]["ratio"] <= allowed for name, allowed in LIMITS.items())


INTEGRATED = 10
LIMITS = _dispatching.LIMITS
SALVAGES = 5


def as_text(figures: dict[str, Any]) -> str:
    """One table a part."""
    parts = figures["dispatching"]
    rows = [
        (
            part["attempts"],
            len(part["orch_turns"]),
            part["git_ms"],
            part["orch_ms"],
            part["ratio"],
            max(part["ratios_of_turns"]),
            LIMITS[name],
            part["git_processor_ms"],
            part["orch_processor_ms"],
        )
        for name, part in ((name, parts[name]) for name in LIMITS)
    ]
    headings = (
        "worktrees",
        "turns",
        "git worktree add, ms",
        "orch dispatch, ms",
        "ratio",
        "worst turn",
        "at most",
        "git, processor ms",
        "orch, processor ms",
    )
    title = f"{figures['files']:,} files; medians, git's worktrees one after the other"
    return "\n\n".join(
        (
            f"{title}\n\n{table(headings, rows)}",
            salvage_text(figures["salvage"]),
            integrating_text(figures["integrating"]),
        )
    )


def integrating_text(part: dict[str, Any]) -> str:
    """The table of integration."""
    shown = ("attempts", "bare_seconds", "work_seconds", "beyond_seconds")
    headings = ("integrated", "git's own merges, s", "orch integrate, s", "beyond (at most 1), s")
    return table(headings, [tuple(part[name] for name in shown)])


def salvage_text(part: dict[str, Any]) -> str:
    """The table of salvage."""
    shown = ("git_status_ms", "look_ms", "salvage_ms", "limit_ms", "slowest_ms", "command_ms")
    headings = (
        "git status, ms",
        "look, ms",
        "salvage, ms",
        "at most",
        "slowest, ms",
        "orch cleanup --force, ms",
    )
    return table(headings, [tuple(part[name] for name in shown)])


if __name__ == "__main__":
    main()
