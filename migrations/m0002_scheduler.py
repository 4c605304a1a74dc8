"""Step 2: runs, tasks, dependencies, attempts, intents."""

from sqlite_utils import Database

_STATEMENTS = (
    """
    CREATE TABLE run (
        id TEXT PRIMARY KEY CHECK (length(id) = 26),
        name TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'paused', 'cancelling', 'closed')),
        leader TEXT NOT NULL,
        repository TEXT,
        repository_identity TEXT,
        base_ref TEXT,
        base_commit TEXT,
        worktree_root TEXT,
        on_failure TEXT NOT NULL CHECK (on_failure IN ('continue', 'fail-fast', 'abort')),
        max_parallel INTEGER CHECK (max_parallel >= 1),
        config TEXT NOT NULL CHECK (json_valid(config)),
        created_at INTEGER NOT NULL,
        closed_at INTEGER,
        CHECK ((state = 'closed') = (closed_at IS NOT NULL))
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX run_open ON run (created_at) WHERE state <> 'closed'",
    """
    CREATE TABLE task (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE CHECK (length(id) = 26),
        run_id TEXT NOT NULL REFERENCES run (id),
        key TEXT NOT NULL,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        kind TEXT NOT NULL,
        mailbox TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('pending', 'active', 'blocked', 'succeeded',
            'failed', 'cancelled', 'skipped')),
        priority INTEGER NOT NULL,
        worktree INTEGER NOT NULL CHECK (worktree IN (0, 1)),
        allow_empty INTEGER NOT NULL CHECK (allow_empty IN (0, 1)),
        checks TEXT NOT NULL CHECK (json_valid(checks)),
        limits TEXT NOT NULL CHECK (json_valid(limits)),
        max_attempts INTEGER NOT NULL CHECK (max_attempts >= 1),
        max_infra_attempts INTEGER NOT NULL CHECK (max_infra_attempts >= 1),
        attempts INTEGER NOT NULL DEFAULT 0,
        work_failures INTEGER NOT NULL DEFAULT 0,
        infra_failures INTEGER NOT NULL DEFAULT 0,
        not_before INTEGER,
        accepted_attempt TEXT,
        accepted_head TEXT,
        reason TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        UNIQUE (run_id, key),
        CHECK (not_before IS NULL OR state = 'pending'),
        CHECK (accepted_attempt IS NULL OR state = 'succeeded')
    ) STRICT
    """,
    "CREATE INDEX task_by_state ON task (run_id, state, number)",
    """
    CREATE TABLE dependency (
        task_id TEXT NOT NULL REFERENCES task (id),
        upstream_id TEXT NOT NULL REFERENCES task (id),
        condition TEXT NOT NULL CHECK (condition IN ('success', 'finished', 'failed')),
        PRIMARY KEY (task_id, upstream_id),
        CHECK (task_id <> upstream_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX dependency_by_upstream ON dependency (upstream_id, task_id)",
    """
    CREATE TABLE attempt (
        id TEXT PRIMARY KEY CHECK (length(id) = 26),
        run_id TEXT NOT NULL REFERENCES run (id),
        task_id TEXT NOT NULL REFERENCES task (id),
        number INTEGER NOT NULL CHECK (number >= 1),
        state TEXT NOT NULL CHECK (state IN ('allocating', 'provisioned', 'offered', 'running',
            'blocked', 'submitted', 'verifying', 'ending', 'succeeded', 'rejected', 'failed',
            'timed_out', 'lost', 'cancelled', 'provision_failed')),
        ending_as TEXT CHECK (ending_as IN ('cancelled', 'timed_out')),
        mailbox TEXT NOT NULL,
        thread_id TEXT REFERENCES thread (id),
        branch TEXT,
        worktree_path TEXT,
        base_ref TEXT,
        base_commit TEXT,
        base_source TEXT,
        dirty_paths TEXT CHECK (dirty_paths IS NULL OR json_valid(dirty_paths)),
        head_commit TEXT,
        commits_ahead INTEGER,
        reason TEXT,
        details TEXT CHECK (details IS NULL OR json_valid(details)),
        fatal INTEGER NOT NULL DEFAULT 0 CHECK (fatal IN (0, 1)),
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        ended_at INTEGER,
        UNIQUE (task_id, number),
        CHECK ((state = 'ending') = (ending_as IS NOT NULL AND ended_at IS NULL)),
        CHECK ((state IN ('succeeded', 'rejected', 'failed', 'timed_out', 'lost', 'cancelled',
            'provision_failed')) = (ended_at IS NOT NULL)),
        CHECK (state NOT IN ('offered', 'running', 'blocked', 'submitted') OR thread_id IS NOT NULL)
    ) STRICT, WITHOUT ROWID
    """,
    # One live attempt of a task: the database itself refuses a second.
    "CREATE UNIQUE INDEX attempt_live ON attempt (task_id) WHERE ended_at IS NULL",
    "CREATE INDEX attempt_live_by_run ON attempt (run_id) WHERE ended_at IS NULL",
    "CREATE UNIQUE INDEX attempt_by_thread ON attempt (thread_id) WHERE thread_id IS NOT NULL",
    "CREATE UNIQUE INDEX attempt_by_branch ON attempt (branch) WHERE branch IS NOT NULL",
    """
    CREATE TABLE intent (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL REFERENCES run (id),
        attempt_id TEXT REFERENCES attempt (id),
        kind TEXT NOT NULL CHECK (kind IN ('dispatch', 'integrate', 'cleanup')),
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
    "CREATE INDEX intent_open ON intent (run_id) WHERE closed_at IS NULL",
    """
    CREATE TABLE base_conflict (
        task_id TEXT PRIMARY KEY REFERENCES task (id),
        heads TEXT NOT NULL CHECK (json_valid(heads)),
        paths TEXT NOT NULL CHECK (json_valid(paths)),
        found_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE run_cursor (
        agent TEXT NOT NULL,
        run_id TEXT NOT NULL REFERENCES run (id),
        position INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        PRIMARY KEY (agent, run_id)
    ) STRICT, WITHOUT ROWID
    """,
)


def apply(database: Database) -> None:
    """Make the tables of the scheduler."""
    for statement in _STATEMENTS:
        database.execute(statement)
