"""Worktrees: what making them costs beside git's own way of doing the same.

Each part has a module of its own, makes its own repository, and says what may be exceeded.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import _dispatching
from common import machine, parser, report, say, scratch, table


def main() -> None:
    """Measure, and report."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--files", type=int, default=20_000, help="in the repository")
    options_parser.add_argument("--rounds", type=int, default=15)
    options = options_parser.parse_args()
    if options.quick:
        options.files, options.rounds = 200, 1
    facts = machine() | {"git": git_version()}
    with scratch() as folder:
        say(f"a repository of {options.files:,} files")
        repository = make_repository(folder / "dispatching", options.files)
        say("dispatch beside git worktree add")
        dispatching = _dispatching.measure(repository, options.rounds)
    figures = {
        "benchmark": "worktrees",
        "machine": facts,
        "files": options.files,
        "dispatching": dispatching,
    }
    report(options, figures, as_text(figures))
    sys.exit(0 if options.quick or is_kept(dispatching) else 1)


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


LIMITS = _dispatching.LIMITS


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
        "at most",
        "git, processor ms",
        "orch, processor ms",
    )
    title = f"{figures['files']:,} files; medians, git's worktrees one after the other"
    return f"{title}\n\n{table(headings, rows)}"


if __name__ == "__main__":
    main()
