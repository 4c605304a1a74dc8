"""A database of an older schema with nothing in it."""

from pathlib import Path

from inbox_orch.migrations.apply import migrate
from sqlite import outside


def empty_as_of(path: Path, version: int) -> None:
    """What `init` of the release with that schema has left at `path`, but for its mode."""
    with outside.opened(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        migrate(connection, stop_before=f"{version + 1:04d}")
        connection.executemany(
            "INSERT INTO meta (key, value) VALUES (?, ?)",
            [("database_id", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), ("created_at", "1700000000000")],
        )
        connection.execute("COMMIT")
