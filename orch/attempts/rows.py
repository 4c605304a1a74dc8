"""Rows of `attempt` and `intent`."""

import json
from collections.abc import Mapping
from typing import Any

from inbox_orch.shared.store.engine import Row, Session

from ..runs.model import Attempt

_COLUMNS = ", ".join(Attempt._fields)


def insert(tx: Session, values: Mapping[str, Any]) -> Attempt:
    """A new attempt; the keys are column names. The database refuses a second live one."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    (row,) = tx.all(
        f"INSERT INTO attempt ({columns}) VALUES ({marks}) RETURNING {_COLUMNS}", dict(values)
    )
    return from_row(row)


def get(tx: Session, attempt_id: str) -> Attempt | None:
    """One attempt."""
    row = tx.one(f"SELECT {_COLUMNS} FROM attempt WHERE id = ?", (attempt_id,))
    return None if row is None else from_row(row)


def of_task(tx: Session, task_id: str) -> list[Attempt]:
    """The attempts at a task, in order."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? ORDER BY number", (task_id,))
    return [from_row(row) for row in rows]


def live_of_task(tx: Session, task_id: str) -> Attempt | None:
    """The live attempt at a task, if there is one."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? AND ended_at IS NULL", (task_id,)
    )
    return None if row is None else from_row(row)


def live_of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every live attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def ended_with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The ended attempts of a run whose worktrees have not been cleaned up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NOT NULL"
        " AND worktree_path IS NOT NULL AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The attempts of a run whose worktree was not taken away by clean-up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND worktree_path IS NOT NULL"
        " AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id WHERE t.run_id = ? ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def removed_before(tx: Session, run_id: str, moment_ms: int) -> list[str]:
    """The ids of attempts whose worktree was taken away before a moment."""
    rows = tx.all("SELECT id FROM attempt WHERE run_id = ? AND removed_at < ?", (run_id, moment_ms))
    return [row[0] for row in rows]


def latest_by_task(tx: Session, run_id: str) -> dict[str, Attempt]:
    """The newest attempt of each task of a run."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id AND a.number = t.attempts WHERE t.run_id = ?",
        (run_id,),
    )
    return {attempt.task_id: attempt for attempt in map(from_row, rows)}


def update(
    tx: Session,
    attempt_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the attempt is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state",
            {**changes, "_id": attempt_id, "_state": expected_state},
        )
        == 1
    )


def move(
    tx: Session, attempt_id: str, changes: Mapping[str, Any], *, expected_state: str
) -> Attempt | None:
    """The attempt as `update` leaves it; None when it is in that state no more."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    rows = tx.all(
        f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state"
        f" RETURNING {_COLUMNS}",
        {**changes, "_id": attempt_id, "_state": expected_state},
    )
    return from_row(rows[0]) if rows else None


def done_removals(tx: Session, run_id: str) -> dict[str, dict[str, Any]]:
    """What clean-up meant to do with each attempt whose worktree it has taken away."""
    rows = tx.all(
        "SELECT attempt_id, data FROM intent WHERE run_id = ? AND kind = 'cleanup'"
        " AND outcome = 'done' ORDER BY number",
        (run_id,),
    )
    return {attempt_id: json.loads(data) for attempt_id, data in rows}


def from_row(row: Row) -> Attempt:
    """What a row with the columns of an attempt says."""
    attempt = Attempt._make(row)
    return attempt._replace(fatal=bool(attempt.fatal), goes_back=bool(attempt.goes_back))
