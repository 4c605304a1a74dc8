"""Step 5: a thread, and a task, may carry a schema, which the result has to satisfy."""

from sqlite_utils import Database


def apply(database: Database) -> None:
    """Add the columns; what has no schema has nothing in them."""
    for table in ("thread", "task"):
        database.execute(f"ALTER TABLE {table} ADD COLUMN result_schema TEXT")
