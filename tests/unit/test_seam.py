"""The seam of the store: SQLite offers what it asks for; the suite for engines knows no more."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from inbox_orch.shared.store.engine import Admin
from inbox_orch.shared.store.sqlite.admin import Admin as SqliteAdmin

ROOT = Path(__file__).resolve().parents[2]

TYPED = """
from inbox_orch.shared.store import engine
from inbox_orch.shared.store.sqlite import admin as sqlite_admin
from inbox_orch.shared.store.sqlite import database, sessions

def store(it: database.Database) -> engine.Engine:
    return it

def snapshot(it: sessions.Snapshot) -> engine.Session:
    return it

def transaction(it: sessions.Transaction) -> engine.Transaction:
    return it

def care(it: sqlite_admin.Admin) -> engine.Admin:
    return it

def wrong(it: sessions.Snapshot) -> engine.Engine:
    return it
"""
# Where a database is made or opened: there it is chosen which engine that is. All others have an
# `Engine` in hand. The steps of the schema are SQLite's.
OPENING = {
    "inbox/bus.py",
    "inbox/cli/init.py",
    "inbox/cli/where.py",
    "inbox/services/desk.py",
    "migrations/apply.py",
    "orch/cli/parts/database.py",
}


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
    return found


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


def imports_of_sqlite(path: Path) -> list[str]:
    """What a module takes from the folder of the engine, wherever in it that is said."""
    package = ["inbox_orch", *path.relative_to(ROOT).with_suffix("").parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: -node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and "store.sqlite" in str(node.value):
            found.append(str(node.value))
    return [name for name in found if f"{name}.".startswith("inbox_orch.shared.store.sqlite.")]


def test_only_what_opens_a_database_knows_which_engine_it_has():
    knowing = {
        str(path.relative_to(ROOT))
        for top in ("inbox", "migrations", "orch", "shared")
        for path in (ROOT / top).rglob("*.py")
        if "shared/store/sqlite" not in str(path) and imports_of_sqlite(path)
    }

    assert knowing == OPENING


def test_the_search_for_imports_of_the_engine_sees_each_way_of_writing_them(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / "shared" / "store" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        "import inbox_orch.shared.store.sqlite.log\nfrom . import sqlite\n"
        "from .sqlite import care\nfrom .sqlite.gate import a\nfrom ..store import sqlite as s\n"
        "def f():\n    from inbox_orch.shared.store import sqlite\n"
        "from . import layout\nLater('inbox_orch.shared.store.sqlite.admin')"
    )

    assert len(imports_of_sqlite(path)) == 7


def test_what_a_database_is_asked_by_those_who_look_after_it_is_what_an_engine_offers():
    asked = {name for name in vars(Admin) if not name.startswith("_")}

    assert asked == {name for name in vars(SqliteAdmin) if not name.startswith("_")}
