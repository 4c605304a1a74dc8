"""`orch doctor` says what helps against what it has found, and nothing that does not."""

import ast
import shutil
from pathlib import Path

import pytest

from inbox_orch.orch.cli import doctor
from support.orch_matrix import Enterprise

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def test_a_repository_that_was_moved_is_to_be_put_back(project: Enterprise, tmp_path: Path):
    project.dispatched()
    moved = tmp_path / "moved"
    project.folder.rename(moved)

    error = project.orch("doctor", "--json", folder=moved).error

    assert error["message"].endswith("found a problem: repositories")
    assert "put the repository back" in error["hint"]
    assert "reconcile" not in error["hint"]
    moved.rename(project.folder)
    assert project.orch("doctor", "--json").code == 0


def test_a_worktree_that_is_gone_is_to_be_put_back_or_given_up(project: Enterprise):
    shutil.rmtree(project.dispatched()["worktree"])

    error = project.orch("doctor", "--json").error

    assert error["message"].endswith("found a problem: worktrees")
    assert "mount" in error["hint"] and "orch cancel" in error["hint"]
    project.orch("cancel", "a")
    assert project.orch("doctor", "--json").code == 0


def test_for_every_check_that_finds_problems_there_is_a_remedy():
    tree = ast.parse((ROOT / "orch" / "leader" / "doctor.py").read_text())
    finding = {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and any(isinstance(a, ast.Name) and a.id == "PROBLEM" for a in call.args)
    }
    assert finding == set(doctor._REMEDIES)
