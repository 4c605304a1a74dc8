"""Databases with very many threads, made in seconds.

The services make one thread of each kind; SQL copies its rows, whatever tables and columns the
schema has, with ids, tokens and numbers of their own. So every row is as a service writes it.
"""

# ruff: noqa: S608 - tables and columns are put into statements here, never values

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating

MAILBOX, SENDER, WORKER = "workers", "leader", "worker"
BODY = "x" * 200
_BATCH = 100_000


def stock(path: Path, *, done: int, pending: int) -> None:
    """Make the database at `path` with so many finished and so many queued threads (at least
    one of each)."""
    creating.create(str(path))
    with Bus.open(path, agent=SENDER) as leader, Bus.open(path, agent=WORKER) as worker:
        finished = leader.send(to=MAILBOX, subject="task", body=BODY).thread
        claim = worker.claim(mailboxes=[MAILBOX])
        worker.done(finished.id, claim.lease.token, body=BODY)
        _copy(path, finished.id, done - 1)
        queued = leader.send(to=MAILBOX, subject="task", body=BODY).thread
        _copy(path, queued.id, pending - 1)


def _copy(path: Path, thread_id: str, copies: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-500000")
        connection.execute("PRAGMA temp_store=MEMORY")
        copier = _Copier(connection, thread_id)
        for start in range(0, copies, _BATCH):
            connection.execute("BEGIN IMMEDIATE")
            copier.copy(min(_BATCH, copies - start))
            connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


class _Copier:
    """Copies the rows of one thread."""

    def __init__(self, connection: sqlite3.Connection, thread_id: str) -> None:
        self._connection = connection
        connection.execute("CREATE TEMP TABLE copy (i INTEGER PRIMARY KEY, id TEXT NOT NULL)")
        self._take("thread", "id", thread_id, "number")
        for table, order in (("message", "id"), ("lease", "epoch"), ("event", "seq")):
            self._take(table, "thread_id", thread_id, order)
        connection.execute(
            "CREATE TEMP TABLE of_destination AS SELECT d.*, m.rank FROM destination AS d"
            " JOIN of_message AS m ON m.id = d.message_id"
        )

    def copy(self, copies: int) -> None:
        """So many more threads like it, in the transaction that the caller has begun."""
        run = self._connection.execute
        first = 1 + run("SELECT max(number) FROM thread").fetchone()[0]
        messages = run("SELECT count(*) FROM of_message").fetchone()[0]
        last_message = run("SELECT max(id) FROM message").fetchone()[0]
        # The number of a copied message, from the copy's number and the message's place.
        message = f"({last_message} + (c.i - {first}) * {messages} + {{rank}})"
        run("DELETE FROM copy")
        run(
            "INSERT INTO copy WITH RECURSIVE n (i) AS (VALUES (?) UNION ALL"
            " SELECT i + 1 FROM n WHERE i + 1 < ?) SELECT i, printf('01%024d', i) FROM n",
            (first, first + copies),
        )
        rank_of = "(SELECT m.rank FROM of_message AS m WHERE m.id = {column})"
        end_message = message.format(rank=rank_of.format(column="t.end_message"))
        event_message = message.format(
            rank=rank_of.format(column="json_extract(t.data, '$.message')")
        )
        new_data = (
            "iif(json_extract(t.data, '$.message') IS NULL, t.data,"
            f" json_set(t.data, '$.message', {event_message}))"
        )
        self._insert("thread", {"number": "c.i", "id": "c.id"})
        self._insert("message", {"id": message.format(rank="t.rank"), "thread_id": "c.id"})
        self._insert("destination", {"message_id": message.format(rank="t.rank")})
        self._insert(
            "lease",
            {
                "thread_id": "c.id",
                "token": "lower(hex(randomblob(16)))",
                "end_message": f"iif(t.end_message IS NULL, NULL, {end_message})",
            },
        )
        self._insert("event", {"seq": "NULL", "thread_id": "c.id", "data": new_data})

    def _take(self, table: str, column: str, thread_id: str, order: str) -> None:
        self._connection.execute(
            f"CREATE TEMP TABLE of_{table} AS SELECT *, row_number() OVER (ORDER BY {order})"
            f" AS rank FROM {table} WHERE {column} = ?",
            (thread_id,),
        )

    def _insert(self, table: str, values: dict[str, str]) -> None:
        columns = self._columns(table)
        selected = ", ".join(values.get(column, f"t.{column}") for column in columns)
        self._connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {selected}"
            f" FROM copy AS c CROSS JOIN of_{table} AS t ORDER BY c.i, t.rank"
        )

    def _columns(self, table: str) -> Sequence[str]:
        rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        return [row[1] for row in rows]
