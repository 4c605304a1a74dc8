"""What judging a large change costs: its facts, and what a policy says, beside `git status`.

A repository of many files, of which some or all are changed, each at one end or in two places, and
one to which all are added. Each is judged by the floor alone and by a policy with rules about
paths, sizes and secrets; the turns take turns, and the best of each counts, beside that of git in
the same minute. What git takes to read and to compare the same objects is told besides.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, table
from worktrees import git_version

PROMISED_MS = 500.0
SOME = (20, 200, 2000)
BESIDE = "git "
"""What begins so is there to compare with, and no promise of ours."""
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
        "kept": max(ms for name, ms in best.items() if not name.startswith(BESIDE)) <= PROMISED_MS,
    }
    report(options, figures, as_text(figures))
    sys.exit(0 if options.quick or figures["kept"] else 1)


class Changed:
    """A repository in which every file has changed once since the first commit, and commits on that
    one in which some have."""

    def __init__(self, folder: Path, files: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet")
        self.empty = self._git("hash-object", "-t", "tree", "/dev/null")
        self.places = self._committed(files, "first line\n{}\nlast line\n")
        self.first = self._committed(files, "line {}\nand some more of it\n")
        self.second = self._committed(files, "line {}\nand some more of it\nanother line\n")
        self.some = {number: self._partly(number) for number in SOME if number < files}

    def _committed(self, files: int, content: str) -> str:
        for number in range(files):
            path = self.folder / f"folder{number % 200}" / f"file{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(content.format(number))
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", "x")
        return self._git("rev-parse", "HEAD")

    def _partly(self, number: int) -> str:
        """A commit on the first one with so many files of the second."""
        entries = self._git("ls-tree", "-r", self.second).splitlines()
        within = {"GIT_INDEX_FILE": str(self.folder / ".git" / "partly")}
        self._git("read-tree", self.first, within=within)
        given = "\n".join(entries[:number]) + "\n"
        self._git("update-index", "--index-info", within=within, given=given)
        return self.commit(self._git("write-tree", within=within), self.first)

    def commit(self, tree: str, *parents: str) -> str:
        """What a worker hands in: one commit."""
        return self._git("commit-tree", "-m", "x", tree, *(f"-p{parent}" for parent in parents))

    def _git(self, *words: str, within: dict[str, str] | None = None, given: str = "") -> str:
        named = ("-c", "user.name=W", "-c", "user.email=w@x", "-c", "gc.auto=0")
        done = subprocess.run(
            ["git", *named, *words],
            cwd=self.folder,
            env=os.environ | (within or {}),
            input=given.encode(),
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout.decode().strip()

    def status(self) -> None:
        """What is compared with."""
        self._git("status", "--porcelain")

    def told(self, *kind: str) -> None:
        """What git itself tells of the change."""
        self._git("diff-tree", "-r", *kind, self.first, self.second)

    def blobs(self) -> str:
        """The names of all that was changed, before and after."""
        raw = self._git("diff-tree", "-r", "--raw", "--no-abbrev", self.first, self.second)
        return "".join(f"{name}\n" for line in raw.splitlines() for name in line.split()[2:4])

    def read(self, names: str) -> None:
        """What it takes git to read these."""
        self._git("cat-file", "--batch", "--buffer", given=names)


def measured(changed: Changed, turns: int) -> dict[str, float]:
    """The best of each, in milliseconds."""
    from inbox_orch.orch.git.facts import facts
    from inbox_orch.orch.git.repository import Repository
    from inbox_orch.orch.patches.examine import examine
    from inbox_orch.orch.patches.policy import Layer, Policy
    from inbox_orch.orch.runs.policies import layers_of

    repository, floor = Repository(str(changed.folder)), Policy()
    policy = Policy(tuple(Layer(*named) for named in layers_of(RULES)))
    first, second, names = changed.first, changed.second, changed.blobs()
    several = {f"{number} changed": (first, tree) for number, tree in changed.some.items()}
    several["all changed"] = (first, second)
    tree = f"{second}^{{tree}}"
    several["all changed in two places"] = (changed.places, changed.commit(tree, changed.places))
    several["all added"] = (changed.empty, changed.commit(tree))
    for base, head in several.values():
        assert examine(repository, base, head, policy).outcome == "allowed"
    jobs: dict[str, Callable[[], Any]] = {
        "git status": changed.status,
        "git diff-tree --raw": lambda: changed.told("--raw"),
        "git diff-tree --numstat": lambda: changed.told("--numstat"),
        "git diff-tree -p": lambda: changed.told("-p"),
        "git cat-file --batch": lambda: changed.read(names),
        "facts, all changed": lambda: facts(repository, first, second),
    }
    for name, between in several.items():
        jobs[f"floor, {name}"] = partial(examine, repository, *between, floor)
        jobs[f"policy, {name}"] = partial(examine, repository, *between, policy)
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
