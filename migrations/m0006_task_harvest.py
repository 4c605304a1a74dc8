"""Step 6: a task may say by itself whether what its workers leave uncommitted is committed."""

from sqlite_utils import Database


def apply(database: Database) -> None:
    """Add the column; where it is null, the dispatch or the run's config says it."""
    database.execute("ALTER TABLE task ADD COLUMN harvest INTEGER CHECK (harvest IN (0, 1))")
