"""What the database says about owners: the event log folded, and dumps to be compared."""

import sqlite3
from collections.abc import Iterable
from typing import Any

_ENDS_A_LEASE = {
    "lease_expired",
    "thread_released",
    "thread_deferred",
    "thread_failed",
    "thread_done",
    "thread_cancelled",
}


def owners_by_event(events: Iterable[Any]) -> dict[str, list[tuple[int, str]]]:
    """Each thread's owners (epoch, holder) in order.

    Asserts that between a claim and the event that ends its lease there is no other claim of
    the thread, and that every claim raises the epoch by one.
    """
    live: dict[str, str] = {}
    owners: dict[str, list[tuple[int, str]]] = {}
    for event in events:
        thread = event.thread_id
        if event.kind == "thread_claimed":
            assert thread not in live, f"event {event.seq}: {thread} has two owners"
            live[thread] = event.data["holder"]
            owners.setdefault(thread, []).append((event.data["epoch"], event.data["holder"]))
            assert event.data["epoch"] == len(owners[thread]), f"event {event.seq}: its epoch"
        elif event.kind in _ENDS_A_LEASE:
            live.pop(thread, None)
    return owners


def all_events(bus: Any) -> list[Any]:
    """The whole log."""
    return list(bus.watch(after="0", wait_seconds=0))


def live_leases(path: object) -> dict[str, int]:
    """How many leases of each thread have not ended."""
    query = "SELECT thread_id, count(*) FROM lease WHERE ended_at IS NULL GROUP BY thread_id"
    with _reading(path) as connection:
        return dict(connection.execute(query).fetchall())


def dump(path: object) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with _reading(path) as connection:
        names = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in names
        }


def integrity(path: object) -> str:
    """SQLite's own verdict on the file: "ok", or what is wrong."""
    with _reading(path) as connection:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])


class _reading:  # noqa: N801 - reads like `closing`
    """A connection of SQLite's own, closed at the end: nothing else may open the file."""

    def __init__(self, path: object) -> None:
        self._connection = sqlite3.connect(str(path), isolation_level=None)
        self._connection.execute("PRAGMA busy_timeout=10000")
        self._connection.execute("PRAGMA wal_autocheckpoint=0")

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()
