"""Rows of `task`, `dependency` and `base_conflict`."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..domain.model import Dependency, Limits, Task

_COLUMNS = ", ".join(Task._fields)
_WITHOUT_BODY = _COLUMNS.replace(" body,", " '' AS body,")
_new_dependency = partial(tuple.__new__, Dependency)
_CHECKS, _LIMITS = Task._fields.index("checks"), Task._fields.index("limits")
_WORKTREE, _ALLOW_EMPTY = Task._fields.index("worktree"), Task._fields.index("allow_empty")


def insert(connection: sqlite3.Connection, values: Mapping[str, Any]) -> None:
    """A new task; the keys are column names."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    connection.execute(f"INSERT INTO task ({columns}) VALUES ({marks})", dict(values))


def insert_many(connection: sqlite3.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """New tasks that all have the same columns."""
    if rows:
        columns = ", ".join(rows[0])
        marks = ", ".join(f":{name}" for name in rows[0])
        connection.executemany(f"INSERT INTO task ({columns}) VALUES ({marks})", rows)


def ids_by_key(connection: sqlite3.Connection, run_id: str) -> dict[str, str]:
    """The id of every task of a run by its key."""
    rows = connection.execute("SELECT key, id FROM task WHERE run_id = ?", (run_id,)).fetchall()
    return {row[0]: row[1] for row in rows}


def get(connection: sqlite3.Connection, run_id: str, key_or_id: str) -> Task | None:
    """The task of a run with this key or id."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM task WHERE run_id = ? AND (key = ? OR id = ?)",
        (run_id, key_or_id, key_or_id.upper()),
    ).fetchone()
    return None if row is None else _task(row)


def by_id(connection: sqlite3.Connection, task_id: str) -> Task:
    """A task that is known to exist."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (task_id,)).fetchone()
    return _task(row)


def of_run(connection: sqlite3.Connection, run_id: str, *, bodies: bool = True) -> list[Task]:
    """The tasks of a run in the order of their making; without `bodies` those are empty, since
    all together they may be large."""
    columns = _COLUMNS if bodies else _WITHOUT_BODY
    rows = connection.execute(
        f"SELECT {columns} FROM task WHERE run_id = ? ORDER BY number", (run_id,)
    ).fetchall()
    read: dict[str, Any] = {}
    return [_task(row, read) for row in rows]


def of_live_attempts(connection: sqlite3.Connection, run_id: str) -> dict[str, Task]:
    """The tasks of a run that have a live attempt, by their ids."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM task WHERE id IN"
        " (SELECT task_id FROM attempt WHERE run_id = ? AND ended_at IS NULL)",
        (run_id,),
    ).fetchall()
    return {task.id: task for task in map(_task, rows)}


def pending_of_run(connection: sqlite3.Connection, run_id: str) -> list[Task]:
    """The pending tasks of a run in the order of their making."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM task WHERE run_id = ? AND state = 'pending' ORDER BY number",
        (run_id,),
    ).fetchall()
    return [_task(row) for row in rows]


def failed_of_run(connection: sqlite3.Connection, run_id: str) -> list[str]:
    """The keys of the tasks of a run that have failed, in the order of their making."""
    rows = connection.execute(
        "SELECT key FROM task WHERE run_id = ? AND state = 'failed' ORDER BY number", (run_id,)
    ).fetchall()
    return [str(row[0]) for row in rows]


