"""Step 8: every change that is handed in as a patch, what was said of it, and by which policy."""

from sqlite_utils import Database

_STATEMENTS = (
    # Whether the patches of a run are judged and recorded: not those of runs from before.
    "ALTER TABLE run ADD COLUMN patches INTEGER NOT NULL DEFAULT 0 CHECK (patches IN (0, 1))",
    # What a task forbids beyond its run, as JSON; null for nothing.
    "ALTER TABLE task ADD COLUMN policy TEXT CHECK (policy IS NULL OR json_valid(policy))",
    # Going back to a checkpoint is written down before it is begun.
    "ALTER TABLE intent RENAME TO intent_before",
    """
    CREATE TABLE intent (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL REFERENCES run (id),
        attempt_id TEXT REFERENCES attempt (id),
        kind TEXT NOT NULL
            CHECK (kind IN ('dispatch', 'verify', 'integrate', 'cleanup', 'restore')),
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
    # How what its workers have done comes in; null: as files in its worktree.
    "ALTER TABLE task ADD COLUMN hands_in TEXT CHECK (hands_in IN ('text'))",
    # Files beside the database that no thread has: what they are, and of what (the id of a patch,
    # an attempt, a run). They stay as long as `over_at` is null, and then as what threads carry.
    """
    CREATE TABLE kept_file (
        sha256 TEXT NOT NULL,
        owner TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('handed_in', 'output')),
        bytes INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        over_at INTEGER,
        PRIMARY KEY (sha256, owner, kind)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX kept_file_by_owner ON kept_file (owner)",
    "CREATE INDEX kept_file_over ON kept_file (over_at) WHERE over_at IS NOT NULL",
    # A policy as it was in force when something was judged by it, all its layers.
    """
    CREATE TABLE policy (
        digest TEXT PRIMARY KEY,
        text TEXT NOT NULL CHECK (json_valid(text)),
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # A change that was handed in: two trees. Written once. `base` is the commit that it starts
    # from and `head` one that has `tree`; both trees are those of git, with filters. `content` is
    # a digest of what was handed in, `text` the artifact that has it where it came as text.
    """
    CREATE TABLE patch (
        id TEXT PRIMARY KEY,
        run_id TEXT NOT NULL REFERENCES run (id),
        attempt_id TEXT NOT NULL REFERENCES attempt (id),
        number INTEGER NOT NULL CHECK (number >= 1),
        visit INTEGER,
        way TEXT NOT NULL CHECK (way IN ('commits', 'harvest', 'diff', 'edits', 'gate', 'reverse')),
        base TEXT NOT NULL,
        base_tree TEXT NOT NULL,
        tree TEXT,
        head TEXT,
        author TEXT,
        facts TEXT NOT NULL CHECK (json_valid(facts)),
        content TEXT NOT NULL,
        text TEXT,
        replaces TEXT REFERENCES patch (id),
        rollback_of TEXT REFERENCES patch (id),
        created_at INTEGER NOT NULL,
        UNIQUE (attempt_id, number),
        UNIQUE (attempt_id, base_tree, content)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX patch_by_run ON patch (run_id, created_at)",
    "CREATE INDEX patch_by_replaced ON patch (replaces) WHERE replaces IS NOT NULL",
    "CREATE INDEX patch_by_rollback ON patch (rollback_of) WHERE rollback_of IS NOT NULL",
    # What was said of a patch, in order; written once. Its state follows from these.
    """
    CREATE TABLE patch_entry (
        patch_id TEXT NOT NULL REFERENCES patch (id),
        number INTEGER NOT NULL CHECK (number >= 1),
        kind TEXT NOT NULL,
        outcome TEXT NOT NULL,
        by TEXT NOT NULL,
        reason TEXT,
        facts TEXT CHECK (facts IS NULL OR json_valid(facts)),
        policy TEXT REFERENCES policy (digest),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (patch_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    *(
        f"CREATE TRIGGER {table}_never_{word} BEFORE {verb} ON {table}"
        f" BEGIN SELECT raise(ABORT, 'rows of {table} are written once'); END"
        for table in ("patch", "patch_entry")
        for word, verb in (("changes", "UPDATE"), ("goes", "DELETE"))
    ),
)


def apply(database: Database) -> None:
    """Add the tables and the columns; nothing of what is there is judged anew."""
    for statement in _STATEMENTS:
        database.execute(statement)
