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


def fill(path: Path, source: Path) -> None:
    """Put into the tables of a database what a newer one has in the same columns of them; not which
    steps it has been through."""
    with outside.opened(path) as connection:
        connection.execute("ATTACH ? AS source", (str(source),))
        names = "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
        for (table,) in connection.execute(names).fetchall():
            if table.startswith(("_", "sqlite_")):
                continue
            asked = "SELECT name FROM pragma_table_info(?)"
            columns = ", ".join(name for (name,) in connection.execute(asked, (table,)).fetchall())
            connection.execute(
                f"REPLACE INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}"
            )
