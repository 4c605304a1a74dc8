"""The seam of the store: SQLite offers what it asks for; the suite for engines knows no more."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TYPED = """
from inbox_orch.shared.store import engine
from inbox_orch.shared.store.sqlite import database, sessions

def store(it: database.Database) -> engine.Engine:
    return it

def snapshot(it: sessions.Snapshot) -> engine.Session:
    return it

def transaction(it: sessions.Transaction) -> engine.Transaction:
    return it

def wrong(it: sessions.Snapshot) -> engine.Engine:
    return it
"""
# The lock file is git's, too, and is tested there with the class that takes it.
ALLOWED = {"inbox_orch.shared.store.sqlite.gate"}


def test_a_database_is_an_engine_and_its_sessions_are_sessions(tmp_path: Path):
    pytest.importorskip("mypy")
    path = tmp_path / "typed.py"
    path.write_text(TYPED)

    command = [sys.executable, "-P", "-m", "mypy", "--strict", "--no-pretty", str(path)]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    (wrong,) = [line for line in checked.stdout.splitlines() if "error:" in line]
    assert 'got "Snapshot", expected "Engine"' in wrong


def known_of_sqlite(source: str) -> list[str]:
    """What a test says that only one engine has: its modules, its connection, its pragmas."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if "sqlite" in alias.name]
        elif isinstance(node, ast.ImportFrom) and "sqlite" in f".{node.module}":
            found.append(str(node.module))
        elif isinstance(node, ast.Attribute) and node.attr == "connection":
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and str(node.value).startswith("PRAGMA"):
            found.append(str(node.value))
    return [name for name in found if name not in ALLOWED]


def test_the_conformance_suite_knows_no_engine():
    suite = sorted((ROOT / "tests" / "store").glob("*.py"))
    found = {path.name: known_of_sqlite(path.read_text()) for path in suite}

    assert len(suite) > 50
    assert {name: known for name, known in found.items() if known} == {}


def test_the_search_for_what_one_engine_has_finds_it():
    source = (
        "import sqlite3\nfrom sqlite import outside\nbus.database.connection\n"
        "from inbox_orch.shared.store.sqlite import bells\ntx.all('PRAGMA user_version')"
    )

    assert len(known_of_sqlite(source)) == 5
