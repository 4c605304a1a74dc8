"""SQLite as an engine that the conformance suite can be run on: see `support.engines`."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.shared.clock import Clock
from inbox_orch.shared.store.engine import Engine, Session
from inbox_orch.shared.store.layout import Layout
from inbox_orch.shared.store.sqlite import bells, connecting
from inbox_orch.shared.store.sqlite.connecting import Opening
from inbox_orch.shared.store.sqlite.database import Database
from inbox_orch.shared.store.sqlite.sessions import Snapshot
from sqlite import outside
from sqlite.writing import Writing, watched
from support.templates import make_database


class Sqlite:
    """A file in the folder `.inbox`; its path is the address."""

    name = "sqlite"
    scratch = (
        "CREATE TABLE scratch"
        " (number INTEGER PRIMARY KEY, name TEXT UNIQUE, whole INTEGER, raw BLOB)"
    )

    def make(self, folder: Path, clock: Clock | None = None) -> str:
        """A new database in a folder; returns its address."""
        path = folder / ".inbox" / "bus.db"
        make_database(path, clock)
        return str(path)

    def open(self, address: str, **options: Any) -> Engine:
        """Another engine at the database, as another process would have one."""
        return Database.open(address, Opening(**options))

    def looking(self, engine: Engine) -> Session:
        """A session outside of a transaction: it sees, at each look, what is committed by then."""
        return Snapshot(_connection(engine))

    def by_hand(self, address: str, sql: str, parameters: tuple[Any, ...] = ()) -> None:
        """Change the database as somebody without the program does."""
        outside.written(address, sql, parameters)

    @contextlib.contextmanager
    def statements(self, engine: Engine) -> Iterator[list[str]]:
        """The statements that an engine executes meanwhile."""
        seen: list[str] = []
        connection = _connection(engine)
        connection.set_trace_callback(seen.append)
        try:
            yield seen
        finally:
            connection.set_trace_callback(None)

    @contextlib.contextmanager
    def steps(self, engine: Engine) -> Iterator[list[int]]:
        """One entry for every ten steps of SQLite's virtual machine, which no load changes."""
        counted: list[int] = []
        connection = _connection(engine)
        connection.set_progress_handler(lambda: counted.append(1), 10)
        try:
            yield counted
        finally:
            connection.set_progress_handler(None, 10)

    def scans(self, engine: Engine, statements: list[str]) -> set[tuple[str, str]]:
        """(what is gone through, statement) of all that go through a whole table or index."""
        return {
            (plan["detail"], statement)
            for statement in statements
            if re.match("SELECT|UPDATE|WITH", statement)
            for plan in _connection(engine).execute(f"EXPLAIN QUERY PLAN {statement}")
            if re.match(r"SCAN (?!\(subquery-\d+\)|known\b|CONSTANT ROW)", plan["detail"])
        }

    def changes(self, engine: Engine) -> int:
        """How many rows an engine has changed since it was opened."""
        return _connection(engine).total_changes

    def columns(self, engine: Engine, table: str) -> list[str]:
        """The names of a table's columns, in their order."""
        rows = self.looking(engine).all("SELECT name FROM pragma_table_info(?)", (table,))
        return [row[0] for row in rows]

    def states(self, engine: Engine, table: str) -> set[str]:
        """The values that the constraint of a table's column `state` names."""
        sql = self.looking(engine).only(
            "SELECT sql FROM sqlite_schema WHERE name = ? AND type = 'table'", (table,)
        )[0]
        named = re.search(r"state TEXT NOT NULL CHECK \(state IN \(([^)]*)\)", sql)
        assert named is not None
        return set(re.findall(r"'([a-z_]+)'", named[1]))

    def rung(self, patch: pytest.MonkeyPatch) -> set[str]:
        """The topics that are rung from now on, in a set that grows."""
        topics: set[str] = set()
        patch.setattr(bells, "ring", lambda folder, these: topics.update(these))
        # Also where nobody listens.
        patch.setattr(Database, "_waited_for", lambda database, these: these)
        return topics

    @contextlib.contextmanager
    def only_written_with_the_lock(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """Whatever is written meanwhile in this process, is written in a transaction that began
        by taking the write lock."""
        connect = connecting._connected
        connections: list[Writing] = []

        def watching(layout: Layout, *, alone: bool = False) -> object:
            connections.append(Writing())
            return watched(connect(layout, alone=alone), connections[-1])

        patch.setattr(connecting, "_connected", watching)
        yield
        assert [fault for writing in connections for fault in writing.faults] == []


def _connection(engine: Engine) -> outside.Connection:
    assert isinstance(engine, Database)
    return engine.connection
