"""Step 3: what the whole scheduler keeps: ends of runs, clocks, integration, clean-up."""

from sqlite_utils import Database

_STATEMENTS = (
    # Closed because it was cancelled, and not because it was over.
    "ALTER TABLE run ADD COLUMN cancelled_at INTEGER",
    # Where the next attempt starts instead of at the computed base, and why.
    "ALTER TABLE task ADD COLUMN next_base TEXT",
    """
    ALTER TABLE task ADD COLUMN next_base_source TEXT
        CHECK (next_base_source IN ('integration', 'attempt'))
    """,
    """
    ALTER TABLE attempt ADD COLUMN clock TEXT
        CHECK (clock IN ('queue', 'run', 'silent', 'block'))
    """,
    # When it has ended its task is pending again, and nothing is counted: it was reassigned.
    """
    ALTER TABLE attempt ADD COLUMN goes_back INTEGER NOT NULL DEFAULT 0
        CHECK (goes_back IN (0, 1))
    """,
    # What it did not merge with: {"onto": commit, "paths": [...]}.
    """
    ALTER TABLE attempt ADD COLUMN conflict TEXT
        CHECK (conflict IS NULL OR json_valid(conflict))
    """,
    "ALTER TABLE attempt ADD COLUMN salvage_commit TEXT",
    # When its worktree was taken away by clean-up.
    "ALTER TABLE attempt ADD COLUMN removed_at INTEGER",
    """
    CREATE INDEX attempt_to_clean_up ON attempt (run_id)
        WHERE ended_at IS NOT NULL AND worktree_path IS NOT NULL AND removed_at IS NULL
    """,
    # The same table as before with one more kind: SQLite cannot change a CHECK in place.
    "ALTER TABLE intent RENAME TO intent_before",
    """
    CREATE TABLE intent (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL REFERENCES run (id),
        attempt_id TEXT REFERENCES attempt (id),
        kind TEXT NOT NULL CHECK (kind IN ('dispatch', 'verify', 'integrate', 'cleanup')),
        data TEXT NOT NULL CHECK (json_valid(data)),
        owner_boot_id TEXT NOT NULL,
        owner_process INTEGER NOT NULL,
        owner_started INTEGER NOT NULL,
        owner_namespace INTEGER NOT NULL,
        opened_at INTEGER NOT NULL,
        closed_at INTEGER,
        outcome TEXT,
        CHECK ((closed_at IS NULL) = (outcome IS NULL))
    ) STRICT
    """,
    """
    INSERT INTO intent SELECT number, run_id, attempt_id, kind, data, owner_boot_id, owner_process,
        owner_started, owner_namespace, opened_at, closed_at, outcome FROM intent_before
    """,
    "DROP TABLE intent_before",
    "CREATE INDEX intent_open ON intent (run_id) WHERE closed_at IS NULL",
)


def apply(database: Database) -> None:
    """Add the columns, and let intents be of one more kind."""
    for statement in _STATEMENTS:
        database.execute(statement)
