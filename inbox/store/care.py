"""What looking after the database reads: SQLite's own checks, rows nobody can read, and every
table in the order of its threads, for the comparison with the event log.

Nothing here writes. A row that cannot be read must not keep the others from being checked.
"""

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import methodcaller
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment

_Columns = sqlite3.Row | tuple[Any, ...]
# SQLite tells what its check has found in words only (sqlite.org/pragma.html).
# These concern the values of a row; everything else concerns the structure of the file.
_ABOUT_VALUES = re.compile(r"(?:CHECK constraint failed|(?:NULL|[\w-]+) value) in (\w+)")
_MOST_FINDINGS = 100
_JSON_COLUMNS = (
    ("message", "payload", "object"),
    ("message", "options", "array"),
    ("request", "response", None),
    ("event", "data", "object"),
)


class Integrity(NamedTuple):
    """What SQLite's check found: damage of the file, and tables with values that break a rule."""

    damage: tuple[str, ...]
    tables: tuple[str, ...]


class Tally(NamedTuple):
    """The first few of something, and how many there are."""

    items: tuple[str, ...]
    total: int


# -- SQLite's own checks -------------------------------------------------------------------


def integrity(connection: sqlite3.Connection, *, whole: bool) -> Integrity:
    """`integrity_check` or, without comparing indexes with their tables, `quick_check`."""
    name = "integrity_check" if whole else "quick_check"
    rows = connection.execute(f"PRAGMA {name}({_MOST_FINDINGS})").fetchall()
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    about_values = {text: _ABOUT_VALUES.match(text) for text in found}
    tables = {match.group(1) for match in about_values.values() if match is not None}
    damage = tuple(text for text, match in about_values.items() if match is None)
    return Integrity(damage, tuple(sorted(tables)))


def broken_references(connection: sqlite3.Connection, most: int) -> Tally:
    """Rows whose foreign key leads nowhere."""
    return _tally(
        (
            f"{row[0]} row {row[1]}: no such {row[2]}"
            for row in connection.execute("PRAGMA foreign_key_check")
        ),
        most,
    )


def schema_version(connection: sqlite3.Connection) -> int:
    """The last step of the schema that the database has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def schema_objects(connection: sqlite3.Connection) -> dict[tuple[str, str], str | None]:
    """(type, name) of every table, index and trigger, with its statement."""
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    ).fetchall()
    return {(row[0], row[1]): row[2] for row in rows}


def journal_mode(connection: sqlite3.Connection) -> str:
    """How the file keeps what is not checkpointed yet; `wal` in every database of ours."""
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on; SQLite refuses while anybody else is at work."""
    connection.execute("PRAGMA journal_mode=WAL").fetchall()


# -- rows that cannot be read --------------------------------------------------------------


def broken_json(connection: sqlite3.Connection, most: int) -> Tally:
    """Columns that hold JSON, but for these rows."""
    return _tally(_broken_json(connection), most)


def _broken_json(connection: sqlite3.Connection) -> Iterator[str]:
    for table, column, kind in _JSON_COLUMNS:
        key = _key_expression(connection, table)
        wanted = "" if kind is None else f" OR json_type({column}) <> '{kind}'"
        rows = connection.execute(
            f"SELECT {key} FROM {table} WHERE {column} IS NOT NULL"
            f" AND (NOT json_valid({column}){wanted})"
        )
        for row in rows:
            yield f"{table} {_as_text(row[0])}: {column} is not JSON as it should be"


def undecodable(connection: sqlite3.Connection, most: int) -> Tally:
    """Rows of any table with a text that is not UTF-8."""
    return _tally(_undecodable(connection), most)


def _undecodable(connection: sqlite3.Connection) -> Iterator[str]:
    for table in _tables(connection):
        columns = [c for c, kind in _columns(connection, table) if kind == "TEXT"]
        if not columns:
            continue
        texts = " || ".join(f"coalesce(\"{column}\", '')" for column in columns)
        rows = connection.execute(
            f"SELECT {_key_expression(connection, table)}, CAST({texts} AS BLOB) FROM {table}"
        )
        # Not in a function for SQL to call: SQLite would swallow a signal that comes there.
        for key, content in rows:
            if not _is_utf8(content):
                yield f"{table} {_as_text(key)}: a text is not UTF-8"


