"""What the commands that read a run load: documents and terminals only where they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS

HEAVY = {"pydantic", "yaml", "rich", "sqlite_utils", "asyncio"}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Enterprise:
    enterprise = Enterprise(tmp_path_factory.mktemp("orch") / "project").tasks("a", "b")
    (enterprise.folder / "plan.yaml").write_text("tasks: [{task: c, title: C}]")
    return enterprise


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The heavy modules that a command has loaded."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", command_path("orch"), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    names = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    return names & HEAVY


@pytest.mark.parametrize("line", [
    "status", "ready", "graph", "graph --format svg", "critical-path", "timeline", "run show",
    "blocked --json", "completion bash",
])  # fmt: skip
def test_reading_a_run_loads_no_large_library(project, line):
    assert loaded(project.folder, *line.split()) == set()


def test_only_a_document_loads_what_reads_documents(project):
    assert loaded(project.folder, "plan", "import", "plan.yaml") == {"pydantic", "yaml"}
