"""What throughput.py lets compete: the bus, raw SQLite commits, and the queues of the peers.

Each contender fills a folder with queued items, and opens a queue whose `cycle` takes an item
and finishes it. The libraries are imported where they are used, because no environment has
them all.
"""

# ruff: noqa: S608 - tables and columns are put into statements here, never values

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

BODY = "x" * 200
RESULT = "r" * 200
# So many a call lists where that can be said, as `inbox list` does by itself.
LISTED = 50
CHECKPOINT_BYTES = 4 * 1024 * 1024


class Queue(Protocol):
    """A queue as one process has opened it. One that can show the first queued items has a
    method `listing` besides."""

    def cycle(self) -> tuple[str, list[float]] | None:
        """(item, seconds of each single call) after taking an item and finishing it; None when
        there is none."""


class Contender(Protocol):
    """A kind of queue. `durable` says in words what a finished call survives."""

    durable: str
    calls: str

    def fill(self, folder: Path, items: int) -> None:
        """Queue so many items."""

    def open(self, folder: Path, worker: str) -> Queue:
        """The queue, for one process."""

    def left(self, folder: Path) -> int | None:
        """How many items are still queued, or None where nothing is queued."""


class Inbox:
    """The bus: claim a thread, finish it with a result."""

    durable = "FULL"
    calls = "claim, done"

    def fill(self, folder: Path, items: int) -> None:
        from stock import stock

        stock(self._path(folder), done=1, pending=items)

    def open(self, folder: Path, worker: str) -> "_InboxQueue":
        return _InboxQueue(self._path(folder), worker)

    def left(self, folder: Path) -> int:
        from stock import MAILBOX

        from inbox_orch.inbox import Bus

        with Bus.open(self._path(folder)) as bus:
            (counts,) = (m for m in bus.stats().mailboxes if m["mailbox"] == MAILBOX)
        assert counts["claimed"] == 0, "a worker has left a thread behind"
        return int(counts["pending"])

    def _path(self, folder: Path) -> Path:
        return folder / ".inbox" / "bus.db"


class _InboxQueue:
    def __init__(self, path: Path, worker: str) -> None:
        from stock import MAILBOX

        from inbox_orch.inbox import Bus
        from inbox_orch.shared.errors import InboxOrchError

        self._bus = Bus.open(path, agent=worker)
        self._mailboxes = [MAILBOX]
        self._error = InboxOrchError

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        try:
            claim = self._bus.claim(mailboxes=self._mailboxes)
        except self._error as error:
            if error.code != "nothing_available":
                raise
            return None
        between = time.perf_counter()
        self._bus.done(claim.thread.id, claim.lease.token, body=RESULT)
        after = time.perf_counter()
        return claim.thread.id, [between - before, after - between]

    def listing(self) -> object:
        found = self._bus.list(mailboxes=self._mailboxes, states_wanted=["pending"], limit=LISTED)
        return found.items


