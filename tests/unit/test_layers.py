"""The direction of the imports.

The contracts are in pyproject.toml. Each is also tried on a copy of the sources with one import
too many, since a contract that misses its modules would be kept for ever.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.once import once

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("inbox", "migrations", "orch", "shared")
CONTRACTS = [
    contract["id"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
]
BREACHES = [
    # contract, module, line
    ("packages", "inbox/services/__init__.py", "from inbox_orch.orch import runs"),
    ("packages", "shared/errors.py", "import inbox_orch.inbox.domain"),
    ("packages", "shared/errors.py", "import inbox_orch.orch.runs"),
    ("packages", "migrations/__init__.py", "import inbox_orch.inbox.store"),
    ("inbox-layers", "inbox/services/__init__.py", "import inbox_orch.inbox.bus"),
    ("inbox-layers", "inbox/services/__init__.py", "import inbox_orch.inbox.cli"),
    ("inbox-layers", "inbox/store/__init__.py", "import inbox_orch.inbox.services"),
    ("inbox-layers", "inbox/domain/__init__.py", "from inbox_orch.inbox import store"),
    ("orch-wings", "orch/leader/__init__.py", "import inbox_orch.orch.cli"),
    ("orch-wings", "orch/leader/__init__.py", "import inbox_orch.orch.board.view"),
    ("orch-wings", "orch/council/__init__.py", "import inbox_orch.orch.leader"),
    ("orch-wings", "orch/attempts/__init__.py", "import inbox_orch.orch.council.rows"),
    ("orch-wings", "orch/runs/__init__.py", "import inbox_orch.orch.attempts"),
    ("orch-wings", "orch/git/__init__.py", "import inbox_orch.orch.runs"),
    ("no-circles", "orch/git/__init__.py", "def late():\n    import inbox_orch.orch.views"),
    ("no-circles", "shared/shell/output.py", "from . import commandline"),
    ("domain-libraries", "orch/runs/states.py", "import sqlite3"),
    ("domain-libraries", "orch/integration/rules.py", "def late():\n    import click"),
    (
        "domain-libraries",
        "inbox/domain/__init__.py",
        "import inbox_orch.shared.store.sqlite.database",
    ),
    ("domain-io", "inbox/domain/__init__.py", "from os import environ"),
    ("domain-io", "orch/runs/graph.py", "import os.path"),
    ("protocol", "shared/tools/mcp_command.py", "import mcp"),
    ("protocol", "inbox/cli/mcp.py", "from mcp_types import Tool"),
    ("board", "orch/leader/board.py", "def late():\n    from textual.app import App"),
    ("board", "orch/cli/board.py", "import textual"),
    ("schemas", "inbox/services/holding.py", "import jsonschema"),
    ("telemetry", "orch/leader/trace.py", "def late():\n    import opentelemetry.sdk"),
    ("git", "orch/views/__init__.py", "from git import Repo"),
    ("git", "shared/errors.py", "import git.exc"),
]
# Each in a fork, so that the linter is loaded once.
LINTS = """\
import json, os, sys
from importlinter import cli

sys.path.insert(0, os.getcwd())
found = {}
for contract, module, line in json.loads(sys.argv[2]):
    path = os.path.join("inbox_orch", module)
    with open(path, "r+") as file:
        before = file.read()
        file.write(f"\\n{line}\\n")
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        os.dup2(theirs, 1)
        sys.exit(cli.lint_imports(sys.argv[1], (contract,), no_cache=True, no_logo=True))
    os.close(theirs)
    with open(ours) as said:
        output = said.read()
    _, status = os.waitpid(process, 0)
    found["-".join((contract, module, line))] = [os.waitstatus_to_exitcode(status), output]
    with open(path, "w") as file:
        file.write(before)
print(json.dumps(found))
"""


def copy_sources(folder: Path) -> Path:
    """A copy of the sources, laid out as the package."""
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "inbox_orch" / name, ignore=ignored)
    return folder


PURE = ("domain-libraries", "domain-io")
"""The contracts that list the modules which are pure."""


@pytest.mark.parametrize("contract", PURE)
def test_what_calls_itself_pure_is_held_to_it(contract: str):
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (listed,) = [set(c["source_modules"]) for c in told if c["id"] == contract]
    says_so = set()
    for path in (ROOT / "orch").rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        if re.search(r"\bPure\b", docstring):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            says_so.add("inbox_orch." + name.removesuffix(".__init__"))

    # The board draws values of the leader's, which stands on the database.
    says_so = {name for name in says_so if not name.startswith("inbox_orch.orch.board.")}
    held = {name for name in says_so if any(f"{name}.".startswith(f"{each}.") for each in listed)}
    assert says_so - held == set()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources for a test."""
    return copy_sources(tmp_path)


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """What the linter says to each breach: its exit code, and its words."""
    folder = once(tmp_path_factory, "linted", lint_breaches)
    return json.loads((folder / "said.json").read_text())


def lint_breaches(folder: Path) -> None:
    copy_sources(folder)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LINTS, str(ROOT / "pyproject.toml"), json.dumps(BREACHES)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (folder / "said.json").write_text(done.stdout)


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


@pytest.mark.parametrize("breach", BREACHES, ids="-".join)
def test_import_contract_notices_a_breach(linted: dict[str, list], breach: tuple[str, str, str]):
    code, output = linted["-".join(breach)]

    assert code == 1
    assert "BROKEN" in output


@pytest.mark.parametrize("package, contract", [("inbox", "inbox-layers"), ("orch", "orch-wings")])
def test_a_module_outside_the_layers_is_noticed(tree: Path, package: str, contract: str):
    (tree / "inbox_orch" / package / "helpers.py").write_text("")

    result = lint(tree, contract)

    assert result.returncode == 1
    assert "helpers" in result.stdout
