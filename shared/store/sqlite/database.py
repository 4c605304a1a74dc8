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
from collections.abc import Callable, Generator, Iterable, Iterator

from inbox_orch.migrations import SCHEMA_VERSION

from ...clock import Moment, SystemClock
from ...errors import InboxOrchError
from .. import live
from ..engine import Admin, Owner
from ..folders import file_failure, refuse_links
from ..gate import Gate
from ..layout import Layout, layout_of
from . import bells, connecting
from .committing import settle
from .connecting import Opening
from .log import Log
from .older import Upgraded
from .refusals import (
    is_locked_out,
    missing,
    named,
    not_to_be_upgraded,
    not_usable,
    of_later_release,
    other_database,
    out_of_place,
    patiently,
    require_file,
    translated,
)
from .reserve import give_up_reserve, keep_reserve
from .sessions import Snapshot, Transaction


class Database:
    """One open database."""

    def __init__(
        self,
        layout: Layout,
        connection: sqlite3.Connection,
        opening: Opening,
        *,
        identity: tuple[int, int],
        ticket: object,
    ) -> None:
        self.layout = layout
        self.clock = opening.clock or SystemClock()
        self._connection = connection
        self._gate = Gate(layout.gate)
        self.notice = opening.notice
        self._log = Log(layout, connection, opening.notice)
        self._busy_seconds = opening.busy_seconds
        self._process = os.getpid()
        self._thread = get_ident()
        self._closed = False
        self._current: Transaction | None = None
        self._synchronous = "FULL"
        self._depth = 0
        self._identity = identity
        self._ticket = ticket
        self._looks = opening.looks
        self._upgraded: Upgraded | None = None
        self._makes_room = False
        self.alone: InboxOrchError | None = None
        """Why no other process can have the database open now: there is no room for sharing it."""
        self.schema_version = 0
        self.id = ""

    @classmethod
    def open(cls, path: str, opening: Opening, *, expected_id: str | None = None) -> "Database":
        """Open an existing database and, unless it is opened to look, bring its schema up to date.

        Errors: `no_database`, `wrong_database` (another kind of file, or not
        `expected_id`), `schema_newer`, `corrupt`, `read_only`, `busy`, `unsafe_link`.
        """
        layout = layout_of(path)
        identity = _file_identity(layout)
        if identity is None:
            raise missing(layout)
        require_file(layout)
        refuse_links(*layout.own)
        makes_room = opening.perhaps_alone and not opening.looks
        with contextlib.ExitStack() as failing:
            ticket = live.enter(layout)
            failing.callback(live.leave, ticket)
            with translated(layout):
                connection, alone = connecting.connect(
                    layout, opening.busy_seconds, perhaps_alone=opening.perhaps_alone
                )
            failing.callback(connection.close)
            database = cls(layout, connection, opening, identity=identity, ticket=ticket)
            database.alone = alone
            database._makes_room = makes_room
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
            if self._upgraded is not None:
                self._upgraded.close()
            self._connection.close()
        if self._makes_room:
            keep_reserve(self.layout)
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
        Errors: `busy`, `read_only`, `disk_full`, `io_error`, `corrupt`, `schema_newer`;
        `outcome_unknown` when the disk failed at the commit itself.
        """
        self.check_usable()
        if self._current is not None:
            assert self._current.durable or not durable, "the outer transaction is not durable"
            with self._savepoint(self._current) as joined:
                yield joined
            return
        self._bring_up_to_date()
        try:
            self._set_synchronous("FULL" if durable else "NORMAL")
            transaction = self._current = self._begin(durable)
            refusal = yield from self._worked(transaction)
            self._commit()
            self._log.keep_short(alone=self.alone is not None)
        except sqlite3.Error as error:
            self._roll_back()
            raise named(self.layout, error) from error
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._current = None
            self._gate.release()
        if waited_for := self._waited_for(transaction.topics):
            bells.ring(self.layout.bells, waited_for)
        if refusal is not None:
            raise refusal

    def _worked(
        self, transaction: Transaction
    ) -> Generator[Transaction, None, InboxOrchError | None]:
        """Let the block do its work; returns its refusal when something is to be kept."""
        try:
            try:
                yield transaction
            except sqlite3.Error as error:
                raise named(self.layout, error) from error
        except InboxOrchError as error:
            if not transaction.drop_the_rest(error):
                raise
            return error
        return None

    def _waited_for(self, topics: set[str]) -> set[str]:
        """Those of the topics that have a bell; mostly there is none."""
        try:
            return topics.intersection(os.listdir(self.layout.bells))
        except OSError:
            return set()

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            settle(self.layout, self._connection, error)
            raise

    def _begin(self, durable: bool) -> Transaction:
        """Pass the gate, take SQLite's write lock, and fix the moment."""
        deadline = time.monotonic() + self._busy_seconds
        self._gate.acquire(self._busy_seconds)
        self._begin_immediate(deadline)
        self._refuse_newer()
        self.check_in_place()
        return Transaction(self._connection, self.clock.now(), durable=durable)

    def _begin_immediate(self, deadline: float) -> None:
        """A foreign writer knows nothing of the gate."""
        self._patiently(
            deadline - time.monotonic(), lambda: self._connection.execute("BEGIN IMMEDIATE")
        )

    def _patiently(self, seconds: float, begin: Callable[[], object]) -> None:
        """Begin; where a foreign lock is in the way, try it for so many seconds."""
        try:
            begin()
        except sqlite3.OperationalError as error:
            if not is_locked_out(error):
                raise
            patiently(self.layout, seconds, begin)

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
    def snapshot(self, *, as_it_is: bool = False) -> Iterator[Snapshot]:
        """Read several things as of one commit. Inside a transaction: its own view. An older
        schema, opened to look, is shown in the newest one unless `as_it_is` is said."""
        self.check_usable()
        if self._connection.in_transaction:
            yield Snapshot(self._seen(as_it_is))
            return
        try:
            self._patiently(self._busy_seconds, self._begin_snapshot)
            try:
                self.check_in_place()
                yield Snapshot(self._seen(as_it_is))
            finally:
                self._roll_back()
        except sqlite3.Error as error:
            raise named(self.layout, error) from error

    def _seen(self, as_it_is: bool) -> sqlite3.Connection:
        upgraded = None if as_it_is else self._upgraded
        return self._connection if upgraded is None else upgraded.current()

    def _begin_snapshot(self) -> None:
        """A plain BEGIN fixes nothing: the snapshot is taken by the first read, which a lock
        for the recovery or the removal of the log can refuse for a moment."""
        self._connection.execute("BEGIN")
        try:
            self._refuse_newer()
        except BaseException:
            self._roll_back()
            raise

    def _refuse_newer(self) -> None:
        """Error `schema_newer`: another process may have changed the schema since it was opened."""
        version = int(self._connection.execute("PRAGMA user_version").fetchone()[0])
        if version > SCHEMA_VERSION:
            raise of_later_release(version, SCHEMA_VERSION)

    def version(self) -> int:
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
        forked, elsewhere = self._process != os.getpid(), self._thread != get_ident()
        if forked or elsewhere or self._closed:
            raise not_usable(forked=forked, elsewhere=elsewhere)

    def check_in_place(self) -> None:
        """Error `no_database` or `wrong_database` when the file was removed or replaced since
        it was opened: a write would be lost with this connection, a wait would be for nothing.
        """
        identity = _file_identity(self.layout)
        if identity == self._identity:
            return
        raise out_of_place(self.layout, removed=identity is None)

    def bells(self, topics: Iterable[str]) -> bells.Bells:
        """FIFOs for some topics, armed."""
        return bells.Bells(self.layout.bells, topics)

    @property
    def admin(self) -> Admin:
        """What those who look after the database ask it."""
        from . import admin

        return admin.Admin(self)

    @property
    def address(self) -> str:
        """The path of the database file."""
        return self.layout.database

    def now(self) -> Moment:
        """The present moment of the clock that this database was opened with."""
        return self.clock.now()

    def owner(self) -> Owner:
        """This process, as `runs` knows it again."""
        from ...processes.processes import known_by

        return Owner(self.now().boot_id, *known_by(os.getpid()))

    def runs(self, owner: Owner) -> bool | None:
        """Whether the process of an owner is still there; None for one in another container."""
        from ...processes.processes import lives

        here = owner.boot_id == self.now().boot_id
        return here and lives(owner.process, owner.started, owner.namespace)

    @property
    def writable(self) -> bool:
        """Whether this process may write the database; nothing is written to find out."""
        places = (self.layout.database, os.path.dirname(self.layout.database))
        return all(os.access(place, os.W_OK) for place in places)

    @property
    def may_note(self) -> bool:
        """Whether a call that looks may write down what it comes across: not into an older schema,
        which it leaves as it is, nor where there is no room."""
        return self.writable and self.alone is None and self.schema_version >= SCHEMA_VERSION

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

    # -- checks ----------------------------------------------------------------------------

    def _check(self, expected_id: str | None) -> None:
        with translated(self.layout):
            self.schema_version = patiently(
                self.layout,
                self._busy_seconds,
                lambda: connecting.schema_version(self.layout, self._connection),
            )
            if self._makes_room and self.alone is not None:
                give_up_reserve(self.layout)
            if not self._looks:
                self._bring_up_to_date()
            elif self.schema_version < SCHEMA_VERSION:
                self._upgraded = Upgraded(self._connection)
        with self.snapshot(as_it_is=True) as snapshot:
            self.id = connecting.database_id(self.layout, snapshot)
        if expected_id is not None and expected_id != self.id:
            raise other_database(self.layout, self.id, expected_id)

    def _bring_up_to_date(self) -> None:
        """Before the first write. A command that only looks leaves the database as it is."""
        if self.schema_version < SCHEMA_VERSION:
            with translated(self.layout):
                self._migrate()
                if self._upgraded is not None:
                    self._upgraded.close()
            self._upgraded, self.schema_version = None, SCHEMA_VERSION

    def _migrate(self) -> None:
        from inbox_orch.migrations.apply import migrate

        if not self.writable:
            raise not_to_be_upgraded(self.layout)
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


def _file_identity(layout: Layout) -> tuple[int, int] | None:
    """Which file the path leads to: (device, inode); looked at without opening it."""
    try:
        status = os.stat(layout.database)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise file_failure(layout.database, error) from error
    return status.st_dev, status.st_ino