class Raw:
    """Bare SQLite: two commits that write as many pages to the log as a claim and a done.

    They overwrite rows, so that a checkpoint finds most pages many times in the log, as it does
    behind the bus.
    """

    durable = "FULL"
    calls = "2 commits"
    _rows = 16

    def __init__(self, *, gate: bool) -> None:
        self._gate = gate

    def fill(self, folder: Path, items: int) -> None:
        sizes = bytes_of_a_cycle(folder / "measured")
        with contextlib.closing(sqlite3.connect(self._path(folder))) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE item (kind INTEGER, n INTEGER, data BLOB)")
            connection.execute("CREATE UNIQUE INDEX item_by_kind ON item (kind, n)")
            for kind, size in enumerate(sizes):
                # The log has a header for each page of 4,096 bytes, and one page is the row's own.
                data = b"x" * ((size // 4120 - 1) * 4092)
                connection.executemany(
                    "INSERT INTO item VALUES (?, ?, ?)",
                    [(kind, number, data) for number in range(self._rows)],
                )
            connection.commit()

    def open(self, folder: Path, worker: str) -> "_RawQueue":
        return _RawQueue(self._path(folder), gate=self._gate)

    def left(self, folder: Path) -> None:
        return None

    def _path(self, folder: Path) -> Path:
        return folder / "raw.db"


class _RawQueue:
    def __init__(self, path: Path, *, gate: bool) -> None:
        from inbox_orch.shared.store.gate import Gate

        self._connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._connection.execute("PRAGMA synchronous=FULL")
        self._log = f"{path}-wal"
        self._gate = Gate(f"{path}-gate") if gate else None
        if gate:
            self._connection.execute("PRAGMA wal_autocheckpoint=0")
            self._connection.execute(f"PRAGMA journal_size_limit={CHECKPOINT_BYTES}")
        self._sizes = [
            row[0]
            for row in self._connection.execute(
                "SELECT length(data) FROM item WHERE n = 0 ORDER BY kind"
            ).fetchall()
        ]
        self._number = os.getpid()

    def cycle(self) -> tuple[str, list[float]]:
        times = []
        self._number += 1
        for kind, size in enumerate(self._sizes):
            # SQLite skips pages that have not changed.
            data = bytes([self._number % 251]) * size
            before = time.perf_counter()
            self._commit(kind, data)
            times.append(time.perf_counter() - before)
        return f"{os.getpid()}-{self._number}", times

    def _commit(self, kind: int, data: bytes) -> None:
        if self._gate is not None:
            self._gate.acquire(60)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "UPDATE item SET data = ? WHERE kind = ? AND n = ?",
                (data, kind, self._number % Raw._rows),
            )
            self._connection.execute("COMMIT")
            if self._gate is not None and os.stat(self._log).st_size > CHECKPOINT_BYTES:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        finally:
            if self._gate is not None:
                self._gate.release()


def bytes_of_a_cycle(folder: Path) -> tuple[int, int]:
    """How much a claim and a done write to the log, on average of some."""
    from stock import MAILBOX, stock

    from inbox_orch.inbox import Bus

    path, rounds = folder / "bus.db", 20
    folder.mkdir()
    stock(path, done=1, pending=200)
    with Bus.open(path, agent="worker") as bus:

        def size() -> int:
            return os.stat(bus.database.layout.wal).st_size

        bus.claim(mailboxes=[MAILBOX])
        sizes = [size()]
        claims = [bus.claim(mailboxes=[MAILBOX]) for _ in range(rounds)]
        sizes.append(size())
        for claim in claims:
            bus.done(claim.thread.id, claim.lease.token, body=RESULT)
        sizes.append(size())
    return (sizes[1] - sizes[0]) // rounds, (sizes[2] - sizes[1]) // rounds


# -- peers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def _filling(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        yield connection
        connection.commit()


_NUMBERS = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)"


class LiteQueue:
    """litequeue: pop, done. Set to FULL, since its own NORMAL may lose what it acknowledged."""

    durable = "FULL (its default: NORMAL)"
    calls = "pop, done"

    def fill(self, folder: Path, items: int) -> None:
        import litequeue

        litequeue.LiteQueue(str(folder / "queue.db"))
        with _filling(folder / "queue.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO [Queue] (data, message_id, status, in_time)"
                " SELECT ?, printf('%032d', i), 0, i FROM n",
                (items, BODY),
            )

    def open(self, folder: Path, worker: str) -> "_LiteQueue":
        return _LiteQueue(folder / "queue.db")

    def left(self, folder: Path) -> int:
        return _count(folder / "queue.db", "[Queue] WHERE status = 0")


class _LiteQueue:
    def __init__(self, path: Path) -> None:
        import litequeue

        self._queue = litequeue.LiteQueue(str(path), timeout=60)
        self._queue.conn.execute("PRAGMA synchronous=FULL")

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        message = self._queue.pop()
        between = time.perf_counter()
        if message is None:
            return None
        self._queue.done(message.message_id)
        return message.message_id, [between - before, time.perf_counter() - between]


class Huey:
    """huey's SQLite storage: taking a task deletes it, so that a crash loses it."""

    durable = "FULL"
    calls = "dequeue (deletes)"

    def fill(self, folder: Path, items: int) -> None:
        self.open(folder, "filler")
        with _filling(folder / "huey.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO task (queue, data)"
                " SELECT 'q', CAST(i || ':' || ? AS BLOB) FROM n",
                (items, BODY),
            )

    def open(self, folder: Path, worker: str) -> "_HueyQueue":
        return _HueyQueue(folder / "huey.db")

    def left(self, folder: Path) -> int:
        return _count(folder / "huey.db", "task")


class _HueyQueue:
    def __init__(self, path: Path) -> None:
        from huey.storage import SqliteStorage

        self._storage = SqliteStorage("q", str(path), fsync=True, timeout=60)

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        data = self._storage.dequeue()
        after = time.perf_counter()
        return None if data is None else (bytes(data).split(b":")[0].decode(), [after - before])

    def listing(self) -> object:
        return self._storage.enqueued_items(LISTED)


