"""The seam of the store: what SQL is run on, and what an engine has to offer.

The `*rows` modules know a `Session` and plain SQL, services an `Engine`. Neither knows which
engine it is: what belongs to one alone lies in its own folder (`sqlite`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..clock import Clock, Moment
from .layout import Layout

Parameters = Sequence[Any] | Mapping[str, Any]


class Row(Protocol):
    """One row of a result; its values by position, or by the names of their columns."""

    def __getitem__(self, key: int | str | slice, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Session(Protocol):
    """Something on which SQL runs: the snapshot or the transaction of a service."""

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of the result, None when it has none."""

    def only(self, sql: str, parameters: Parameters = ()) -> Row:
        """The row of a result that always has one: a count, an EXISTS."""

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row of the result."""

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        """The rows one after the other, for results that are not to be held in memory."""

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        """Change something; the number of rows that were changed."""

    def run_many(self, sql: str, rows: Iterable[Parameters]) -> None:
        """Run one statement for each row of parameters, in their order."""

    def add(self, sql: str, parameters: Parameters = ()) -> int:
        """Insert one row whose key the engine counts; returns that number."""


class Transaction(Session, Protocol):
    """A session that writes: all of it happens, or nothing, at one moment."""

    now: Moment
    durable: bool

    def ring(self, *topics: str) -> None:
        """Wake those who wait for `topics` after the commit."""

    def keep(self) -> None:
        """What has been written so far stays, also when the rest is refused: an expiry that a
        call came across is a fact, whatever becomes of the call."""


class Engine(Protocol):
    """An open store."""

    id: str
    clock: Clock
    layout: Layout

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Do something wholly or not at all."""

    def snapshot(self) -> AbstractContextManager[Session]:
        """Read several things as of one commit. Inside a transaction: its own view."""

    def data_version(self) -> int:
        """A number that changes when another process has committed."""

    @property
    def writable(self) -> bool:
        """Whether this process may write here; nothing is written to find out."""

    @property
    def in_transaction(self) -> bool:
        """Whether the caller is inside a `transaction` already."""

    def close(self) -> None:
        """Let go of it. Nothing happens the second time."""
