"""Taking away what old threads carry: bodies, payloads, keys, the naming of artifacts.

Rows and events stay. Files are not the store's affair; it says which contents are not needed.
"""

from typing import NamedTuple

from inbox_orch.shared.store.engine import Session
from inbox_orch.shared.store.events import NOT_TAKEN_IN


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


# What was written to the opener of a thread, and has not been fetched. A run in which it was
# noted after the last that was written has taken that in: its leaders fetch nothing. To note that
# it has come is not to take it in.
_UNREAD = (
    "EXISTS (SELECT 1 FROM message AS m JOIN destination AS d ON d.message_id = m.id"
    " WHERE m.thread_id = t.id AND m.body IS NOT NULL AND m.sender <> t.sender"
    " AND d.mailbox = t.sender AND NOT EXISTS (SELECT 1 FROM read_cursor AS c"
    " WHERE c.agent = t.sender AND c.mailbox = t.sender AND c.position >= m.id))"
    " AND NOT EXISTS (SELECT 1 FROM event AS e WHERE e.thread_id = t.id"
    f" AND e.run_id IS NOT NULL AND e.kind NOT IN ({', '.join(map(repr, NOT_TAKEN_IN))})"
    " AND e.seq > (SELECT max(f.seq) FROM event AS f"
    " WHERE f.thread_id = t.id AND f.run_id IS NULL"
    " AND f.kind NOT IN ('thread_pruned', 'thread_unsealed')))"
)
_READ = f"(:unread OR NOT ({_UNREAD}))"

Place = tuple[int, int]
"""Where a thread stands among the final ones: when it was final, and its number."""


def due(
    tx: Session,
    finished_before_ms: int,
    limit: int,
    *,
    after: Place,
    unread: bool,
) -> tuple[list[str], Place | None]:
    """The next threads that have been final since before then, the oldest first, and where to go
    on; None at the end. At most `limit` are looked at. With `unread`, also those with something
    that has not been fetched."""
    rows = tx.all(
        f"SELECT t.id, t.finished_at, t.number, {_READ} FROM thread AS t"
        " WHERE t.finished_at IS NOT NULL AND t.pruned = 0"
        " AND t.finished_at <= :t AND (t.finished_at, t.number) > (:since, :number)"
        " ORDER BY t.finished_at, t.number LIMIT :n",
        {
            "t": finished_before_ms,
            "unread": unread,
            "since": after[0],
            "number": after[1],
            "n": limit,
        },
    )
    place = (int(rows[-1][1]), int(rows[-1][2])) if len(rows) == limit else None
    return [row[0] for row in rows if row[3]], place


def has_unread(tx: Session, thread_id: str) -> bool:
    """Whether the thread's opener has not fetched all that others wrote on it."""
    row = tx.one(f"SELECT 1 FROM thread AS t WHERE t.id = ? AND {_UNREAD}", (thread_id,))
    return row is not None


def unread_of(tx: Session, finished_before_ms: int, most: int) -> tuple[int, list[str]]:
    """How many threads that have been final since before then have something that their opener has
    not fetched; the first of them, at most so many."""
    values = {"t": finished_before_ms, "n": most}
    condition = (
        "FROM thread AS t WHERE t.finished_at IS NOT NULL AND t.pruned = 0"
        f" AND t.finished_at <= :t AND {_UNREAD}"
    )
    (number,) = tx.only(f"SELECT count(*) {condition}", values)
    rows = tx.all(f"SELECT t.id {condition} ORDER BY t.finished_at, t.number LIMIT :n", values)
    return int(number), [row[0] for row in rows]


