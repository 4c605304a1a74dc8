"""Rows of `task`, `dependency` and `base_conflict`."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from inbox_orch.shared.store.engine import Row, Session

from .model import Dependency, Limits, Task

_COLUMNS = ", ".join(Task._fields)
_WITHOUT_BODY = _COLUMNS.replace(" body,", " '' AS body,").replace(
    " result_schema", " NULL AS result_schema"
)
_new_dependency = partial(tuple.__new__, Dependency)
_CHECKS, _LIMITS = Task._fields.index("checks"), Task._fields.index("limits")
_WORKTREE, _ALLOW_EMPTY = Task._fields.index("worktree"), Task._fields.index("allow_empty")
_HARVEST = Task._fields.index("harvest")


def insert(tx: Session, values: Mapping[str, Any]) -> None:
    """A new task; the keys are column names."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    tx.run(f"INSERT INTO task ({columns}) VALUES ({marks})", dict(values))


def insert_many(tx: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """New tasks that all have the same columns."""
    if rows:
        columns = ", ".join(rows[0])
        marks = ", ".join(f":{name}" for name in rows[0])
        tx.run_many(f"INSERT INTO task ({columns}) VALUES ({marks})", rows)


def ids_by_key(tx: Session, run_id: str) -> dict[str, str]:
    """The id of every task of a run by its key."""
    rows = tx.all("SELECT key, id FROM task WHERE run_id = ?", (run_id,))
    return {row[0]: row[1] for row in rows}


def get(tx: Session, run_id: str, key_or_id: str) -> Task | None:
    """The task of a run with this key or id."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM task WHERE run_id = ? AND (key = ? OR id = ?)",
        (run_id, key_or_id, key_or_id.upper()),
    )
    return None if row is None else _task(row)


def anywhere(tx: Session, task_id: str) -> Task | None:
    """The task of this id, in whichever run."""
    row = tx.one(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (task_id,))
    return None if row is None else _task(row)


def beginning(tx: Session, task_id: str, limit: int) -> list[Task]:
    """The tasks whose id begins so, in whichever run, oldest first; without their bodies."""
    rows = tx.all(
        f"SELECT {_WITHOUT_BODY} FROM task WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (task_id, task_id + "\U0010ffff", limit),
    )
    return [_task(row) for row in rows]


def mailboxes_to_serve(tx: Session, run_id: str) -> list[str]:
    """The mailboxes in which the unfinished tasks of a run are, or will be, offered."""
    rows = tx.all(
        "SELECT mailbox FROM task WHERE run_id = ? AND state IN ('pending', 'active', 'blocked')"
        " UNION SELECT a.mailbox FROM task AS t JOIN attempt AS a ON a.task_id = t.id"
        " WHERE t.run_id = ? AND t.state IN ('active', 'blocked')"
        " AND a.number = (SELECT max(b.number) FROM attempt AS b WHERE b.task_id = t.id)",
        (run_id, run_id),
    )
    return [row[0] for row in rows]


def own_mailboxes(tx: Session, run_id: str) -> set[str]:
    """The mailboxes that the unfinished tasks of a run name."""
    rows = tx.all(
        "SELECT DISTINCT mailbox FROM task WHERE run_id = ? AND state IN"
        " ('pending', 'active', 'blocked')",
        (run_id,),
    )
    return {str(row[0]) for row in rows}


def blueprints_to_serve(tx: Session, run_id: str) -> list[str]:
    """The ids of the blueprints that the unfinished tasks of a run go by."""
    rows = tx.all(
        "SELECT DISTINCT blueprint FROM task WHERE run_id = ? AND blueprint IS NOT NULL"
        " AND state IN ('pending', 'active', 'blocked') ORDER BY blueprint",
        (run_id,),
    )
    return [str(row[0]) for row in rows]


def by_id(tx: Session, task_id: str) -> Task:
    """A task that is known to exist."""
    row = tx.only(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (task_id,))
    return _task(row)


def of_run(tx: Session, run_id: str, *, bodies: bool = True) -> list[Task]:
    """The tasks of a run in the order of their making; without `bodies` those are empty, since
    all together they may be large."""
    columns = _COLUMNS if bodies else _WITHOUT_BODY
    rows = tx.all(f"SELECT {columns} FROM task WHERE run_id = ? ORDER BY number", (run_id,))
    read: dict[str, Any] = {}
    return [_task(row, read) for row in rows]


def of_live_attempts(tx: Session, run_id: str) -> dict[str, Task]:
    """The tasks of a run that have a live attempt, by their ids."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM task WHERE id IN"
        " (SELECT task_id FROM attempt WHERE run_id = ? AND ended_at IS NULL)",
        (run_id,),
    )
    return {task.id: task for task in map(_task, rows)}


