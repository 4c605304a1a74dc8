"""docs/leader.sh leads a run on a clone of this project, with workers that are shell scripts: they
edit the project's own files, and its own tests are the checks.

Where the tests run from a copy of the files without git, a history is made of them first.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import command_path, run
from support.runs import git
from support.timing import PATIENCE_SECONDS

PLAN = """\
run: {title: Two more functions}
tasks:
  - task: roots
    title: Find what waits for nothing
    checks: ['sh "$CHECK" tests/unit/test_orch_graph.py tests/unit/test_roots.py']
  - task: leaves
    title: Find what nothing waits for
    checks: ['sh "$CHECK" tests/unit/test_leaves.py']
  - task: changelog
    title: Tell the users
    checks: ["git diff --quiet HEAD~1 -- docs", "grep -q 'roots and leaves' CHANGELOG.md"]
  - task: both
    title: Try one with the other
    depends_on: [roots, leaves]
    checks:
      - sh "$CHECK" tests/unit/test_roots.py tests/unit/test_leaves.py tests/unit/test_both.py
  - task: report
    title: Report
    worktree: false
    depends_on: [both, changelog]
"""
# The files of the worktree stand in for the installed package.
CHECK = """\
set -eu
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/inbox_orch"
for part in inbox orch shared migrations; do ln -s "$PWD/$part" "$tree/inbox_orch/$part"; done
export PYTHONPATH=$tree PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 # what they do not need takes long
"$PYTHON" -P -m pytest -q -p no:cacheprovider --noconftest "$@"
"""
WORKER = """\
set -eu
commit() {
    git add --all
    git commit --quiet --message "$1"
}
title=$(head -n 1 "$INBOX_TASK_FILE")
case $title in
"Find what waits for nothing")
    printf '\\n\\ndef roots(nodes, edges):
    return [n for n in nodes if not edges.get(n)]\\n' >>orch/runs/graph.py
    printf 'from inbox_orch.orch.runs.graph import roots\\n\\n\\ndef test_roots():
    assert roots("abc", {"b": "a", "c": "b"}) == ["a"]\\n' >tests/unit/test_roots.py
    commit "Find what waits for nothing" ;;
"Find what nothing waits for")
    sign=in # wrong, until the check has said so
    if grep -q 'Earlier attempts' "$INBOX_TASK_FILE"; then sign='not in'; fi
    printf 'def leaves(nodes, edges):\\n    waited_for = {u for us in edges.values() for u in us}
    return [n for n in nodes if n %s waited_for]\\n' "$sign" >orch/runs/leaves.py
    printf 'from inbox_orch.orch.runs.leaves import leaves\\n\\n\\ndef test_leaves():
    assert leaves("abc", {"b": "a", "c": "b"}) == ["c"]\\n' >tests/unit/test_leaves.py
    commit "Find what nothing waits for" ;;
"Tell the users")
    answer=$(inbox wait-reply --wait 0 2>/dev/null | cut -f 2) || true
    if [ -z "$answer" ]; then
        inbox ask --body "Under which heading?" --option Added --option Changed >/dev/null
        exit 0
    fi
    printf '\\n### %s\\n\\n- roots and leaves\\n' "$answer" >>CHANGELOG.md
    commit "Tell the users" ;;
"Try one with the other")
    printf 'from inbox_orch.orch.runs.graph import roots
from inbox_orch.orch.runs.leaves import leaves\\n\\n\\ndef test_both():
    assert roots("a", {}) == leaves("a", {})\\n' >tests/unit/test_both.py
    commit "Try one with the other" ;;
Report)
    echo "all of it is there" ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path, root: Path) -> Path:
    """A clone of the project with its history, on `main`."""
    folder = tmp_path / "clone"
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True)
    if asked.returncode == 0:
        git(tmp_path, "clone", "--quiet", str(root), str(folder))
    else:
        sys.stdout.write("there is no git here: a history is made of the files\n")
        make_history(root, folder)
    git(folder, "checkout", "--quiet", "-B", "main")
    assert int(git(folder, "rev-list", "--count", "HEAD")) > 3
    return folder


