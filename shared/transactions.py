"""One transaction as the services see it: the connection, one moment, who is to be woken."""

import sqlite3

from .clock import Moment
from .errors import InboxOrchError


class Transaction:
    """What a service has in hand while it writes: the connection and one moment.

    `ring` collects wake-ups that are given once the outermost transaction has committed.
    """

    def __init__(self, connection: sqlite3.Connection, now: Moment, *, durable: bool) -> None:
        self.connection = connection
        self.now = now
        self.durable = durable
        self.topics: set[str] = set()
        self._changes = connection.total_changes
        self._kept: frozenset[str] | None = None

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
