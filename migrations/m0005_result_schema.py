"""Step 5: a thread may carry a schema, which its result has to satisfy."""

from sqlite_utils import Database


def apply(database: Database) -> None:
    """Add the column; a thread without a schema has nothing in it."""
    database.execute("ALTER TABLE thread ADD COLUMN result_schema TEXT")
