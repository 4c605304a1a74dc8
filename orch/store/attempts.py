"""Rows of `attempt` and `intent`."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..domain.model import Attempt

_COLUMNS = ", ".join(Attempt._fields)
OWNER = "owner_boot_id, owner_process, owner_started, owner_namespace"


class Owner(NamedTuple):
    """The process that is carrying out an intent: its boot, its number in which PID namespace,
    and its start time."""

    boot_id: str
    process: int
    started: int
    namespace: int


class Intent(NamedTuple):
    """What is about to be done to git, written down before it is done."""

    number: int
    run_id: str
    attempt_id: str | None
    kind: str
    data: dict[str, Any]
    opened_at: int
    owner: Owner


def insert(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """A new attempt; the keys are column names. The database refuses a second live one."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO attempt ({columns}) VALUES ({marks})", dict(values))


def get(connection: sqlite3.Connection, attempt_id: str) -> Attempt | None:
    """One attempt."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE id = ?", (attempt_id,)
    ).fetchone()
    return None if row is None else from_row(row)


def of_task(connection: sqlite3.Connection, task_id: str) -> list[Attempt]:
    """The attempts at a task, in order."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? ORDER BY number", (task_id,)
    ).fetchall()
    return [from_row(row) for row in rows]


def live_of_task(connection: sqlite3.Connection, task_id: str) -> Attempt | None:
    """The live attempt at a task, if there is one."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? AND ended_at IS NULL", (task_id,)
    ).fetchone()
    return None if row is None else from_row(row)


def live_of_run(connection: sqlite3.Connection, run_id: str) -> list[Attempt]:
    """Every live attempt of a run, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NULL ORDER BY id",
        (run_id,),
    ).fetchall()
    return [from_row(row) for row in rows]


def ended_with_worktree(connection: sqlite3.Connection, run_id: str) -> list[Attempt]:
    """The ended attempts of a run whose worktrees nobody has cleaned up, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NOT NULL"
        " AND worktree_path IS NOT NULL AND removed_at IS NULL ORDER BY id",
        (run_id,),
    ).fetchall()
    return [from_row(row) for row in rows]


def with_worktree(connection: sqlite3.Connection, run_id: str) -> list[Attempt]:
    """The attempts of a run whose worktree was not taken away by clean-up, oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND worktree_path IS NOT NULL"
        " AND removed_at IS NULL ORDER BY id",
        (run_id,),
    ).fetchall()
    return [from_row(row) for row in rows]


def of_run(connection: sqlite3.Connection, run_id: str) -> list[Attempt]:
    """Every attempt of a run, oldest first."""
    rows = connection.execute(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id WHERE t.run_id = ? ORDER BY a.id",
        (run_id,),
    ).fetchall()
    return [from_row(row) for row in rows]


def removed_before(connection: sqlite3.Connection, run_id: str, moment_ms: int) -> list[str]:
    """The ids of attempts whose worktree was taken away before a moment."""
    rows = connection.execute(
        "SELECT id FROM attempt WHERE run_id = ? AND removed_at < ?", (run_id, moment_ms)
    ).fetchall()
    return [row[0] for row in rows]


def latest_by_task(connection: sqlite3.Connection, run_id: str) -> dict[str, Attempt]:
    """The newest attempt of each task of a run."""
    rows = connection.execute(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id AND a.number = t.attempts WHERE t.run_id = ?",
        (run_id,),
    ).fetchall()
    return {attempt.task_id: attempt for attempt in map(from_row, rows)}


def update(
    connection: sqlite3.Connection,
    attempt_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the attempt is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    cursor = connection.execute(
        f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state",
        {**changes, "_id": attempt_id, "_state": expected_state},
    )
    return cursor.rowcount == 1


# -- intents -------------------------------------------------------------------------------


def open_intent(
    connection: sqlite3.Connection,
    *,
    run_id: str,
    attempt_id: str,
    kind: str,
    data: Mapping[str, Any],
    owner: Owner,
    now_ms: int,
) -> None:
    """Write down what is about to be done."""
    connection.execute(
        f"INSERT INTO intent (run_id, attempt_id, kind, data, opened_at, {OWNER})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run_id, attempt_id, kind, json.dumps(data), now_ms, *owner),
    )


def close_intent(
    connection: sqlite3.Connection,
    attempt_id: str,
    kind: str,
    outcome: str,
    owner: Owner,
    now_ms: int,
) -> bool:
    """It is done or undone; False when somebody else has closed it or taken it over."""
    cursor = connection.execute(
        "UPDATE intent SET closed_at = ?, outcome = ?"
        f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
        (now_ms, outcome, attempt_id, kind, *owner),
    )
    return cursor.rowcount == 1


def take_over_intent(connection: sqlite3.Connection, number: int, old: Owner, new: Owner) -> bool:
    """Become the one who carries it out; False when somebody else was quicker."""
    cursor = connection.execute(
        f"UPDATE intent SET ({OWNER}) = (?, ?, ?, ?)"
        f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
        (*new, number, *old),
    )
    return cursor.rowcount == 1


def owns_intent(connection: sqlite3.Connection, attempt_id: str, kind: str, owner: Owner) -> bool:
    """Whether it is still open and this owner's."""
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM intent"
        f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?))",
        (attempt_id, kind, *owner),
    ).fetchone()
    return bool(row[0])


def note_in_intent(
    connection: sqlite3.Connection,
    attempt_id: str,
    kind: str,
    data: Mapping[str, Any],
    owner: Owner,
) -> bool:
    """Add to what an open intent says; False when it is not this owner's any more."""
    cursor = connection.execute(
        "UPDATE intent SET data = json_patch(data, ?)"
        f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
        (json.dumps(data), attempt_id, kind, *owner),
    )
    return cursor.rowcount == 1


def open_intents(connection: sqlite3.Connection, run_id: str) -> list[Intent]:
    """What has been begun in a run and not been confirmed."""
    rows = connection.execute(
        f"SELECT number, run_id, attempt_id, kind, data, opened_at, {OWNER}"
        " FROM intent WHERE run_id = ? AND closed_at IS NULL ORDER BY number",
        (run_id,),
    ).fetchall()
    return [
        Intent(number, run, attempt, kind, json.loads(data), opened_at, Owner(*owner))
        for number, run, attempt, kind, data, opened_at, *owner in map(tuple, rows)
    ]


def from_row(row: sqlite3.Row) -> Attempt:
    """What a row with the columns of an attempt says."""
    attempt = Attempt._make(row)
    return attempt._replace(fatal=bool(attempt.fatal), goes_back=bool(attempt.goes_back))
