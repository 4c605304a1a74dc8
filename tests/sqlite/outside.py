"""A database file as another program sees it: through SQLite's own library, without ours.

Nothing else may open the file: a process that opens and closes it by itself drops the locks that
SQLite has on it.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Connection = sqlite3.Connection
Refusal = sqlite3.Error
VERSION = sqlite3.sqlite_version


@contextlib.contextmanager
def opened(path: object, *, uri: bool = False) -> Iterator[Connection]:
    """A connection without transactions of Python's making; waits 10 seconds for a lock."""
    connection = sqlite3.connect(str(path), isolation_level=None, timeout=10, uri=uri)
    try:
        yield connection
    finally:
        connection.close()


def rows(path: object, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with opened(path) as connection:
        return connection.execute(sql, parameters).fetchall()


def value(path: object, sql: str, parameters: Sequence[Any] = ()) -> Any:
    """What stands in the first column of the first row; None when there is no row."""
    found = rows(path, sql, parameters)
    return found[0][0] if found else None


def written(path: object, sql: str, parameters: Sequence[Any] = ()) -> None:
    """Change the file by hand, on the disk when this returns."""
    with opened(path) as connection:
        connection.execute(sql, parameters).fetchall()


@contextlib.contextmanager
def reading(path: object) -> Iterator[Connection]:
    """A connection that looks at one commit, and leaves the log as it is."""
    with opened(path) as connection:
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("BEGIN")
        yield connection


def contents(path: object) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with reading(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for (name,) in tables.fetchall()
        }


def named_contents(path: object) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, by the names of its columns."""
    with reading(path) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        return {
            name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")]
            for (name,) in tables.fetchall()
        }


@contextlib.contextmanager
def write_lock(path: object) -> Iterator[None]:
    """Hold SQLite's write lock, as a program does that knows nothing of the gate."""
    with opened(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def integrity(path: object) -> str:
    """SQLite's own verdict on the file: "ok", or what is wrong."""
    with reading(path) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


def step_at_every_statement(step: Callable[..., None]) -> None:
    """From now on, `step` is called in this process before a file is opened and before every
    statement. For a process of its own: nothing takes it back."""
    connect = sqlite3.connect

    def connected(*args: Any, **kwargs: Any) -> Connection:
        step()
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(step)
        return connection

    sqlite3.connect = connected  # type: ignore[assignment]