def update(
    connection: sqlite3.Connection,
    task_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the task is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    cursor = connection.execute(
        f"UPDATE task SET {assignments} WHERE id = :_id AND state = :_state",
        {**changes, "_id": task_id, "_state": expected_state},
    )
    return cursor.rowcount == 1


def insert_dependency(connection: sqlite3.Connection, dependency: Dependency) -> None:
    """A new edge."""
    connection.execute(
        "INSERT INTO dependency (task_id, upstream_id, condition) VALUES (?, ?, ?)", dependency
    )


def delete_dependency(connection: sqlite3.Connection, dependency: Dependency) -> None:
    """An edge less."""
    connection.execute(
        "DELETE FROM dependency WHERE task_id = ? AND upstream_id = ?",
        (dependency.task_id, dependency.upstream_id),
    )


def insert_dependencies(connection: sqlite3.Connection, dependencies: Sequence[Dependency]) -> None:
    """New edges."""
    connection.executemany(
        "INSERT INTO dependency (task_id, upstream_id, condition) VALUES (?, ?, ?)", dependencies
    )


def dependency(connection: sqlite3.Connection, task_id: str, upstream_id: str) -> Dependency | None:
    """The edge between two tasks."""
    row = connection.execute(
        "SELECT task_id, upstream_id, condition FROM dependency"
        " WHERE task_id = ? AND upstream_id = ?",
        (task_id, upstream_id),
    ).fetchone()
    return None if row is None else Dependency._make(row)


def dependencies_of_run(connection: sqlite3.Connection, run_id: str) -> list[Dependency]:
    """Every edge of a run."""
    rows = connection.execute(
        "SELECT d.task_id, d.upstream_id, d.condition FROM task AS t"
        " CROSS JOIN dependency AS d ON d.task_id = t.id WHERE t.run_id = ?"
        " ORDER BY t.number",
        (run_id,),
    ).fetchall()
    return list(map(_new_dependency, rows))


# Everything that a task waits for, directly or not, itself included.
_ABOVE = (
    "WITH RECURSIVE above (id) AS (VALUES (?) UNION"
    " SELECT d.upstream_id FROM above AS a JOIN dependency AS d ON d.task_id = a.id)"
)


def waits_for(connection: sqlite3.Connection, task_id: str, upstream_id: str) -> bool:
    """Whether a task is, or waits for, another, directly or not."""
    row = connection.execute(
        f"{_ABOVE} SELECT 1 FROM above WHERE id = ? LIMIT 1", (task_id, upstream_id)
    ).fetchone()
    return row is not None


def dependencies_above(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """The edges of a task and of everything that it waits for."""
    rows = connection.execute(
        f"{_ABOVE} SELECT d.task_id, d.upstream_id, d.condition FROM above AS a"
        " JOIN dependency AS d ON d.task_id = a.id",
        (task_id,),
    ).fetchall()
    return [Dependency._make(row) for row in rows]


def store_base_conflict(
    connection: sqlite3.Connection,
    task_id: str,
    heads: Sequence[str],
    paths: Sequence[str],
    now_ms: int,
) -> None:
    """Remember that these heads cannot be merged into a base for the task."""
    connection.execute(
        "INSERT INTO base_conflict (task_id, heads, paths, found_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (task_id) DO UPDATE SET heads = excluded.heads, paths = excluded.paths,"
        " found_at = excluded.found_at",
        (task_id, json.dumps(list(heads)), json.dumps(list(paths)), now_ms),
    )


def base_conflicts(
    connection: sqlite3.Connection, run_id: str
) -> dict[str, tuple[list[str], list[str]]]:
    """(heads, paths) by task, of every stored conflict of a run."""
    rows = connection.execute(
        "SELECT c.task_id, c.heads, c.paths FROM base_conflict AS c"
        " JOIN task AS t ON t.id = c.task_id WHERE t.run_id = ?",
        (run_id,),
    ).fetchall()
    return {row[0]: (json.loads(row[1]), json.loads(row[2])) for row in rows}


def _task(row: sqlite3.Row, read: dict[str, Any] | None = None) -> Task:
    """`read` holds what has been made of a text before: most tasks have the same."""
    values = list(row)
    values[_WORKTREE] = bool(values[_WORKTREE])
    values[_ALLOW_EMPTY] = bool(values[_ALLOW_EMPTY])
    checks, clocks = values[_CHECKS], values[_LIMITS]
    read = {} if read is None else read
    if checks not in read:
        read[checks] = tuple(json.loads(checks))
    if clocks not in read:
        read[clocks] = Limits(**json.loads(clocks))
    values[_CHECKS], values[_LIMITS] = read[checks], read[clocks]
    return Task._make(values)
