"""Step 1: threads, messages, leases, artifacts, cursors, keys, events."""

from sqlite_utils import Database

_STATEMENTS = (
    """
    CREATE TABLE meta (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE thread (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE CHECK (length(id) = 26),
        subject TEXT NOT NULL,
        sender TEXT NOT NULL,
        mailbox TEXT NOT NULL,
        state TEXT NOT NULL
            CHECK (state IN ('pending', 'claimed', 'blocked', 'done', 'failed', 'cancelled')),
        priority INTEGER NOT NULL,
        sealed INTEGER NOT NULL CHECK (sealed IN (0, 1)),
        available_at INTEGER NOT NULL,
        delayed INTEGER NOT NULL CHECK (delayed IN (0, 1)),
        deliveries INTEGER NOT NULL DEFAULT 0 CHECK (deliveries >= 0),
        max_deliveries INTEGER NOT NULL CHECK (max_deliveries >= 1),
        uncounted INTEGER NOT NULL DEFAULT 0 CHECK (uncounted IN (0, 1)),
        epoch INTEGER NOT NULL DEFAULT 0 CHECK (epoch >= 0),
        holder TEXT,
        question INTEGER REFERENCES message (id),
        question_deadline INTEGER,
        progress INTEGER CHECK (progress BETWEEN 0 AND 100),
        reason TEXT,
        fatal INTEGER NOT NULL DEFAULT 0 CHECK (fatal IN (0, 1)),
        late INTEGER NOT NULL DEFAULT 0 CHECK (late IN (0, 1)),
        cancel_seen INTEGER NOT NULL DEFAULT 0 CHECK (cancel_seen IN (0, 1)),
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        finished_at INTEGER,
        pruned INTEGER NOT NULL DEFAULT 0 CHECK (pruned IN (0, 1)),
        CHECK ((state IN ('done', 'failed', 'cancelled')) = (finished_at IS NOT NULL)),
        CHECK (state <> 'claimed' OR holder IS NOT NULL),
        CHECK (holder IS NULL OR state IN ('claimed', 'blocked')),
        CHECK ((state = 'blocked') = (question IS NOT NULL)),
        CHECK (question_deadline IS NULL OR question IS NOT NULL),
        CHECK (delayed = 0 OR state = 'pending'),
        CHECK (pruned = 0 OR finished_at IS NOT NULL)
    ) STRICT
    """,
    # What may be claimed, in the order in which it is claimed.
    """
    CREATE INDEX thread_claimable ON thread (mailbox, priority DESC, number)
        WHERE state = 'pending' AND delayed = 0
    """,
    "CREATE INDEX thread_delayed ON thread (mailbox, available_at) WHERE delayed = 1",
    """
    CREATE INDEX thread_question_deadline ON thread (question_deadline)
        WHERE question_deadline IS NOT NULL
    """,
    # For lists: what is fixed, then the order. `sealed`, so that counting needs the index alone.
    # Every index with the state in it makes each change of a state write two more pages.
    "CREATE INDEX thread_by_mailbox ON thread (mailbox, state, number, sealed)",
    "CREATE INDEX thread_by_sender ON thread (sender, number)",
    "CREATE INDEX thread_blocked ON thread (sender, number) WHERE state = 'blocked'",
    "CREATE INDEX thread_sealed ON thread (number) WHERE sealed = 1",
    "CREATE INDEX thread_by_holder ON thread (holder) WHERE holder IS NOT NULL",
    """
    CREATE INDEX thread_prunable ON thread (finished_at)
        WHERE finished_at IS NOT NULL AND pruned = 0
    """,
    """
    CREATE TABLE message (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        thread_id TEXT NOT NULL REFERENCES thread (id),
        kind TEXT NOT NULL CHECK (kind IN ('task', 'progress', 'question', 'reply', 'result',
            'failure', 'release', 'cancel', 'system')),
        sender TEXT NOT NULL,
        body TEXT,
        body_sha256 TEXT NOT NULL,
        body_bytes INTEGER NOT NULL,
        payload TEXT,
        options TEXT,
        deadline INTEGER,
        progress INTEGER,
        answers INTEGER REFERENCES message (id),
        epoch INTEGER,
        created_at INTEGER NOT NULL
    ) STRICT
    """,
    "CREATE INDEX message_by_thread ON message (thread_id, id)",
    """
    CREATE TABLE destination (
        mailbox TEXT NOT NULL,
        message_id INTEGER NOT NULL REFERENCES message (id),
        PRIMARY KEY (mailbox, message_id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX destination_by_message ON destination (message_id, mailbox)",
    """
    CREATE TABLE lease (
        thread_id TEXT NOT NULL REFERENCES thread (id),
        epoch INTEGER NOT NULL,
        token TEXT NOT NULL UNIQUE,
        holder TEXT NOT NULL,
        lease_ms INTEGER NOT NULL CHECK (lease_ms > 0),
        boot_id TEXT NOT NULL,
        deadline_monotonic INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        acquired_at INTEGER NOT NULL,
        renewed_at INTEGER,
        renewals INTEGER NOT NULL DEFAULT 0,
        counted INTEGER NOT NULL CHECK (counted IN (0, 1)),
        mailbox TEXT NOT NULL,
        read_position INTEGER NOT NULL DEFAULT 0,
        ended_at INTEGER,
        ended_by TEXT
            CHECK (ended_by IN ('expired', 'released', 'failed', 'done', 'cancelled')),
        end_digest TEXT,
        end_message INTEGER REFERENCES message (id),
        PRIMARY KEY (thread_id, epoch),
        CHECK ((ended_at IS NULL) = (ended_by IS NULL))
    ) STRICT, WITHOUT ROWID
    """,
    # One owner: the database itself refuses a second live lease on a thread.
    "CREATE UNIQUE INDEX lease_live ON lease (thread_id) WHERE ended_at IS NULL",
    """
    CREATE INDEX lease_expiry ON lease (mailbox, boot_id, deadline_monotonic)
        WHERE ended_at IS NULL
    """,
    """
    CREATE TABLE artifact (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        thread_id TEXT NOT NULL REFERENCES thread (id),
        message_id INTEGER REFERENCES message (id),
        name TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        bytes INTEGER NOT NULL CHECK (bytes >= 0),
        created_at INTEGER NOT NULL,
        pruned INTEGER NOT NULL DEFAULT 0 CHECK (pruned IN (0, 1))
    ) STRICT
    """,
    "CREATE INDEX artifact_by_thread ON artifact (thread_id, name, id)",
    "CREATE INDEX artifact_by_message ON artifact (message_id, id)",
    "CREATE INDEX artifact_by_content ON artifact (sha256) WHERE pruned = 0",
    """
    CREATE TABLE read_cursor (
        agent TEXT NOT NULL,
        mailbox TEXT NOT NULL,
        position INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        PRIMARY KEY (agent, mailbox)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE reader (
        mailbox TEXT NOT NULL,
        agent TEXT NOT NULL,
        first_seen_at INTEGER NOT NULL,
        PRIMARY KEY (mailbox, agent)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE request (
        command TEXT NOT NULL,
        agent TEXT NOT NULL,
        key TEXT NOT NULL,
        digest TEXT NOT NULL,
        response TEXT NOT NULL,
        thread_id TEXT,
        created_at INTEGER NOT NULL,
        PRIMARY KEY (command, agent, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX request_by_thread ON request (thread_id) WHERE thread_id IS NOT NULL",
    """
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        actor TEXT NOT NULL,
        thread_id TEXT,
        mailbox TEXT,
        run_id TEXT,
        task_id TEXT,
        attempt_id TEXT,
        data TEXT NOT NULL CHECK (json_valid(data))
    ) STRICT
    """,
    "CREATE INDEX event_by_thread ON event (thread_id, seq) WHERE thread_id IS NOT NULL",
    "CREATE INDEX event_by_run ON event (run_id, seq) WHERE run_id IS NOT NULL",
    "CREATE INDEX event_by_mailbox ON event (mailbox, seq) WHERE mailbox IS NOT NULL",
    """
    CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
    BEGIN SELECT raise(ABORT, 'events are never changed'); END
    """,
    """
    CREATE TRIGGER event_never_goes BEFORE DELETE ON event
    BEGIN SELECT raise(ABORT, 'events are never removed'); END
    """,
)


def apply(database: Database) -> None:
    """Make the tables of the bus."""
    for statement in _STATEMENTS:
        database.execute(statement)
