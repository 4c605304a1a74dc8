"""The database file: opening it, its one way of writing, snapshots for reading, checkpoints.

Every write of the program is one `BEGIN IMMEDIATE` transaction behind the gate. No
transaction is ever open across a sleep. A connection belongs to the process and thread that
opened it.
"""

import contextlib
import os
import sqlite3
import time
from _thread import get_ident
from collections.abc import Callable, Generator, Iterator

from inbox_orch.migrations import APPLICATION_ID, SCHEMA_VERSION

from . import bells, live
from .clock import Clock, SystemClock
from .errors import InboxOrchError, usage
from .folders import refuse_links
from .gate import Gate, file_failure
from .layout import Layout, layout_of
from .refusals import missing, named, oldest_reader, patiently, require_file, translated
from .store.sqlite.sessions import Snapshot, Transaction

CHECKPOINT_BYTES = 4 * 1024 * 1024
TRUNCATE_BYTES = 64 * 1024 * 1024
TRUNCATE_SECONDS = 2.0
DEFAULT_BUSY_SECONDS = 10.0
NOTICE_EVERY_SECONDS = 60.0
_SQLITE_SLICE_MS = 50

Notice = Callable[[str], None]


class Database:
    """One open database."""

    def __init__(
        self,
        layout: Layout,
        connection: sqlite3.Connection,
        *,
        clock: Clock,
        busy_seconds: float,
        notice: Notice,
        identity: tuple[int, int],
        ticket: object,
    ) -> None:
        self.layout = layout
        self.clock = clock
        self._connection = connection
        self._gate = Gate(layout.gate)
        self._busy_seconds = busy_seconds
        self.notice = notice
        self._process = os.getpid()
        self._thread = get_ident()
        self._closed = False
        self._current: Transaction | None = None
        self._synchronous = "FULL"
        self._depth = 0
        self._last_notice = float("-inf")
        self._identity = identity
        self._ticket = ticket
        self.id = ""

    @classmethod
    def open(
        cls,
        path: str,
        *,
        expected_id: str | None = None,
        clock: Clock | None = None,
        busy_seconds: float = DEFAULT_BUSY_SECONDS,
        notice: Notice = lambda text: None,
    ) -> "Database":
        """Open an existing database and bring its schema up to date.

        Errors: `no_database`, `wrong_database` (another kind of file, or not
        `expected_id`), `schema_newer`, `corrupt`, `read_only`, `busy`, `unsafe_link`.
        """
        layout = layout_of(path)
        identity = _identity(layout)
        if identity is None:
            raise missing(layout)
        require_file(layout)
        refuse_links(*layout.own)
        with contextlib.ExitStack() as failing:
            ticket = live.enter(layout)
            failing.callback(live.leave, ticket)
            with translated(layout):
                connection = patiently(layout, busy_seconds, lambda: _connect(layout))
            failing.callback(connection.close)
            database = cls(
                layout,
                connection,
                clock=clock or SystemClock(),
                busy_seconds=busy_seconds,
                notice=notice,
                identity=identity,
                ticket=ticket,
            )
            # The same before and after: that is the file which the connection has opened.
            database.check_in_place()
            database._check(expected_id)
            failing.pop_all()
        return database

    def close(self) -> None:
        """Close the connection; the last one to close also empties the write-ahead log.

        Nothing happens the second time, or in a child after fork. Error `usage` in another thread.
        """
        if self._closed or self._process != os.getpid():
            return
        self.check_usable()
        with translated(self.layout):
            self._connection.close()
        live.leave(self._ticket)
        self._closed = True

    def __enter__(self) -> "Database":
        self.check_usable()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # -- writing ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        """Do something wholly or not at all.

        `durable=False` (renewals, cursors, progress) survives the death of every process, but
        may be lost at a power cut. Inside another transaction this one joins it, as a savepoint;
        a durable one cannot join one that is not. A refusal (`InboxOrchError`) takes back all
        but what `Transaction.keep` has marked.
        Errors: `busy`, `read_only`, `disk_full`, `io_error`, `corrupt`, `schema_newer`.
        """
        self.check_usable()
        if self._current is not None:
            assert self._current.durable or not durable, "the outer transaction is not durable"
            with self._savepoint(self._current) as joined:
                yield joined
            return
        try:
            with translated(self.layout):
                self._set_synchronous("FULL" if durable else "NORMAL")
                transaction = self._begin(durable)
            self._current = transaction
            with translated(self.layout):
                refusal = yield from self._worked(transaction)
                self._connection.execute("COMMIT")
            self._keep_log_short()
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._current = None
            self._gate.release()
        bells.ring(self.layout.bells, transaction.topics)
        if refusal is not None:
            raise refusal

    def _worked(
        self, transaction: Transaction
    ) -> Generator[Transaction, None, InboxOrchError | None]:
        """Let the block do its work; returns its refusal when something is to be kept."""
        try:
            with translated(self.layout):
                yield transaction
        except InboxOrchError as error:
            if not transaction.drop_the_rest(error):
                raise
            return error
        return None

    def _begin(self, durable: bool) -> Transaction:
        """Pass the gate, take SQLite's write lock, and fix the moment."""
        deadline = time.monotonic() + self._busy_seconds
        self._gate.acquire(self._busy_seconds)
        self._begin_immediate(deadline)
        self._check_version_is(SCHEMA_VERSION)
        self.check_in_place()
        return Transaction(self._connection, self.clock.now(), durable=durable)

    def _begin_immediate(self, deadline: float) -> None:
        """A foreign writer knows nothing of the gate."""
        patiently(
            self.layout,
            deadline - time.monotonic(),
            lambda: self._connection.execute("BEGIN IMMEDIATE"),
        )

    @contextlib.contextmanager
    def _savepoint(self, outer: Transaction) -> Iterator[Transaction]:
        self._depth += 1
        name = f"level_{self._depth}"
        with translated(self.layout):
            self._connection.execute(f"SAVEPOINT {name}")
        before = outer.begin_joined()
        try:
            yield outer
        except BaseException as error:
            kept = outer.drop_the_rest(error)
            # A failed statement may have rolled the whole transaction back already.
            if self._connection.in_transaction:
                if not kept:
                    self._connection.execute(f"ROLLBACK TO {name}")
                self._connection.execute(f"RELEASE {name}")
            raise
        else:
            with translated(self.layout):
                self._connection.execute(f"RELEASE {name}")
        finally:
            outer.end_joined(before)
            self._depth -= 1

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _set_synchronous(self, mode: str) -> None:
        if mode != self._synchronous:
            self._connection.execute(f"PRAGMA synchronous={mode}")
            self._synchronous = mode

    # -- reading ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read several things as of one commit. Inside a transaction: its own view."""
        self.check_usable()
        if self._connection.in_transaction:
            yield Snapshot(self._connection)
            return
        with translated(self.layout):
            patiently(self.layout, self._busy_seconds, self._begin_snapshot)
            try:
                self.check_in_place()
                yield Snapshot(self._connection)
            finally:
                self._roll_back()

    def _begin_snapshot(self) -> None:
        """A plain BEGIN fixes nothing: the snapshot is taken by the first read, which a lock
        for the recovery or the removal of the log can refuse for a moment."""
        self._connection.execute("BEGIN")
        try:
            self._check_version_is(SCHEMA_VERSION)
        except BaseException:
            self._roll_back()
            raise

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        self.check_usable()
        # By hand, without `translated`: idle waiters do hardly anything else.
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            raise named(self.layout, error) from error

    def check_usable(self) -> None:
        """Error `usage` when it is closed, or was opened by another process or thread: a connection
        of SQLite's does not survive a fork (sqlite.org/howtocorrupt.html, section 2.6), and one of
        Python's stays in its thread."""
        if self._process != os.getpid():
            raise usage(
                "the database was opened before the fork of this process",
                hint="open it in the child process",
            )
        if self._thread != get_ident():
            raise usage("the database was opened in another thread", hint="open it in each thread")
        if self._closed:
            raise usage("the database has been closed", hint="open it again")

    def check_in_place(self) -> None:
        """Error `no_database` or `wrong_database` when the file was removed or replaced since
        it was opened: a write would be lost with this connection, a wait would be for nothing.
        """
        identity = _identity(self.layout)
        if identity == self._identity:
            return
        path = self.layout.database
        if identity is None:
            raise InboxOrchError(
                "no_database",
                f"{path} was removed while it was in use",
                hint="nothing was written; `inbox where` tells which database there is now",
                details={"path": path},
            )
        raise InboxOrchError(
            "wrong_database",
            f"{path} was replaced by another file while it was in use",
            hint="call again to use the new one",
            details={"path": path},
        )

    @property
    def writable(self) -> bool:
        """Whether this process may write the database; nothing is written to find out."""
        return os.access(self.layout.database, os.W_OK) and os.access(
            os.path.dirname(self.layout.database), os.W_OK
        )

    @contextlib.contextmanager
    def unshared(self) -> Iterator[Snapshot]:
        """A session while this process holds the gate, for checkpoints and clean-up."""
        self.check_usable()
        self._gate.acquire(self._busy_seconds)
        try:
            with translated(self.layout):
                yield Snapshot(self._connection)
        finally:
            self._gate.release()

    @property
    def in_transaction(self) -> bool:
        """Whether the caller is inside a `transaction` already, so that the gate is taken."""
        return self._current is not None

    @property
    def connection(self) -> sqlite3.Connection:
        """The bare connection, for SQLite's own backup and integrity check."""
        self.check_usable()
        return self._connection

    # -- keeping the write-ahead log short -------------------------------------------------

    def _keep_log_short(self) -> None:
        """Checkpoint, still behind the gate: SQLite up to 3.51.2 can corrupt the file when a
        reset of the log races a checkpoint (sqlite.org/wal.html, "the WAL-reset bug").

        The change is committed already, so a checkpoint that fails is left to the next writer.
        """
        size = size_of(self.layout.wal)
        if size <= CHECKPOINT_BYTES:
            return
        with contextlib.suppress(sqlite3.Error):
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if size > TRUNCATE_BYTES:
                # With a part left over, a reader sits on an old snapshot: waiting for it behind
                # the gate would hold up every writer at every commit.
                _, frames, copied = row
                self._truncate_log(size, worth_waiting=frames == copied)

    def _truncate_log(self, size: int, *, worth_waiting: bool) -> None:
        if worth_waiting and self._truncated_in_time():
            return
        now = time.monotonic()
        if now - self._last_notice >= NOTICE_EVERY_SECONDS:
            self._last_notice = now
            self.notice(
                f"the write-ahead log has grown to {size // (1024 * 1024)} MiB because a reader "
                f"holds an old snapshot: {oldest_reader(self.layout) or 'unknown process'}"
            )

    def _truncated_in_time(self) -> bool:
        self._connection.execute(f"PRAGMA busy_timeout={int(TRUNCATE_SECONDS * 1000)}")
        try:
            row = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={_SQLITE_SLICE_MS}")
        return not row[0]

    # -- checks ----------------------------------------------------------------------------

    def _check(self, expected_id: str | None) -> None:
        with translated(self.layout):
            if patiently(self.layout, self._busy_seconds, self._version) < SCHEMA_VERSION:
                self._migrate()
        self.id = self._read_id()
        if expected_id is not None and expected_id != self.id:
            raise InboxOrchError(
                "wrong_database",
                f"{self.layout.database} is database {self.id}, not {expected_id}",
                hint="`inbox where` shows which database a folder leads to",
                details={"path": self.layout.database, "id": self.id, "expected": expected_id},
            )

    def _read_id(self) -> str:
        try:
            with self.snapshot() as snapshot:
                row = snapshot.one("SELECT value FROM meta WHERE key = 'database_id'")
        except InboxOrchError as error:
            if error.details.get("sqlite") != "SQLITE_ERROR":
                raise
            row = None  # there is no such table
        if row is None:
            raise InboxOrchError(
                "corrupt",
                f"{self.layout.database} is marked as ours, but its tables are missing",
                hint="nothing was written; a copy made with `cp` can look like this: "
                "use `inbox backup`",
                details={"path": self.layout.database},
            )
        return str(row[0])

    def _version(self) -> int:
        application = int(self._connection.execute("PRAGMA application_id").fetchone()[0])
        if application != APPLICATION_ID:
            raise InboxOrchError(
                "wrong_database",
                f"{self.layout.database} is a SQLite file, but not a database of inbox",
                hint="check --db and INBOX_DB; `inbox init` makes a database",
                details={"path": self.layout.database},
            )
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _check_version_is(self, expected: int) -> None:
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > expected:
            raise InboxOrchError(
                "schema_newer",
                f"the database has schema {version}, this program knows {expected}",
                hint="use the newer release of inbox-orch; nothing was changed",
                details={"schema": version, "supported": expected},
            )

    def _migrate(self) -> None:
        from inbox_orch.migrations.apply import migrate

        if not self.writable:
            raise InboxOrchError(
                "read_only",
                f"{self.layout.database} has an older schema and cannot be written",
                hint="run any command once as a user who may write it",
                details={"path": self.layout.database},
            )
        deadline = time.monotonic() + self._busy_seconds
        self._gate.acquire(self._busy_seconds)
        try:
            self._begin_immediate(deadline)
            migrate(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._gate.release()


def _connect(layout: Layout) -> sqlite3.Connection:
    connection = sqlite3.connect(
        "file:" + uri_path(layout.database) + "?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=_SQLITE_SLICE_MS / 1000,
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={CHECKPOINT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _identity(layout: Layout) -> tuple[int, int] | None:
    """Which file the path leads to: (device, inode); looked at without opening it."""
    try:
        status = os.stat(layout.database)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise file_failure(layout.database, error) from error
    return status.st_dev, status.st_ino


def uri_path(path: str) -> str:
    """The path with what has a meaning in a URI escaped (sqlite.org/uri.html).

    The authority is empty: two slashes at the start of a path are not taken for one.
    """
    return "//" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def size_of(path: str) -> int:
    """The length of a file in bytes, 0 when there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