def pending_of_run(tx: Session, run_id: str) -> list[Task]:
    """The pending tasks of a run in the order of their making."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM task WHERE run_id = ? AND state = 'pending' ORDER BY number",
        (run_id,),
    )
    return [_task(row) for row in rows]


def failed_of_run(tx: Session, run_id: str) -> list[str]:
    """The keys of the tasks of a run that have failed, in the order of their making."""
    rows = tx.all(
        "SELECT key FROM task WHERE run_id = ? AND state = 'failed' ORDER BY number", (run_id,)
    )
    return [str(row[0]) for row in rows]


def update(
    tx: Session,
    task_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the task is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE task SET {assignments} WHERE id = :_id AND state = :_state",
            {**changes, "_id": task_id, "_state": expected_state},
        )
        == 1
    )


def move(
    tx: Session, task_id: str, changes: Mapping[str, Any], *, expected_state: str
) -> Task | None:
    """The task as `update` leaves it; None when it is in that state no more."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    rows = tx.all(
        f"UPDATE task SET {assignments} WHERE id = :_id AND state = :_state RETURNING {_COLUMNS}",
        {**changes, "_id": task_id, "_state": expected_state},
    )
    return _task(rows[0]) if rows else None


def insert_dependency(tx: Session, dependency: Dependency) -> None:
    """A new edge."""
    tx.run("INSERT INTO dependency (task_id, upstream_id, condition) VALUES (?, ?, ?)", dependency)


def delete_dependency(tx: Session, dependency: Dependency) -> None:
    """An edge less."""
    tx.run(
        "DELETE FROM dependency WHERE task_id = ? AND upstream_id = ?",
        (dependency.task_id, dependency.upstream_id),
    )


def dependencies_of(tx: Session, task_id: str) -> list[Dependency]:
    """The edges from a task to what it waits for."""
    rows = tx.all(
        "SELECT task_id, upstream_id, condition FROM dependency WHERE task_id = ?"
        " ORDER BY upstream_id",
        (task_id,),
    )
    return [Dependency._make(row) for row in rows]


def dependencies_below(tx: Session, task_id: str) -> list[Dependency]:
    """The edges to a task from what waits for it, in the order of their making."""
    rows = tx.all(
        "SELECT d.task_id, d.upstream_id, d.condition FROM dependency AS d"
        " JOIN task AS t ON t.id = d.task_id WHERE d.upstream_id = ? ORDER BY t.number",
        (task_id,),
    )
    return [Dependency._make(row) for row in rows]


def keys_below(tx: Session, task_id: str) -> list[str]:
    """The keys of the tasks that wait for a task, in the order of their making."""
    rows = tx.all(
        "SELECT t.key FROM dependency AS d JOIN task AS t ON t.id = d.task_id"
        " WHERE d.upstream_id = ? ORDER BY t.number",
        (task_id,),
    )
    return [str(row[0]) for row in rows]


def delete(tx: Session, task_id: str) -> None:
    """A task less, which has no edges and never had an attempt."""
    tx.run("DELETE FROM base_conflict WHERE task_id = ?", (task_id,))
    tx.run("DELETE FROM task WHERE id = ?", (task_id,))


