"""Rows of `run` and `run_cursor`."""

import sqlite3
from collections.abc import Mapping
from typing import Any

from ..domain.model import Run

_COLUMNS = ", ".join(Run._fields)


def insert(connection: sqlite3.Connection, run: Run) -> None:
    """A new run."""
    marks = ", ".join("?" * len(run))
    connection.execute(f"INSERT INTO run ({_COLUMNS}) VALUES ({marks})", tuple(run))


def get(connection: sqlite3.Connection, name_or_id: str) -> Run | None:
    """The run of this id or name."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM run WHERE id = ? OR name = ?",
        (name_or_id.upper(), name_or_id),
    ).fetchone()
    return None if row is None else Run._make(row)


def not_closed(connection: sqlite3.Connection) -> list[Run]:
    """Every run that is not closed, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM run WHERE state <> 'closed' ORDER BY created_at, id"
    ).fetchall()
    return [Run._make(row) for row in rows]


def every(connection: sqlite3.Connection) -> list[Run]:
    """Every run, the closed ones too, oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM run ORDER BY created_at, id").fetchall()
    return [Run._make(row) for row in rows]


def update(
    connection: sqlite3.Connection, run_id: str, changes: Mapping[str, Any], *, expected_state: str
) -> bool:
    """Change columns if the run is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    done = connection.execute(
        f"UPDATE run SET {assignments} WHERE id = :_id AND state = :_state",
        {**changes, "_id": run_id, "_state": expected_state},
    )
    return done.rowcount == 1


def cursor(connection: sqlite3.Connection, agent: str, run_id: str) -> int:
    """Up to which event `agent` has been told about the run."""
    row = connection.execute(
        "SELECT position FROM run_cursor WHERE agent = ? AND run_id = ?", (agent, run_id)
    ).fetchone()
    return 0 if row is None else int(row[0])


def advance_cursor(
    connection: sqlite3.Connection, agent: str, run_id: str, position: int, now_ms: int
) -> None:
    """Move that forward, never back."""
    connection.execute(
        "INSERT INTO run_cursor (agent, run_id, position, updated_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (agent, run_id) DO UPDATE SET"
        " position = max(position, excluded.position), updated_at = excluded.updated_at",
        (agent, run_id, position, now_ms),
    )
