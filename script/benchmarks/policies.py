"""What judging a large change costs: its facts, and what a policy says, beside `git status`.

A repository of many files, all of which are changed, and one to which all are added. Each is
judged by the floor alone and by a policy with rules about paths, sizes and secrets; the turns
take turns, and the best of each counts, beside that of git in the same minute.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, table
from worktrees import git_version

PROMISED_MS = 500.0
RULES = {
    "allow_paths": ["folder*/"],
    "forbid_paths": ["**/secret/**", "*.pem"],
    "max_files": 10**6,
    "max_lines": 10**6,
    "max_patch_bytes": 10**9,
}


def main() -> None:
    """Measure, and report."""
    options_parser = parser((__doc__ or "").splitlines()[0])
    options_parser.add_argument("--files", type=int, default=20_000)
    options_parser.add_argument("--turns", type=int, default=7)
    options = options_parser.parse_args()
    if options.quick:
        options.files, options.turns = 200, 1
    facts = machine() | {"git": git_version()}
    with scratch() as folder:
        say(f"a repository of {options.files} files, {options.turns} turns")
        best = measured(Changed(folder / "project", options.files), options.turns)
    figures = {
        "benchmark": "policies",
        "machine": facts,
        "files": options.files,
        "ms": best,
        "promised_ms": PROMISED_MS,
        "kept": max(best.values()) <= PROMISED_MS,
    }
    report(options, figures, as_text(figures))
    sys.exit(0 if options.quick or figures["kept"] else 1)


class Changed:
    """A repository in which every file has changed once since the first commit."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet")
        self.empty = self._git("hash-object", "-t", "tree", "/dev/null")
        self.first = self._committed(files, "")
        self.second = self._committed(files, "another line\n")

    def _committed(self, files: int, more: str) -> str:
        for number in range(files):
            path = self.folder / f"folder{number % 200}" / f"file{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"line {number}\nand some more of it\n{more}")
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "x")
        return self._git("rev-parse", "HEAD")

    def _git(self, *words: str) -> str:
        named = ("-c", "user.name=W", "-c", "user.email=w@x", "-c", "gc.auto=0")
        done = subprocess.run(
            ["git", *named, *words], cwd=self.folder, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().strip()

    def status(self) -> None:
        """What is compared with."""
        self._git("status", "--porcelain")


def measured(changed: Changed, turns: int) -> dict[str, float]:
    """The best of each, in milliseconds."""
    from inbox_orch.orch.git.facts import facts
    from inbox_orch.orch.git.repository import Repository
    from inbox_orch.orch.patches.examine import examine
    from inbox_orch.orch.patches.policy import Layer, Policy
    from inbox_orch.orch.runs.policies import layers_of

    repository, floor = Repository(str(changed.folder)), Policy()
    policy = Policy(tuple(Layer(*named) for named in layers_of(RULES)))
    first, second, empty = changed.first, changed.second, changed.empty
    for base in (first, empty):
        assert examine(repository, base, second, policy).outcome == "allowed"
    jobs: dict[str, Callable[[], Any]] = {
        "git status": changed.status,
        "facts, all changed": lambda: facts(repository, first, second),
        "floor, all changed": lambda: examine(repository, first, second, floor),
        "policy, all changed": lambda: examine(repository, first, second, policy),
        "floor, all added": lambda: examine(repository, empty, second, floor),
        "policy, all added": lambda: examine(repository, empty, second, policy),
    }
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(turns):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            best[name] = min(best[name], (time.perf_counter() - began) * 1000)
    return best


def as_text(figures: dict[str, Any]) -> str:
    """A table, and whether the promise is kept."""
    status = figures["ms"]["git status"]
    rows = [(name, ms, ms / status) for name, ms in figures["ms"].items()]
    kept = "kept" if figures["kept"] else "NOT KEPT"
    promise = f"at most {figures['promised_ms']:.0f} ms each: {kept}"
    return f"{table(('what', 'ms', 'times git status'), rows)}\n\n{promise}"


if __name__ == "__main__":
    main()