class PersistQueue:
    """persist-queue's SQLiteAckQueue: get, ack."""

    durable = "FULL"
    calls = "get, ack"

    def fill(self, folder: Path, items: int) -> None:
        queue = self._queue(folder)
        queue.put(BODY)
        with _filling(folder / "queue" / "data.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO ack_queue_default (data, timestamp, status)"
                " SELECT a.data, a.timestamp, a.status FROM n, ack_queue_default AS a"
                " WHERE a._id = 1",
                (items - 1,),
            )

    def open(self, folder: Path, worker: str) -> "_PersistQueue":
        return _PersistQueue(self._queue(folder))

    def left(self, folder: Path) -> int:
        return _count(folder / "queue" / "data.db", "ack_queue_default WHERE status < 2")

    def _queue(self, folder: Path) -> Any:
        import persistqueue

        return persistqueue.SQLiteAckQueue(
            str(folder / "queue"), multithreading=True, auto_resume=False, timeout=60
        )


class _PersistQueue:
    def __init__(self, queue: Any) -> None:
        import persistqueue

        self._queue, self._empty = queue, persistqueue.Empty

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        try:
            item = self._queue.get(block=False, raw=True)
        except self._empty:
            return None
        between = time.perf_counter()
        self._queue.ack(id=item["pqid"])
        return str(item["pqid"]), [between - before, time.perf_counter() - between]

    def listing(self) -> object:
        return self._queue.queue()


class SimpleBroker:
    """simplebroker: move an item to a queue of the worker's own, then delete it there."""

    durable = "FULL"
    calls = "move, delete"

    def fill(self, folder: Path, items: int) -> None:
        queue = self.open(folder, "filler").source
        queue.write(BODY)
        with _filling(folder / "broker.db") as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO messages (queue, body, ts)"
                " SELECT m.queue, m.body, m.ts - n.i"
                " FROM n, (SELECT * FROM messages LIMIT 1) AS m",
                (items - 1,),
            )

    def open(self, folder: Path, worker: str) -> "_SimpleBroker":
        return _SimpleBroker(folder / "broker.db", worker)

    def left(self, folder: Path) -> int:
        return _count(folder / "broker.db", "messages WHERE queue = 'tasks' AND claimed = 0")


class _SimpleBroker:
    def __init__(self, path: Path, worker: str) -> None:
        from simplebroker import Queue as BrokerQueue

        self.source = BrokerQueue("tasks", db_path=str(path), persistent=True)
        self._own = BrokerQueue(f"own-{worker}", db_path=str(path), persistent=True)
        self._target = f"own-{worker}"

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        moved = self.source.move_one(self._target, with_timestamps=True)
        between = time.perf_counter()
        if moved is None:
            return None
        self._own.delete(message_id=moved[1])
        return str(moved[1]), [between - before, time.perf_counter() - between]

    def listing(self) -> object:
        return self.source.peek_many(LISTED)


class Fleetwright:
    """fleetwright: claim, finish with the token of the lease."""

    durable = "FULL"
    calls = "claim, finish"

    def fill(self, folder: Path, items: int) -> None:
        from fleetwright import leases

        path = folder / "fleet.db"
        leases.connect(path).close()
        with _filling(path) as connection:
            connection.execute(
                f"{_NUMBERS} INSERT INTO unit (unit_id, kind, name, status, meta, created_at,"
                " updated_at) SELECT 'task:u' || i, 'task', 'u' || i, 'open', '{}', i, i FROM n",
                (items,),
            )

    def open(self, folder: Path, worker: str) -> "_Fleetwright":
        return _Fleetwright(folder / "fleet.db", worker)

    def left(self, folder: Path) -> int:
        return _count(folder / "fleet.db", "unit WHERE status = 'open'")


class _Fleetwright:
    def __init__(self, path: Path, worker: str) -> None:
        from fleetwright import leases

        self._leases, self._worker = leases, worker
        self._connection = leases.connect(path)
        self._connection.execute("PRAGMA busy_timeout=60000")

    def cycle(self) -> tuple[str, list[float]] | None:
        before = time.perf_counter()
        units = self._leases.claim(self._connection, worker=self._worker)
        between = time.perf_counter()
        if not units:
            return None
        unit = units[0].unit_id
        self._leases.finish(self._connection, unit, worker=self._worker, result=RESULT)
        return unit, [between - before, time.perf_counter() - between]

    def listing(self) -> object:
        return self._leases.units(self._connection, status="open", limit=LISTED)["units"]


def _count(path: Path, what: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {what}").fetchone()[0])


OURS: dict[str, Contender] = {
    "inbox": Inbox(),
    "raw, same bytes, our gate": Raw(gate=True),
    "raw, same bytes, busy_timeout": Raw(gate=False),
}
THEIRS: dict[str, Contender] = {
    "simplebroker": SimpleBroker(),
    "huey": Huey(),
    "litequeue": LiteQueue(),
    "persist-queue": PersistQueue(),
    "fleetwright": Fleetwright(),
}
