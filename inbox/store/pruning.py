"""Taking away what old threads carry: bodies, payloads, keys, the naming of artifacts.

Rows and events stay. Files are not the store's affair; it says which contents nobody needs.
"""

import sqlite3
from typing import NamedTuple


class Removal(NamedTuple):
    """What is taken from one thread, or from several together. `body_bytes` counts payloads,
    too; `contents` are the digests that the thread's artifacts referred to."""

    messages: int
    body_bytes: int
    artifacts: int
    keys: int
    contents: tuple[str, ...] = ()

    def plus(self, other: "Removal") -> "Removal":
        """The counts of both."""
        return Removal(
            self.messages + other.messages,
            self.body_bytes + other.body_bytes,
            self.artifacts + other.artifacts,
            self.keys + other.keys,
        )


def due(connection: sqlite3.Connection, finished_before_ms: int, limit: int) -> list[str]:
    """At most `limit` threads that have been final since before then, the oldest first."""
    rows = connection.execute(
        "SELECT id FROM thread WHERE finished_at IS NOT NULL AND pruned = 0 AND finished_at <= ?"
        " ORDER BY finished_at LIMIT ?",
        (finished_before_ms, limit),
    ).fetchall()
    return [row[0] for row in rows]


_COUNT_MESSAGES = (
    "SELECT count(*), coalesce(sum(length(CAST(coalesce(m.body, '') AS BLOB))"
    " + length(CAST(coalesce(m.payload, '') AS BLOB))), 0) FROM message AS m"
)


def empty_thread(connection: sqlite3.Connection, thread_id: str) -> Removal:
    """Take everything from a final thread and mark it and its artifacts as pruned."""
    messages, body_bytes = connection.execute(
        f"{_COUNT_MESSAGES} WHERE m.thread_id = ?", (thread_id,)
    ).fetchone()
    connection.execute(
        "UPDATE message SET body = NULL, payload = NULL WHERE thread_id = ?", (thread_id,)
    )
    rows = connection.execute(
        "UPDATE artifact SET pruned = 1 WHERE thread_id = ? AND pruned = 0 RETURNING sha256",
        (thread_id,),
    ).fetchall()
    keys = connection.execute("DELETE FROM request WHERE thread_id = ?", (thread_id,)).rowcount
    connection.execute("UPDATE thread SET pruned = 1 WHERE id = ?", (thread_id,))
    contents = tuple(dict.fromkeys(row[0] for row in rows))
    return Removal(messages, body_bytes, len(rows), keys, contents)


_DUE = "FROM thread AS t WHERE t.finished_at IS NOT NULL AND t.pruned = 0 AND t.finished_at <= :t"


class Forecast(NamedTuple):
    """What pruning would take. `files` are contents that no remaining thread refers to."""

    threads: int
    messages: int
    body_bytes: int
    artifacts: int
    keys: int
    files: int
    file_bytes: int


def forecast(connection: sqlite3.Connection, finished_before_ms: int) -> Forecast:
    """What `empty_thread` on every thread that is due would come to."""
    when = {"t": finished_before_ms}
    among = f"IN (SELECT t.id {_DUE})"
    threads = connection.execute(f"SELECT count(*) {_DUE}", when).fetchone()[0]
    messages = connection.execute(f"{_COUNT_MESSAGES} WHERE m.thread_id {among}", when).fetchone()
    artifacts = connection.execute(
        f"SELECT count(*) FROM artifact WHERE pruned = 0 AND thread_id {among}", when
    ).fetchone()[0]
    keys = connection.execute(
        f"SELECT count(*) FROM request WHERE thread_id {among}", when
    ).fetchone()[0]
    files = connection.execute(
        "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT max(bytes) AS size FROM artifact"
        f" WHERE pruned = 0 GROUP BY sha256 HAVING min(thread_id {among}) = 1)",
        when,
    ).fetchone()
    return Forecast._make((threads, *messages, artifacts, keys, *files))
