"""What the commands that read a run load: documents and terminals only where they are used."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS

HEAVY = {
    *("asyncio", "git", "opentelemetry", "pydantic", "rich", "sqlite_utils", "textual"),
    *("ulid", "yaml"),
}
# Each takes 0.2 to 3 ms, and what only looks at a run needs none of them.
ELSEWHERE = {"difflib", "glob", "hashlib", "random", "shutil", "subprocess", "tempfile"}
OURS = "inbox_orch.orch."
# What plans, dispatches and integrates, and what has to do with councils and worktrees.
OTHER_WORK = {
    f"{OURS}{name}"
    for name in (
        "council.model",
        "git.integrating",
        "git.removal",
        "git.salvage",
        "git.worktrees",
        "attempts.adopt",
        "cleanup.clean",
        "council.views",
        "council.sit",
        "attempts.dispatch",
        "leader.drive",
        "integration.integrate",
        "integration.merge",
        "runs.planning",
        "attempts.provision",
        "cleanup.remove",
        "attempts.steer",
        "leader.wait",
        "council.rows",
    )
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Enterprise:
    enterprise = Enterprise(tmp_path_factory.mktemp("orch") / "project").tasks("a", "b")
    (enterprise.folder / "plan.yaml").write_text("tasks: [{task: c, title: C}]")
    return enterprise


def loaded(folder: Path, *arguments: str, ends_with: int = 0) -> set[str]:
    """The modules that a command has loaded."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", command_path("orch"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == ends_with, done.stderr
    return {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}


@pytest.mark.parametrize("line", [
    "status", "ready", "graph --format svg", "critical-path", "timeline", "run show", "run list",
    "blocked --json", "task show a",
])  # fmt: skip
def test_reading_a_run_loads_nothing_of_other_work(project, line):
    found = loaded(project.folder, *line.split())

    assert found & HEAVY == set()
    assert found & OTHER_WORK == set()
    # The middle of some durations is taken with it, and it draws lots.
    assert found & (ELSEWHERE - ({"random"} if line == "critical-path" else set())) == set()


@pytest.mark.parametrize("line", ["board", "board --json", "board --help"])
def test_a_board_without_a_terminal_loads_nothing_of_one(project, line):
    found = loaded(project.folder, *line.split(), ends_with=0 if "help" in line else 2)

    assert found & HEAVY == set()
    assert not [name for name in found if name.startswith(f"{OURS}board")]


def test_a_wait_loads_what_waits_and_nothing_that_runs_or_counts(project):
    found = loaded(project.folder, "wait", "--until", "change", "--wait", "0", ends_with=8)

    assert f"{OURS}leader.wait" in found
    assert found & (HEAVY | ELSEWHERE) == set()
    assert found & {f"{OURS}council.{name}" for name in ("prompts", "replies", "tally")} == set()


def test_what_is_named_as_other_work_is_there():
    assert [name for name in sorted(OTHER_WORK) if find_spec(name) is None] == []


def test_code_for_a_shell_loads_no_large_library(project):
    assert loaded(project.folder, "completion", "bash") & HEAVY == set()


def test_only_a_document_loads_what_reads_documents(project):
    found = loaded(project.folder, "plan", "import", "plan.yaml")

    assert found & HEAVY == {"pydantic", "ulid", "yaml"}


def test_a_drive_loads_nothing_to_export_with(project, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")

    found = loaded(project.folder, "drive", "--wait", "0", ends_with=9)  # plan.yaml is uncommitted
    assert found & {"logging", "opentelemetry", f"{OURS}leader.otlp"} <= {"logging"}
    assert not any(name.startswith("opentelemetry.") for name in found)
