"""The seam of the store: what SQL is run on, and what an engine has to offer.

The `*rows` modules know a `Session` and plain SQL, services an `Engine`. Neither knows which
engine it is: what belongs to one alone lies in its own folder (`sqlite`).

What in the SQL of `rows` is not plain, an engine without it has to put in its own words:
`max(a, b)` of two values (GREATEST elsewhere), `group_concat` (string_agg), `INDEXED BY` and
`NOT INDEXED`, which make a query fail whose index is gone instead of letting it scan (to be left
out), and parameters written `?` and `:name`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..clock import Clock, Moment
from ..errors import InboxOrchError
from .layout import Layout

if TYPE_CHECKING:
    from typing import Protocol

    from .checks import Check
    from .findings import Integrity, Tally
else:
    # Nothing asks at run time what keeps a protocol, and making one costs every command 0.1 ms.
    Protocol = object

LIBRARY_ERRORS: list[type[Exception]] = []
"""What the libraries of the engines in use raise on their own; each engine adds its own here when
it is loaded."""


def library_errors() -> tuple[type[Exception], ...]:
    """For an `except`: where one of these reaches a caller as it is, the store is at fault."""
    return tuple(LIBRARY_ERRORS)


# (table, column, what its JSON has to be: object, array, or anything)
JsonColumn = tuple[str, str, str | None]
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


class Owner(NamedTuple):
    """The process that carries something out: its boot, its number in which PID namespace, and
    its start time, so that another process can tell when it is gone."""

    boot_id: str
    process: int
    started: int
    namespace: int


class Bells(Protocol):
    """What wakes this process when one of some topics is rung, until it is disarmed."""

    armed: bool
    """False where nothing can ring: then the waiter must look more often."""

    def __enter__(self) -> "Bells": ...

    def __exit__(self, *exc_info: object) -> None: ...

    @property
    def descriptors(self) -> tuple[int, ...]:
        """To be watched for input by a caller with an event loop of its own."""

    def listen_to(self, descriptor: int) -> None:
        """Input on a descriptor of the caller's ends a sleep, too."""

    def sleep(self, seconds: float) -> bool:
        """Sleep until a bell rings or `seconds` have passed; whether one rang."""

    def drain(self) -> None:
        """Get ready to hear the next ring."""

    def disarm(self) -> None:
        """Hear no more."""


class Admin(Protocol):
    """What those who look after an open store ask of its engine: `doctor`, `backup`, `export`,
    `stats`. What the answers say in words is the engine's own: services pass it on."""

    def release(self) -> "Check":
        """Which release of its library works here, and what is to be known of it."""

    def sizes(self) -> tuple[int, int]:
        """Bytes of the store itself, and of the log of what is not in it yet."""

    # -- what is in it -----------------------------------------------------------------------

    def integrity(self, tx: Session, *, whole: bool) -> "Integrity":
        """The engine's own check of what it has stored; `whole`: the indexes, too."""

    def broken_references(self, tx: Session, most: int) -> "Tally":
        """Rows whose foreign key leads nowhere, the first `most` of them named."""

    def broken_json(self, tx: Session, columns: Sequence[JsonColumn], most: int) -> "Tally":
        """Rows in which one of these columns does not hold the JSON that it should."""

    def breaking_rules(self, tx: Session, table: str, most: int) -> "Tally":
        """Rows of a table that its definition would refuse today."""

    def undecodable(self, tx: Session, most: int) -> "Tally":
        """Rows of any table with a text that is no text."""

    def lenient(self, tx: Session) -> AbstractContextManager[None]:
        """Texts that are none are read meanwhile with the wrong bytes escaped."""

    def schema_version(self, tx: Session) -> int:
        """The number of the last migration that the store has seen."""

    def schema_objects(self, tx: Session) -> Mapping[tuple[str, str], str | None]:
        """(kind, name) of everything in the schema, with its definition."""

    def fresh_schema(self, version: int) -> Mapping[tuple[str, str], str | None]:
        """What `schema_objects` finds in a new store that has seen the steps up to `version`."""

    # -- what lies around it -----------------------------------------------------------------

    def surroundings(self, *, fix: bool) -> "Iterator[Check]":
        """What belongs to the open store: modes, logs, locks, bells. `fix` repairs what needs no
        guessing."""

    def remains(self) -> "Iterator[Check]":
        """What is left of stores that are gone."""

    # -- taking out for good -----------------------------------------------------------------

    def written_once_lifted(self, tx: Session) -> AbstractContextManager[None]:
        """Rows that are written once may be changed meanwhile, in this transaction alone; what is
        replaced is written over, and references are looked at when it commits."""

    def free_bytes(self, tx: Session) -> int:
        """How much of the store belongs to no row, and may have what rows had once."""

    def erase(self) -> None:
        """Keep only what rows have: in the store, and in its log. To be done again until it
        succeeds. Errors: `busy` (somebody reads an old state), `disk_full`, `read_only`,
        `io_error`."""

    # -- copies ------------------------------------------------------------------------------

    def copy_to_file(self, tx: Session, path: str) -> None:
        """Copy what a snapshot sees into an empty file, as a store of its own.

        Errors: those of the file: `disk_full`, `read_only`, `io_error`.
        """

    def check_copy(self, path: str) -> Sequence[str]:
        """What the engine has against a copy that is not used yet; errors of the file as above."""

    def private_copy(self, tx: Session) -> AbstractContextManager[Session]:
        """A copy of what a snapshot sees that is gone afterwards, so that a slow reader holds up
        no writer. While it is read, the library's errors become the program's."""


class Engine(Protocol):
    """An open store."""

    id: str
    clock: Clock
    layout: Layout
    alone: InboxOrchError | None
    """Why nobody else can have the store open meanwhile, if so."""
    notice: Callable[[str], None]
    """Tells the user something that is no answer."""
    schema_version: int
    """The number of the last migration that the store has seen."""

    @property
    def address(self) -> str:
        """What another process opens it by: told to people, and given to commands as INBOX_DB."""

    def now(self) -> Moment:
        """The present moment, by the clock that leases and dates of this store go by."""

    def owner(self) -> Owner:
        """The calling process, to be written down with what it begins."""

    def runs(self, owner: Owner) -> bool | None:
        """Whether the process of an owner is still there; None when it cannot be seen from here."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """Do something wholly or not at all."""

    def snapshot(self, *, as_it_is: bool = False) -> AbstractContextManager[Session]:
        """Read several things as of one commit. Inside a transaction: its own view. It has the
        schema of this release, also where the store has an older one and is left as it is, unless
        `as_it_is` asks for that."""

    def version(self) -> int:
        """A number that changes when somebody else has committed, and not with an own commit."""

    def bells(self, topics: Iterable[str]) -> Bells:
        """Armed for some topics; what is rung from now on is heard."""

    def check_in_place(self) -> None:
        """Error `no_database` or `wrong_database` when the store that was opened is not there any
        more: a write would be lost with it, a wait would be for nothing."""

    @property
    def writable(self) -> bool:
        """Whether this process may write here; nothing is written to find out."""

    @property
    def may_note(self) -> bool:
        """Whether a call that looks may write down what it comes across."""

    def unshared(self) -> AbstractContextManager[Session]:
        """A session while no other process can write, for clean-up."""

    @property
    def admin(self) -> Admin:
        """What those who look after the store ask it; loaded for them alone."""

    def check_usable(self) -> None:
        """Error `usage` when it is closed, or belongs to another thread or process."""

    @property
    def in_transaction(self) -> bool:
        """Whether the caller is inside a `transaction` already."""

    def close(self) -> None:
        """Let go of it. Nothing happens the second time."""
