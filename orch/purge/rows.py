"""Every row of the database: which of them hold a secret, and what they are without it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.store.engine import Row, Session

from .scrub import Renames, Scrub
from .tables import TABLES, Table, names_of

PURGED = "purged"
"""In the place of a digest by which a call that is made again would be known."""

_MAY_MEET = ("kept_file", "gate_result", "surroundings", "policy")
"""Tables with rows of which two may be the same without the secret, and then are one."""

Key = tuple[Any, ...]


class Touched(NamedTuple):
    """A row that is to change: its table, its key, and the new values of columns."""

    table: str
    key: Key
    changes: Mapping[str, Any]


class Name(NamedTuple):
    """A name that holds a value, and where it stands."""

    table: str
    column: str
    value: str


def names(tx: Session, scrub: Scrub) -> list[Name]:
    """The names in which one of the values stands."""
    found = []
    for table in TABLES:
        for column in names_of(table):
            asked = f"SELECT DISTINCT {column} FROM {table.name} WHERE {column} IS NOT NULL"
            found += [
                Name(table.name, column, row[0])
                for row in tx.stream(asked)
                if isinstance(row[0], str) and scrub.holds(row[0])
            ]
    return found


def begun(tx: Session, scrub: Scrub) -> list[str]:
    """What processes are in the middle of, as far as it holds a value."""
    asked = "SELECT kind, number, data FROM intent WHERE closed_at IS NULL"
    return [f"{row[0]} {row[1]}" for row in tx.stream(asked) if scrub.holds(row[2])]


def renamed_texts(tx: Session, scrub: Scrub) -> Renames:
    """What the digests of texts will be that hold a value."""
    ids: dict[str, str] = {}
    lengths: dict[str, tuple[int, int]] = {}
    for table in TABLES:
        for column, digest, _ in table.digested:
            asked = f"SELECT {column}, {digest} FROM {table.name} WHERE {column} IS NOT NULL"
            for row in tx.stream(asked):
                before = _bytes(row[0])
                after = _bytes(_without(scrub, table, row[0]))
                if after != before:
                    ids[row[1]] = sha256_hex(after)
                    lengths[row[1]] = (len(before), len(after))
    return Renames(ids, lengths)


def touched(tx: Session, scrub: Scrub) -> Iterator[Touched]:
    """The rows that have to change, table by table."""
    for table in TABLES:
        if table.columns:
            # What a process is in the middle of it goes by itself: that stays until it is over.
            over = " WHERE closed_at IS NOT NULL" if table.name == "intent" else ""
            for row in tx.stream(f"SELECT {_columns(table)} FROM {table.name}{over}"):
                if changes := _changes(scrub, table, row):
                    yield Touched(table.name, _key(table, row), changes)


def put_down(tx: Session, scrub: Scrub, found: list[Touched]) -> Counter[str]:
    """Change rows that were found, each as it is now; how many, by table.

    To be called with what is written once lifted.
    """
    tables = {table.name: table for table in TABLES}
    counts: Counter[str] = Counter()
    for each in found:
        table = tables[each.table]
        where = " AND ".join(f"{column} = ?" for column in table.key)
        row = tx.one(f"SELECT {_columns(table)} FROM {table.name} WHERE {where}", each.key)
        changes = None if row is None else _changes(scrub, table, row)
        if changes:
            setting = ", ".join(f"{column} = ?" for column in changes)
            verb = "UPDATE OR REPLACE" if table.name in _MAY_MEET else "UPDATE"
            words = f"{verb} {table.name} SET {setting} WHERE {where}"
            tx.run(words, (*changes.values(), *each.key))
            counts[table.name] += 1
    return counts


def forget_ends(tx: Session, found: list[Touched]) -> None:
    """The digests of calls that have ended leases with messages that are other ones now."""
    messages = [(each.key[0],) for each in found if each.table == "message"]
    tx.run_many(
        f"UPDATE lease SET end_digest = '{PURGED}'"
        " WHERE end_message = ? AND end_digest IS NOT NULL",
        messages,
    )


def threads_of(tx: Session, message_ids: list[int]) -> list[str]:
    """The threads of messages."""
    marks = ", ".join("?" * len(message_ids))
    asked = f"SELECT DISTINCT thread_id FROM message WHERE id IN ({marks}) ORDER BY thread_id"
    return [str(row[0]) for row in tx.all(asked, message_ids)]


def _columns(table: Table) -> str:
    lengths = [length for _, _, length in table.digested if length]
    lengths += [length for _, length in table.lengths]
    more = ["digest"] if table.name == "request" else []
    return ", ".join(dict.fromkeys((*table.key, *table.columns, *lengths, *more)))


def _key(table: Table, row: Row) -> Key:
    return tuple(row[column] for column in table.key)


def _changes(scrub: Scrub, table: Table, row: Row) -> dict[str, Any]:
    """The new values of the columns of a row that are to change."""
    new: dict[str, Any] = {c: scrub.id(row[c]) for c in table.ids if row[c] is not None}
    for column in table.text:
        new[column] = row[column] if row[column] is None else scrub.text(row[column])
    for column in table.json:
        text = row[column]
        new[column] = text if text is None else scrub.json(text, own_keys=table.own_keys)
    new |= _lengths(scrub, table, row)
    for column, digest, length in table.digested:
        if row[column] is not None:
            new |= _digested(scrub, table, row, (column, digest, length))
    return _settled(table, row, {c: v for c, v in new.items() if v != row[c]})


def _lengths(scrub: Scrub, table: Table, row: Row) -> dict[str, Any]:
    """Of what a digest is of that is another one now."""
    found = {}
    for digest, length in table.lengths:
        before, after = scrub.renames.lengths.get(row[digest], (None, None))
        if row[length] == before:
            found[length] = after
    return found


def _digested(
    scrub: Scrub, table: Table, row: Row, columns: tuple[str, str, str]
) -> dict[str, Any]:
    """A text with its digest and its length, if it changes."""
    column, digest, length = columns
    after = _without(scrub, table, row[column])
    if after == row[column]:
        return {}
    content = _bytes(after)
    sizes = {length: len(content)} if length else {}
    return {column: after, digest: sha256_hex(content), **sizes}


def _settled(table: Table, row: Row, changes: dict[str, Any]) -> dict[str, Any]:
    """What follows from the other changes."""
    if table.name == "request" and changes:
        # The digest of what was asked for; the call is not known again, and refused.
        changes["digest"] = PURGED
    if table.name == "patch" and "content" in changes:
        # Two that differed in a secret alone are the same now, and were handed in twice.
        changes["content"] = f"{PURGED} {row['id']}"
    return changes


def _without(scrub: Scrub, table: Table, value: Any) -> Any:
    if isinstance(value, bytes):
        return scrub.content(value)
    return scrub.json(value) if table.name == "policy" else scrub.digested(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