def insert_dependencies(tx: Session, dependencies: Sequence[Dependency]) -> None:
    """New edges."""
    tx.run_many(
        "INSERT INTO dependency (task_id, upstream_id, condition) VALUES (?, ?, ?)", dependencies
    )


def dependency(tx: Session, task_id: str, upstream_id: str) -> Dependency | None:
    """The edge between two tasks."""
    row = tx.one(
        "SELECT task_id, upstream_id, condition FROM dependency"
        " WHERE task_id = ? AND upstream_id = ?",
        (task_id, upstream_id),
    )
    return None if row is None else Dependency._make(row)


def dependencies_of_run(tx: Session, run_id: str) -> list[Dependency]:
    """Every edge of a run."""
    rows = tx.all(
        "SELECT d.task_id, d.upstream_id, d.condition FROM task AS t"
        " CROSS JOIN dependency AS d ON d.task_id = t.id WHERE t.run_id = ?"
        " ORDER BY t.number",
        (run_id,),
    )
    return list(map(_new_dependency, rows))


# Everything that a task waits for, directly or not, itself included.
_ABOVE = (
    "WITH RECURSIVE above (id) AS (VALUES (?) UNION"
    " SELECT d.upstream_id FROM above AS a JOIN dependency AS d ON d.task_id = a.id)"
)


def waits_for(tx: Session, task_id: str, upstream_id: str) -> bool:
    """Whether a task is, or waits for, another, directly or not."""
    row = tx.one(f"{_ABOVE} SELECT 1 FROM above WHERE id = ? LIMIT 1", (task_id, upstream_id))
    return row is not None


def dependencies_above(tx: Session, task_id: str) -> list[Dependency]:
    """The edges of a task and of everything that it waits for."""
    rows = tx.all(
        f"{_ABOVE} SELECT d.task_id, d.upstream_id, d.condition FROM above AS a"
        " JOIN dependency AS d ON d.task_id = a.id",
        (task_id,),
    )
    return [Dependency._make(row) for row in rows]


def store_base_conflict(
    tx: Session,
    task_id: str,
    heads: Sequence[str],
    paths: Sequence[str],
    now_ms: int,
) -> None:
    """Remember that these heads cannot be merged into a base for the task."""
    tx.run(
        "INSERT INTO base_conflict (task_id, heads, paths, found_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (task_id) DO UPDATE SET heads = excluded.heads, paths = excluded.paths,"
        " found_at = excluded.found_at",
        (task_id, json.dumps(list(heads)), json.dumps(list(paths)), now_ms),
    )


def base_conflicts(tx: Session, run_id: str) -> dict[str, tuple[list[str], list[str]]]:
    """(heads, paths) by task, of every stored conflict of a run."""
    rows = tx.all(
        "SELECT c.task_id, c.heads, c.paths FROM base_conflict AS c"
        " JOIN task AS t ON t.id = c.task_id WHERE t.run_id = ?",
        (run_id,),
    )
    return {row[0]: (json.loads(row[1]), json.loads(row[2])) for row in rows}


def _task(row: Row, read: dict[str, Any] | None = None) -> Task:
    """`read` holds what has been made of a text before: most tasks have the same."""
    values = list(row)
    values[_WORKTREE] = bool(values[_WORKTREE])
    values[_ALLOW_EMPTY] = bool(values[_ALLOW_EMPTY])
    if values[_HARVEST] is not None:
        values[_HARVEST] = bool(values[_HARVEST])
    checks, clocks = values[_CHECKS], values[_LIMITS]
    read = {} if read is None else read
    if checks not in read:
        read[checks] = tuple(json.loads(checks))
    if clocks not in read:
        read[clocks] = Limits(**json.loads(clocks))
    values[_CHECKS], values[_LIMITS] = read[checks], read[clocks]
    return Task._make(values)
