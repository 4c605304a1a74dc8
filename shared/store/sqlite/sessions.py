"""What runs SQL on SQLite: the snapshot and the transaction that a service has in hand."""

import sqlite3
from collections.abc import Iterable, Iterator

from ...clock import Moment
from ...errors import InboxOrchError
from ..engine import LIBRARY_ERRORS, Parameters, Row, Session

# What it raises on its own; `refusals` turns it into the errors of the program.
LIBRARY_ERRORS.append(sqlite3.Error)
Connection = sqlite3.Connection


class Snapshot:
    """The database as of one commit; see `Session` for what its methods give."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return _one(self.connection, sql, parameters)

    def only(self, sql: str, parameters: Parameters = ()) -> Row:
        return _only(self.connection, sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self.connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        return self.connection.execute(sql, parameters)

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self.connection.execute(sql, parameters).rowcount

    def run_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self.connection.executemany(sql, rows)

    def add(self, sql: str, parameters: Parameters = ()) -> int:
        return _added(self.connection, sql, parameters)


class Transaction:
    """What a service has in hand while it writes: a session and one moment.

    `ring` collects wake-ups that are given once the outermost transaction has committed.
    """

    def __init__(self, connection: sqlite3.Connection, now: Moment, *, durable: bool) -> None:
        self.connection = connection
        self.now = now
        self.durable = durable
        self.topics: set[str] = set()
        self._changes = connection.total_changes
        self._kept: frozenset[str] | None = None

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return _one(self.connection, sql, parameters)

    def only(self, sql: str, parameters: Parameters = ()) -> Row:
        return _only(self.connection, sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self.connection.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        return self.connection.execute(sql, parameters)

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self.connection.execute(sql, parameters).rowcount

    def run_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self.connection.executemany(sql, rows)

    def add(self, sql: str, parameters: Parameters = ()) -> int:
        return _added(self.connection, sql, parameters)

    def ring(self, *topics: str) -> None:
        """Wake those who wait for `topics` after the commit."""
        self.topics.update(topics)

    def keep(self) -> None:
        """What has been written so far stays, also when the rest is refused: an expiry that a
        call came across is a fact, whatever becomes of the call."""
        if self.connection.total_changes != self._changes:
            self.connection.execute("SAVEPOINT kept")
            self._kept = frozenset(self.topics)

    def drop_the_rest(self, error: BaseException) -> bool:
        """Go back to what is to be kept when `error` is a refusal; whether there is anything.

        A failed statement may have rolled everything back already.
        """
        kept = self._kept
        refused = isinstance(error, InboxOrchError) and self.connection.in_transaction
        if kept is None or not refused:
            return False
        self.connection.execute("ROLLBACK TO kept")
        self.topics = set(kept)
        return True

    def begin_joined(self) -> tuple[int, frozenset[str] | None]:
        """A call within the transaction has its own idea of what is to be kept; returns what
        `end_joined` puts back."""
        before = self._changes, self._kept
        self._changes, self._kept = self.connection.total_changes, None
        return before

    def end_joined(self, before: tuple[int, frozenset[str] | None]) -> None:
        """The end of what `begin_joined` began."""
        self._changes, self._kept = before


def connection_of(session: Session) -> sqlite3.Connection:
    """The bare connection under a session, for what only SQLite has."""
    assert isinstance(session, Snapshot | Transaction), "a session of another engine"
    return session.connection


def _one(connection: sqlite3.Connection, sql: str, parameters: Parameters) -> Row | None:
    row: Row | None = connection.execute(sql, parameters).fetchone()
    return row


def _only(connection: sqlite3.Connection, sql: str, parameters: Parameters) -> Row:
    row = _one(connection, sql, parameters)
    assert row is not None, "the statement always has a row"
    return row


def _added(connection: sqlite3.Connection, sql: str, parameters: Parameters) -> int:
    number = connection.execute(sql, parameters).lastrowid
    assert number is not None, "an INSERT gives its row a number"
    return number
