"""Step 7: the thread moves from the attempt to its visits; blueprints, and what gates came to."""

from sqlite_utils import Database

_STATEMENTS = (
    # One entry of a stage. `work` is the one stage of a task without a blueprint. `snapshot` is a
    # commit that has the worktree as it was after it; `tries` how often it was begun;
    # `head` is the HEAD that belongs to the snapshot.
    """
    CREATE TABLE visit (
        attempt_id TEXT NOT NULL REFERENCES attempt (id),
        number INTEGER NOT NULL CHECK (number >= 1),
        stage TEXT NOT NULL,
        nth INTEGER NOT NULL CHECK (nth >= 1),
        kind TEXT NOT NULL CHECK (kind IN ('agent', 'gates', 'action', 'council', 'decision')),
        state TEXT NOT NULL CHECK (state IN ('live', 'succeeded', 'failed', 'error', 'skipped',
            'lost', 'void', 'cancelled')),
        mailbox TEXT,
        thread_id TEXT REFERENCES thread (id),
        tree_before TEXT,
        tree_after TEXT,
        snapshot TEXT,
        head TEXT,
        worker TEXT,
        verdict TEXT,
        reason TEXT,
        result TEXT CHECK (result IS NULL OR json_valid(result)),
        tries INTEGER NOT NULL DEFAULT 0,
        worked_ms INTEGER,
        created_at INTEGER NOT NULL,
        ended_at INTEGER,
        PRIMARY KEY (attempt_id, number),
        CHECK ((state = 'live') = (ended_at IS NULL))
    ) STRICT, WITHOUT ROWID
    """,
    # One live visit of an attempt, and so one open decision: the database refuses a second.
    "CREATE UNIQUE INDEX visit_live ON visit (attempt_id) WHERE ended_at IS NULL",
    "CREATE UNIQUE INDEX visit_by_thread ON visit (thread_id) WHERE thread_id IS NOT NULL",
    # What was handed out before there were visits.
    """
    INSERT INTO visit (attempt_id, number, stage, nth, kind, state, mailbox, thread_id, created_at,
        ended_at)
    SELECT id, 1, 'work', 1, 'agent',
        CASE WHEN ended_at IS NULL THEN 'live' WHEN state = 'succeeded' THEN 'succeeded'
            WHEN state IN ('failed', 'rejected') THEN 'failed' WHEN state = 'lost' THEN 'lost'
            ELSE 'cancelled' END,
        mailbox, thread_id, created_at, ended_at
    FROM attempt WHERE thread_id IS NOT NULL
    """,
    # The stage of the live visit, or of the last one; null without a blueprint.
    "ALTER TABLE attempt ADD COLUMN stage TEXT",
    "ALTER TABLE task ADD COLUMN blueprint TEXT",
    # The blueprints of a run as they were when a task of it first named them.
    """
    CREATE TABLE blueprint (
        run_id TEXT NOT NULL REFERENCES run (id),
        id TEXT NOT NULL,
        text TEXT NOT NULL CHECK (json_valid(text)),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, id)
    ) STRICT, WITHOUT ROWID
    """,
    # What gates have come to, by the tree that was judged; `ground` is a digest of the gate, the
    # set-up and the versions of the tools.
    """
    CREATE TABLE gate_result (
        run_id TEXT NOT NULL REFERENCES run (id),
        tree TEXT NOT NULL,
        gate TEXT NOT NULL,
        ground TEXT NOT NULL,
        result TEXT NOT NULL CHECK (json_valid(result)),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, tree, gate, ground)
    ) STRICT, WITHOUT ROWID
    """,
    # What was found out about a base: set-up, gates, and which of them can judge there.
    """
    CREATE TABLE surroundings (
        run_id TEXT NOT NULL REFERENCES run (id),
        tree TEXT NOT NULL,
        found TEXT NOT NULL CHECK (json_valid(found)),
        created_at INTEGER NOT NULL,
        PRIMARY KEY (run_id, tree)
    ) STRICT, WITHOUT ROWID
    """,
)


def apply(database: Database) -> None:
    """Add the tables and columns; every attempt that was handed out gets its one visit."""
    for statement in _STATEMENTS:
        database.execute(statement)
