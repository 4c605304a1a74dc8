"""Step 4: councils: rounds, seats, what was replied, what leaders settled, reports."""

from sqlite_utils import Database

_STATEMENTS = (
    """
    CREATE TABLE council (
        run_id TEXT PRIMARY KEY REFERENCES run (id),
        brief TEXT NOT NULL,
        brief_sha256 TEXT NOT NULL,
        nonce TEXT NOT NULL,
        decisions TEXT NOT NULL CHECK (json_valid(decisions)),
        quorum INTEGER NOT NULL CHECK (quorum >= 1),
        seat_seconds REAL CHECK (seat_seconds > 0),
        created_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    # The first round asks for replies, the second one for votes.
    """
    CREATE TABLE council_round (
        run_id TEXT NOT NULL REFERENCES council (run_id),
        number INTEGER NOT NULL CHECK (number IN (1, 2)),
        deadline_at INTEGER,
        opened_at INTEGER NOT NULL,
        closed_at INTEGER,
        closed_by TEXT CHECK (closed_by IN ('final', 'deadline')),
        PRIMARY KEY (run_id, number),
        CHECK ((closed_at IS NULL) = (closed_by IS NULL))
    ) STRICT, WITHOUT ROWID
    """,
    # `labels` are those of a ballot: {label: item}; `closing` is how far the seat had come when
    # the round was closed without its reply.
    """
    CREATE TABLE council_seat (
        run_id TEXT NOT NULL,
        round INTEGER NOT NULL,
        position INTEGER NOT NULL,
        reviewer TEXT NOT NULL,
        task_id TEXT NOT NULL UNIQUE REFERENCES task (id),
        lens TEXT,
        labels TEXT CHECK (labels IS NULL OR json_valid(labels)),
        closing TEXT,
        PRIMARY KEY (run_id, round, position),
        UNIQUE (run_id, round, reviewer),
        FOREIGN KEY (run_id, round) REFERENCES council_round (run_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    # What an attempt came to. It has the reply itself, so that pruning threads loses no tally.
    """
    CREATE TABLE council_reply (
        attempt_id TEXT PRIMARY KEY REFERENCES attempt (id),
        run_id TEXT NOT NULL REFERENCES council (run_id),
        task_id TEXT NOT NULL REFERENCES task (id),
        state TEXT NOT NULL CHECK (state IN ('valid', 'valid_after_kill', 'invalid', 'empty',
            'declined', 'abstained', 'failed')),
        source TEXT CHECK (source IN ('payload', 'body', 'result', 'stdout')),
        raw BLOB,
        raw_bytes INTEGER NOT NULL,
        raw_sha256 TEXT NOT NULL,
        reason TEXT,
        errors TEXT NOT NULL CHECK (json_valid(errors)),
        late INTEGER NOT NULL CHECK (late IN (0, 1)),
        revision INTEGER,
        created_at INTEGER NOT NULL,
        CHECK ((source IS NULL) = (raw IS NULL))
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX council_reply_by_run ON council_reply (run_id)",
    """
    CREATE TABLE council_override (
        run_id TEXT NOT NULL REFERENCES council (run_id),
        number INTEGER NOT NULL CHECK (number >= 1),
        kind TEXT NOT NULL CHECK (kind IN ('merge', 'split', 'dismiss', 'note')),
        items TEXT NOT NULL CHECK (json_valid(items)),
        text TEXT NOT NULL,
        actor TEXT NOT NULL,
        forced INTEGER NOT NULL CHECK (forced IN (0, 1)),
        revision INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    # What is counted changes only by a new revision; the old ones can be counted again.
    """
    CREATE TABLE council_revision (
        run_id TEXT NOT NULL REFERENCES council (run_id),
        number INTEGER NOT NULL CHECK (number >= 1),
        cause TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE council_report (
        run_id TEXT NOT NULL REFERENCES council (run_id),
        name TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        thread_id TEXT NOT NULL REFERENCES thread (id),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, name, sha256)
    ) STRICT, WITHOUT ROWID
    """,
    *(
        f"CREATE TRIGGER {table}_never_{word} BEFORE {verb} ON {table}"
        f" BEGIN SELECT raise(ABORT, '{table}: rows are never {word}'); END"
        for table in ("council_reply", "council_override", "council_revision", "council_report")
        for verb, word in (("UPDATE", "changed"), ("DELETE", "removed"))
    ),
)


def apply(database: Database) -> None:
    """Make the tables of councils."""
    for statement in _STATEMENTS:
        database.execute(statement)