def make_history(root: Path, folder: Path) -> None:
    """A commit for each part of the project."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    parts = ("shared", "migrations", "inbox", "orch", "script", "docs", "tests")
    files = [
        p.name for p in root.iterdir() if p.is_file() and p.name != ".git" and ".venv" not in p.name
    ]
    for part in (*files, *parts):  # .gitignore among the first
        subprocess.run(["cp", "-R", str(root / part), str(folder)], check=True)
        git(folder, "add", "--all", "--", part)
        if git(folder, "status", "--porcelain", "--", part):
            git(folder, "commit", "--quiet", "--message", f"Add {part}")


@contextlib.contextmanager
def workers(folder: Path, environment: dict[str, str], *names: str) -> Iterator[None]:
    """`inbox work` for each name."""
    command = ("--", "sh", str(folder.parent / "worker.sh"))
    running = [
        subprocess.Popen(
            [*(command_path(), "work", "--agent", name, "--mailbox", "workers"), *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        for name in names
    ]
    try:
        yield
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(PATIENCE_SECONDS)


def lead(root: Path, folder: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess":
    return subprocess.run(
        ["sh", str(root / "docs" / "leader.sh"), str(folder.parent / "plan.yaml"), "main"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )


def test_a_copy_of_the_project_without_git_gets_a_history(tmp_path: Path, root: Path):
    make_history(root, tmp_path / "made")

    assert int(git(tmp_path / "made", "rev-list", "--count", "HEAD")) > 10
    tracked = git(tmp_path / "made", "ls-files").splitlines()
    assert "orch/runs/graph.py" in tracked
    assert [name for name in tracked if "__pycache__" in name] == []


def test_the_leader_of_the_guide_leads_a_run_on_this_project(clone: Path, root: Path):
    aside = clone.parent
    for name, text in (("plan.yaml", PLAN), ("check.sh", CHECK), ("worker.sh", WORKER)):
        aside.joinpath(name).write_text(text)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "CHECK": str(aside / "check.sh"),
        "XDG_STATE_HOME": str(aside / "state"),
    }
    run("init", folder=clone)
    begun = git(clone, "rev-parse", "HEAD")

    with workers(clone, environment, "w1", "w2"):
        led = lead(root, clone, environment)
    assert led.returncode == 0, led.stdout[-4000:] + led.stderr
    assert "asks on changelog: Under which heading?" in led.stderr

    rows = {row["key"]: row for row in told(clone, environment, "status")["items"]}
    assert {row["state"] for row in rows.values()} == {"succeeded"}
    assert {key: row["attempts"] for key, row in rows.items() if row["attempts"] > 1} == {
        "leaves": 2
    }
    first = told(clone, environment, "attempt", "show", "leaves/1")["attempt"]
    assert (first["state"], "check" in first["reason"]) == ("rejected", True)
    assert_brought_together(clone, begun, environment)

    again = lead(root, clone, environment)
    assert again.returncode == 0, again.stderr
    assert told(clone, environment, "run", "list")["items"][0]["title"] == "Two more functions"
    assert len(told(clone, environment, "run", "list")["items"]) == 1


def told(folder: Path, environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """The data of an `orch --json` in the clone."""
    line = [command_path("orch"), *arguments, "--json"]
    value = json.loads(subprocess.check_output(line, cwd=folder, env=environment))
    data = value["data"]
    assert isinstance(data, dict)
    return data


def assert_brought_together(clone: Path, begun: str, environment: dict[str, str]) -> None:
    """`main` has all the work on top of what was there, and its tests pass."""
    git(clone, "merge-base", "--is-ancestor", begun, "main")
    assert (clone / "CHANGELOG.md").read_text().endswith("\n### Added\n\n- roots and leaves\n")
    assert git(clone, "status", "--porcelain") == ""
    git(clone, "fsck", "--strict", "--no-dangling")
    assert told(clone, environment, "doctor", "--verify")["problems"] == 0
    checked = subprocess.run(
        ["sh", environment["CHECK"], "tests/unit/test_both.py", "tests/unit/test_leaves.py"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
