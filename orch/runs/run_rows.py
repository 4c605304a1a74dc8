"""Rows of `run` and `run_cursor`."""

import json
from collections.abc import Mapping
from typing import Any

from inbox_orch.shared.store.engine import Session

from .model import Run

# Behind every character that a name can have.
_BEHIND = "\U0010ffff"
_COLUMNS = ", ".join(Run._fields)


def insert(tx: Session, run: Run) -> None:
    """A new run."""
    marks = ", ".join("?" * len(run))
    tx.run(f"INSERT INTO run ({_COLUMNS}) VALUES ({marks})", tuple(run))


def get(tx: Session, name_or_id: str) -> Run | None:
    """The run of this id or name."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM run WHERE id = ? OR name = ?",
        (name_or_id.upper(), name_or_id),
    )
    return None if row is None else Run._make(row)


def beginning(tx: Session, name: str, run_id: str | None, limit: int) -> list[Run]:
    """Runs whose name begins so, and those whose id does where the beginning of one is given,
    oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM run WHERE (name >= ? AND name < ?) OR (id >= ? AND id < ?)"
        " ORDER BY created_at, id LIMIT ?",
        (name, name + _BEHIND, run_id or _BEHIND, (run_id or "") + _BEHIND, limit),
    )
    return [Run._make(row) for row in rows]


def kind(tx: Session, run_id: str) -> str:
    """What a run is for: `council`, or `work`."""
    row = tx.one("SELECT 1 FROM council WHERE run_id = ?", (run_id,))
    return "work" if row is None else "council"


def asked_by_key(tx: Session, run: Run, prefix: str) -> bool:
    """Whether the call that opened it with a plan had a key that begins so."""
    rows = tx.all(
        "SELECT response FROM request WHERE command = 'plan import' AND agent = ?"
        " AND key >= ? AND key < ? AND created_at = ?",
        (run.leader, prefix, prefix + _BEHIND, run.created_at),
    )
    return any(json.loads(row[0])["run"]["id"] == run.id for row in rows)


def not_closed(tx: Session) -> list[Run]:
    """Every run that is not closed, oldest first."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM run WHERE state <> 'closed' ORDER BY created_at, id")
    return [Run._make(row) for row in rows]


def last_closed(tx: Session, wanted: str) -> Run | None:
    """The run of a kind (`work`, `council`) that was closed last, None when none was."""
    has = "" if wanted == "council" else "NOT "
    row = tx.one(
        f"SELECT {_COLUMNS} FROM run WHERE state = 'closed' AND {has}EXISTS"
        " (SELECT 1 FROM council WHERE run_id = run.id) ORDER BY closed_at DESC, id DESC LIMIT 1"
    )
    return None if row is None else Run._make(row)


def every(tx: Session) -> list[Run]:
    """Every run, the closed ones too, oldest first."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM run ORDER BY created_at, id")
    return [Run._make(row) for row in rows]


def update(tx: Session, run_id: str, changes: Mapping[str, Any], *, expected_state: str) -> bool:
    """Change columns if the run is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE run SET {assignments} WHERE id = :_id AND state = :_state",
            {**changes, "_id": run_id, "_state": expected_state},
        )
        == 1
    )


def cursor(tx: Session, agent: str, run_id: str) -> int:
    """Up to which event `agent` has been told about the run."""
    row = tx.one("SELECT position FROM run_cursor WHERE agent = ? AND run_id = ?", (agent, run_id))
    return 0 if row is None else int(row[0])


def advance_cursor(tx: Session, agent: str, run_id: str, position: int, now_ms: int) -> None:
    """Move that forward, never back."""
    tx.run(
        "INSERT INTO run_cursor (agent, run_id, position, updated_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (agent, run_id) DO UPDATE SET"
        " position = max(position, excluded.position), updated_at = excluded.updated_at",
        (agent, run_id, position, now_ms),
    )
