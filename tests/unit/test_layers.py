"""The direction of the imports, and the places where SQL may stand.

The contracts are in pyproject.toml. Each is also tried on a copy of the sources with one import
too many, since a contract that misses its modules would be kept for ever.
"""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("inbox", "migrations", "orch", "shared")
CONTRACTS = [
    contract["id"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources, laid out as the package."""
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / "inbox_orch" / name, ignore=ignored)
    return tmp_path


def lint(tree: Path, *contracts: str) -> subprocess.CompletedProcess[str]:
    command = str(Path(sys.executable).parent / "lint-imports")
    named = [word for contract in contracts for word in ("--contract", contract)]
    return subprocess.run(
        [command, "--no-cache", "--no-logo", *named, str(ROOT / "pyproject.toml")],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )


def test_every_import_contract_is_kept(tree: Path):
    result = lint(tree)

    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in result.stdout


@pytest.mark.parametrize(
    "contract, module, line",
    [
        ("packages", "inbox/services/__init__.py", "from inbox_orch.orch import domain"),
        ("packages", "shared/errors.py", "import inbox_orch.inbox.domain"),
        ("packages", "shared/errors.py", "import inbox_orch.orch.domain"),
        ("packages", "migrations/__init__.py", "import inbox_orch.inbox.store"),
        ("inbox-layers", "inbox/services/__init__.py", "import inbox_orch.inbox.bus"),
        ("inbox-layers", "inbox/services/__init__.py", "import inbox_orch.inbox.cli"),
        ("inbox-layers", "inbox/store/__init__.py", "import inbox_orch.inbox.services"),
        ("inbox-layers", "inbox/domain/__init__.py", "from inbox_orch.inbox import store"),
        ("orch-layers", "orch/services/__init__.py", "import inbox_orch.orch.cli"),
        ("orch-layers", "orch/store/__init__.py", "import inbox_orch.orch.services"),
        ("orch-layers", "orch/git/__init__.py", "import inbox_orch.orch.store"),
        ("orch-layers", "orch/domain/__init__.py", "import inbox_orch.orch.git"),
        ("domain-libraries", "orch/domain/__init__.py", "import sqlite3"),
        ("domain-libraries", "orch/domain/__init__.py", "def late():\n    import click"),
        ("domain-libraries", "inbox/domain/__init__.py", "import inbox_orch.shared.database"),
        ("domain-io", "inbox/domain/__init__.py", "from os import environ"),
        ("domain-io", "orch/domain/__init__.py", "import os.path"),
        ("protocol", "shared/mcp_command.py", "import mcp"),
        ("protocol", "inbox/cli/mcp.py", "from mcp_types import Tool"),
        ("git", "orch/services/__init__.py", "from git import Repo"),
        ("git", "shared/errors.py", "import git.exc"),
    ],
)
def test_import_contract_notices_a_breach(tree: Path, contract: str, module: str, line: str):
    with (tree / "inbox_orch" / module).open("a") as file:
        file.write(f"\n{line}\n")

    result = lint(tree, contract)

    assert result.returncode == 1
    assert "BROKEN" in result.stdout


@pytest.mark.parametrize("package", ["inbox", "orch"])
def test_a_module_outside_the_layers_is_noticed(tree: Path, package: str):
    (tree / "inbox_orch" / package / "helpers.py").write_text("")

    result = lint(tree, f"{package}-layers")

    assert result.returncode == 1
    assert "helpers" in result.stdout


def may_hold_sql(path: Path) -> bool:
    folder = path.parts[0]
    return (
        folder == "migrations"
        or path.parts[1] == "store"
        or (
            folder == "shared"
            and path.stem
            in {
                *("committing", "connecting", "creating", "database", "events", "older"),
                *("requests", "transactions"),
            }
        )
        or path.parts[:2] == ("orch", "git")  # what it executes is git
    )


def executed_in(source: str) -> list[int]:
    """The lines on which something is executed, as on a connection or a cursor."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr in {"execute", "executemany", "executescript"}
    )


def test_sql_is_executed_by_the_stores_and_the_database_alone():
    sources = [path for name in SOURCES for path in (ROOT / name).rglob("*.py")]
    misplaced = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources
        if not may_hold_sql(path.relative_to(ROOT))
        for line in executed_in(path.read_text())
    ]

    assert misplaced == []


def test_search_for_sql_sees_every_way_of_executing_it():
    source = "c.execute('x')\nrun = db.connection.executemany\nexecute = 1\nself.c.executescript(s)"

    assert executed_in(source) == [1, 2, 4]