def breaking_rules(connection: sqlite3.Connection, table: str, most: int) -> Tally:
    """Rows of `table` that the table's own definition would refuse today.

    Each is put into an empty table of the same definition elsewhere: SQLite's check names the
    table only. Slow, and needed only once something was found.
    """
    return _tally(_breaking_rules(connection, table), most)


def _breaking_rules(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    definition = connection.execute(
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    if definition is None:
        return
    names = [name for name, _ in _columns(connection, table)]
    marks = ", ".join("?" * len(names))
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as scratch:
        scratch.execute(definition[0])
        key = _key_expression(connection, table)
        for row in connection.execute(f"SELECT {key}, {', '.join(names)} FROM {table}"):
            try:
                scratch.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(row)[1:])
            except sqlite3.IntegrityError as error:
                yield f"{table} {_as_text(row[0])}: {error}"
            else:
                scratch.execute(f"DELETE FROM {table}")


@contextlib.contextmanager
def lenient(connection: sqlite3.Connection) -> Iterator[None]:
    """Read texts that are not UTF-8 with the wrong bytes escaped."""
    before = connection.text_factory
    connection.text_factory = methodcaller("decode", "utf-8", "backslashreplace")
    try:
        yield
    finally:
        connection.text_factory = before


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _tables(connection: sqlite3.Connection) -> list[str]:
    return sorted(name for kind, name in schema_objects(connection) if kind == "table")


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    rows = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
    return [(row[0], row[1]) for row in rows]


def _key_expression(connection: sqlite3.Connection, table: str) -> str:
    rows = connection.execute(
        "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,)
    ).fetchall()
    # As a blob, so that a key which is not UTF-8 can be named.
    texts = " || '/' || ".join(f"coalesce(\"{row[0]}\", '')" for row in rows)
    return f"CAST({texts} AS BLOB)" if rows else "rowid"


def _tally(found: Iterable[str], most: int) -> Tally:
    items: list[str] = []
    total = 0
    for text in found:
        total += 1
        if len(items) < most:
            items.append(text)
    return Tally(tuple(items), total)


# -- how things stand ----------------------------------------------------------------------


class Standing(NamedTuple):
    """What is unfinished now: counts of rows."""

    live_leases: int
    expired_leases: int
    expired_without_renewal: int
    delayed: int
    delayed_due: int
    overdue_questions: int


def standing(connection: sqlite3.Connection, now: Moment) -> Standing:
    """Leases, delayed threads and questions at `now`."""
    leases = connection.execute(
        "SELECT count(*), coalesce(sum(over), 0), coalesce(sum(over AND renewals = 0), 0) FROM"
        " (SELECT boot_id <> ? OR deadline_monotonic <= ? AS over, renewals FROM lease"
        " WHERE ended_at IS NULL)",
        (now.boot_id, now.monotonic_ms),
    ).fetchone()
    delayed = connection.execute(
        "SELECT count(*), coalesce(sum(available_at <= ?), 0) FROM thread WHERE delayed = 1",
        (now.wall_ms,),
    ).fetchone()
    overdue = connection.execute(
        "SELECT count(*) FROM thread WHERE question_deadline <= ?", (now.wall_ms,)
    ).fetchone()
    return Standing(*leases, *delayed, *overdue)


def contents(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    """(digest, length) of everything that an artifact refers to and that was not pruned."""
    for row in connection.execute(
        "SELECT DISTINCT sha256, bytes FROM artifact WHERE pruned = 0 ORDER BY sha256"
    ):
        yield row[0], row[1]


def is_referenced(connection: sqlite3.Connection, sha256: str) -> bool:
    """Whether any artifact still needs this content."""
    row = connection.execute(
        "SELECT 1 FROM artifact WHERE sha256 = ? AND pruned = 0 LIMIT 1", (sha256,)
    ).fetchone()
    return row is not None


# -- everything of one thread together -----------------------------------------------------


class ThreadRow(NamedTuple):
    """What folding also knows of a thread."""

    state: str
    epoch: int
    deliveries: int
    holder: str | None
    max_deliveries: int
    pruned: bool
    cancel_seen: bool


class StoredLease(NamedTuple):
    """A lease as far as folding knows it."""

    epoch: int
    holder: str
    counted: bool
    ended_by: str | None


class StoredMessage(NamedTuple):
    """A message: what is said of its body, and what the body is; None for both once pruned."""

    id: int
    kind: str
    sha256: str
    bytes: int
    actual_sha256: str | None
    actual_bytes: int | None


class StoredArtifact(NamedTuple):
    """A named artifact."""

    name: str
    sha256: str
    bytes: int
    pruned: bool


class EventRow(NamedTuple):
    """An event with its data as stored."""

    seq: int
    kind: str
    data: dict[str, Any] | None


class Dossier(NamedTuple):
    """Everything that the tables and the log hold of one thread; `thread` is None where rows
    name a thread that is not there."""

    thread_id: str
    thread: ThreadRow | None
    events: tuple[EventRow, ...]
    leases: tuple[StoredLease, ...]
    messages: tuple[StoredMessage, ...]
    artifacts: tuple[StoredArtifact, ...]


def dossiers(connection: sqlite3.Connection) -> Iterator[Dossier]:
    """Thread by thread, in the order of the ids, whatever table names it.

    Five cursors run side by side along their indexes, so that the memory which this takes does
    not depend on how many threads there are, nor on how long their bodies are.
    """
    threads = _Groups(connection.execute(_THREADS))
    events = _Groups(connection.execute(_EVENTS))
    leases = _Groups(connection.execute(_LEASES))
    messages = _Groups(_digested(connection.execute(_MESSAGES)))
    artifacts = _Groups(connection.execute(_ARTIFACTS))
    streams = (threads, events, leases, messages, artifacts)
    while ids := [stream.next_id for stream in streams if stream.next_id is not None]:
        thread_id = min(ids)
        rows = threads.take(thread_id)
        yield Dossier(
            thread_id,
            _thread(rows[0]) if rows else None,
            tuple(EventRow(row[1], row[2], _decoded(row[3])) for row in events.take(thread_id)),
            tuple(
                StoredLease(row[1], row[2], bool(row[3]), row[4]) for row in leases.take(thread_id)
            ),
            tuple(StoredMessage(*row[1:]) for row in messages.take(thread_id)),
            tuple(
                StoredArtifact(row[1], row[2], row[3], bool(row[4]))
                for row in artifacts.take(thread_id)
            ),
        )


_THREADS = (
    "SELECT id, state, epoch, deliveries, holder, max_deliveries, pruned, cancel_seen"
    " FROM thread ORDER BY id"
)
_EVENTS = (
    "SELECT thread_id, seq, kind, CAST(data AS BLOB) FROM event"
    " WHERE thread_id IS NOT NULL ORDER BY thread_id, seq"
)
_LEASES = "SELECT thread_id, epoch, holder, counted, ended_by FROM lease ORDER BY thread_id, epoch"
_MESSAGES = (
    "SELECT thread_id, id, kind, body_sha256, body_bytes, CAST(body AS BLOB)"
    " FROM message ORDER BY thread_id, id"
)
_ARTIFACTS = (
    "SELECT thread_id, name, sha256, bytes, pruned FROM artifact ORDER BY thread_id, name, id"
)


class _Groups:
    """Rows in the order of their first column, taken out group by group."""

    def __init__(self, rows: Iterable[_Columns]) -> None:
        self._groups = groupby(rows, key=lambda row: str(row[0]))
        self._rows: Iterator[_Columns] = iter(())
        self.next_id: str | None = None
        self._advance()

    def take(self, thread_id: str) -> list[_Columns]:
        """The rows of this thread, if it is the next one here."""
        if self.next_id != thread_id:
            return []
        taken = list(self._rows)
        self._advance()
        return taken

    def _advance(self) -> None:
        following = next(self._groups, None)
        self.next_id, self._rows = (None, iter(())) if following is None else following


def _digested(rows: Iterable[sqlite3.Row]) -> Iterator[tuple[Any, ...]]:
    """Messages with digest and length in the place of their body, which is let go at once."""
    for row in rows:
        *columns, body = row
        length = None if body is None else len(body)
        yield (*columns, _sha256(body), length)


def _thread(row: _Columns) -> ThreadRow:
    thread = ThreadRow._make(tuple(row)[1:])
    return thread._replace(pruned=bool(thread.pruned), cancel_seen=bool(thread.cancel_seen))


def _sha256(content: bytes | None) -> str | None:
    import hashlib

    return None if content is None else hashlib.sha256(content).hexdigest()


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