# Threads that were pruned before and have been written on since. Such writes are rare
# and this is asked by `prune` alone, so that no index makes every message dearer.
_WRITTEN_LATER = (
    "SELECT m.thread_id FROM message AS m JOIN thread AS t ON t.id = m.thread_id"
    f" WHERE m.body IS NOT NULL AND t.pruned = 1 AND t.finished_at <= :t AND {_READ}"
    " UNION SELECT a.thread_id FROM artifact AS a JOIN thread AS t ON t.id = a.thread_id"
    f" WHERE a.pruned = 0 AND t.pruned = 1 AND t.finished_at <= :t AND {_READ}"
)


def written_later(tx: Session, finished_before_ms: int, *, unread: bool) -> list[str]:
    """Threads that have been final since before then, were pruned, and have been written on
    since. Goes through all messages: not to be called behind the gate."""
    values = {"t": finished_before_ms, "unread": unread}
    rows = tx.all(_WRITTEN_LATER, values)
    return [row[0] for row in rows]


_OLD_KEYS = "FROM request WHERE thread_id IS NULL AND created_at <= ?"


def remove_old_keys(tx: Session, stored_before_ms: int) -> int:
    """Take the keys that belong to no thread and were stored before then; returns how many."""
    return tx.run(f"DELETE {_OLD_KEYS}", (stored_before_ms,))


_COUNT_MESSAGES = (
    "SELECT count(*), coalesce(sum(length(CAST(m.body AS BLOB))"
    " + length(CAST(coalesce(m.payload, '') AS BLOB))), 0) FROM message AS m"
    " WHERE m.body IS NOT NULL"
)


def empty_thread(tx: Session, thread_id: str) -> Removal:
    """Take everything from a final thread and mark it and its artifacts as pruned."""
    messages, body_bytes = tx.only(f"{_COUNT_MESSAGES} AND m.thread_id = ?", (thread_id,))
    tx.run(
        "UPDATE message SET body = NULL, payload = NULL WHERE thread_id = ? AND body IS NOT NULL",
        (thread_id,),
    )
    rows = tx.all(
        "UPDATE artifact SET pruned = 1 WHERE thread_id = ? AND pruned = 0 RETURNING sha256",
        (thread_id,),
    )
    keys = tx.run("DELETE FROM request WHERE thread_id = ?", (thread_id,))
    tx.run("UPDATE thread SET pruned = 1, result_schema = NULL WHERE id = ?", (thread_id,))
    contents = tuple(dict.fromkeys(row[0] for row in rows))
    return Removal(messages, body_bytes, len(rows), keys, contents)


_DUE = (
    "SELECT t.id FROM thread AS t"
    f" WHERE t.finished_at IS NOT NULL AND t.pruned = 0 AND t.finished_at <= :t AND {_READ}"
    f" UNION {_WRITTEN_LATER}"
)


class Forecast(NamedTuple):
    """What pruning would take. `files` are contents that no remaining thread refers to."""

    threads: int
    messages: int
    body_bytes: int
    artifacts: int
    keys: int
    files: int
    file_bytes: int


def forecast(tx: Session, finished_before_ms: int, *, unread: bool) -> Forecast:
    """What `empty_thread` on every thread that is due would come to."""
    when = {"t": finished_before_ms, "unread": unread}

    def one(query: str) -> tuple[int, ...]:
        row = tx.only(f"WITH due (id) AS ({_DUE}) {query}", when)
        return tuple(row)

    among = "thread_id IN (SELECT id FROM due)"
    (threads,) = one("SELECT count(*) FROM due")
    messages = one(f"{_COUNT_MESSAGES} AND m.{among}")
    (artifacts,) = one(f"SELECT count(*) FROM artifact WHERE pruned = 0 AND {among}")
    (keys,) = one(f"SELECT count(*) FROM request WHERE {among}")
    files = one(
        "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT max(bytes) AS size FROM artifact"
        f" WHERE pruned = 0 GROUP BY sha256 HAVING min({among}) = 1)"
    )
    old = tx.only(f"SELECT count(*) {_OLD_KEYS}", (finished_before_ms,))[0]
    return Forecast._make((threads, *messages, artifacts, keys + old, *files))
