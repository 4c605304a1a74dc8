"""SQLite's own checks of a database, and rows in it that cannot be read.

Nothing here writes but `use_write_ahead_log`. A row that cannot be read must not keep the others
from being checked.
"""

import contextlib
import functools
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from types import MappingProxyType

from inbox_orch.migrations import SCHEMA_VERSION

from ..engine import JsonColumn, Session
from ..findings import Integrity, Tally
from .sessions import Snapshot, connection_of

# SQLite tells what its check has found in words only (sqlite.org/pragma.html).
# These concern the values of a row; everything else concerns the structure of the file.
_ABOUT_VALUES = re.compile(r"(?:CHECK constraint failed|(?:NULL|[\w-]+) value) in (\w+)")
_MOST_FINDINGS = 100
_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"


def version() -> tuple[int, ...]:
    """The release of the SQLite library in use."""
    return sqlite3.sqlite_version_info


# -- SQLite's own checks -------------------------------------------------------------------


def integrity(tx: Session, *, whole: bool) -> Integrity:
    """`integrity_check` or, without comparing indexes with their tables, `quick_check`."""
    name = "integrity_check" if whole else "quick_check"
    rows = tx.all(f"PRAGMA {name}({_MOST_FINDINGS})")
    found = [str(row[0]) for row in rows if row[0] != "ok"]
    about_values = {text: _ABOUT_VALUES.match(text) for text in found}
    tables = {match.group(1) for match in about_values.values() if match is not None}
    damage = tuple(text for text, match in about_values.items() if match is None)
    return Integrity(damage, tuple(sorted(tables)), "SQLite")


def broken_references(tx: Session, most: int) -> Tally:
    """Rows whose foreign key leads nowhere."""
    return _tally(
        (
            f"{row[0]} row {row[1]}: no such {row[2]}"
            for row in tx.stream("PRAGMA foreign_key_check")
        ),
        most,
    )


def schema_objects(tx: Session) -> dict[tuple[str, str], str | None]:
    """(type, name) of every table, index and trigger, with its statement."""
    return {(row[0], row[1]): row[2] for row in tx.all(_OBJECTS)}


@functools.cache
def fresh_schema(version: int = SCHEMA_VERSION) -> Mapping[tuple[str, str], str | None]:
    """(type, name) of everything that the steps up to `version` make, with its statement."""
    from inbox_orch.migrations.apply import migrate

    older = version < SCHEMA_VERSION
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        migrate(connection, stop_before=f"{version + 1:04d}" if older else None)
        return MappingProxyType(schema_objects(Snapshot(connection)))


def schema_version(tx: Session) -> int:
    """The number of the last migration that the database has seen."""
    (row,) = tx.all("PRAGMA user_version")
    return int(row[0])


def journal_mode(tx: Session) -> str:
    """How the file keeps what is not checkpointed yet; `wal` in every database of ours."""
    (row,) = tx.all("PRAGMA journal_mode")
    return str(row[0])


def use_write_ahead_log(tx: Session) -> None:
    """Turn the write-ahead log on; SQLite refuses while another process is at work."""
    tx.all("PRAGMA journal_mode=WAL")


# -- rows that cannot be read --------------------------------------------------------------


def broken_json(tx: Session, columns: Sequence[JsonColumn], most: int) -> Tally:
    """Rows in which one of these columns does not hold the JSON that it should."""
    return _tally(_broken_json(tx, columns), most)


def _broken_json(tx: Session, columns: Sequence[JsonColumn]) -> Iterator[str]:
    for table, column, kind in columns:
        key = _key_expression(tx, table)
        wanted = "" if kind is None else f" OR json_type({column}) <> '{kind}'"
        rows = tx.stream(
            f"SELECT {key} FROM {table} WHERE {column} IS NOT NULL"
            f" AND (NOT json_valid({column}){wanted})"
        )
        for row in rows:
            yield f"{table} {_as_text(row[0])}: {column} is not JSON as it should be"


def undecodable(tx: Session, most: int) -> Tally:
    """Rows of any table with a text that is not UTF-8."""
    return _tally(_undecodable(tx), most)


def _undecodable(tx: Session) -> Iterator[str]:
    for table in _tables(tx):
        columns = [c for c, kind in _columns(tx, table) if kind == "TEXT"]
        if not columns:
            continue
        texts = " || ".join(f"coalesce(\"{column}\", '')" for column in columns)
        rows = tx.stream(f"SELECT {_key_expression(tx, table)}, CAST({texts} AS BLOB) FROM {table}")
        # Not in a function for SQL to call: SQLite would swallow a signal that comes there.
        for key, content in rows:
            if not _is_utf8(content):
                yield f"{table} {_as_text(key)}: a text is not UTF-8"


def breaking_rules(tx: Session, table: str, most: int) -> Tally:
    """Rows of `table` that the table's own definition would refuse today.

    Each is put into an empty table of the same definition elsewhere: SQLite's check names the
    table only. Slow, and needed only once something was found.
    """
    return _tally(_breaking_rules(tx, table), most)


def _breaking_rules(tx: Session, table: str) -> Iterator[str]:
    definition = tx.one("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    if definition is None:
        return
    names = [name for name, _ in _columns(tx, table)]
    marks = ", ".join("?" * len(names))
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as scratch:
        scratch.execute(definition[0])
        key = _key_expression(tx, table)
        for row in tx.stream(f"SELECT {key}, {', '.join(names)} FROM {table}"):
            try:
                scratch.execute(f"INSERT INTO {table} VALUES ({marks})", tuple(row)[1:])
            except sqlite3.IntegrityError as error:
                yield f"{table} {_as_text(row[0])}: {error}"
            else:
                scratch.execute(f"DELETE FROM {table}")


@contextlib.contextmanager
def lenient(tx: Session) -> Iterator[None]:
    """Read texts that are not UTF-8 with the wrong bytes escaped."""
    connection = connection_of(tx)
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


def _tables(tx: Session) -> list[str]:
    return sorted(name for kind, name in schema_objects(tx) if kind == "table")


def _columns(tx: Session, table: str) -> list[tuple[str, str]]:
    rows = tx.all("SELECT name, type FROM pragma_table_info(?)", (table,))
    return [(row[0], row[1]) for row in rows]


def _key_expression(tx: Session, table: str) -> str:
    rows = tx.all("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (table,))
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
