"""SQLite's part of looking after a store: what it is asked by way of `Engine.admin`.

Each answer is given by the module that knows: `care`, `copies`, `beside`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from ..checks import OK, Check
from ..engine import Engine, JsonColumn, Session
from ..findings import Integrity, Tally
from ..layout import layout_of
from . import beside, care, copies, erasing
from .log import size_of
from .refusals import translated

# The first release without the WAL-reset bug (sqlite.org/wal.html).
_RESET_FIXED = (3, 51, 3)


class Admin:
    """The care of one database. What its methods give is said in `shared/store/engine.py`."""

    def __init__(self, database: Engine) -> None:
        self._database = database

    def release(self) -> Check:
        release = care.version()
        text = f"SQLite {'.'.join(map(str, release))}"
        if release < _RESET_FIXED:
            text += (
                "; it has the WAL-reset bug, which cannot strike here: every checkpoint waits"
                " behind the gate"
            )
        return Check("sqlite", OK, text)

    def sizes(self) -> tuple[int, int]:
        layout = self._database.layout
        return size_of(layout.database), size_of(layout.wal)

    def integrity(self, tx: Session, *, whole: bool) -> Integrity:
        return care.integrity(tx, whole=whole)

    def broken_references(self, tx: Session, most: int) -> Tally:
        return care.broken_references(tx, most)

    def broken_json(self, tx: Session, columns: Sequence[JsonColumn], most: int) -> Tally:
        return care.broken_json(tx, columns, most)

    def breaking_rules(self, tx: Session, table: str, most: int) -> Tally:
        return care.breaking_rules(tx, table, most)

    def undecodable(self, tx: Session, most: int) -> Tally:
        return care.undecodable(tx, most)

    def lenient(self, tx: Session) -> contextlib.AbstractContextManager[None]:
        return care.lenient(tx)

    def schema_version(self, tx: Session) -> int:
        return care.schema_version(tx)

    def schema_objects(self, tx: Session) -> Mapping[tuple[str, str], str | None]:
        return care.schema_objects(tx)

    def fresh_schema(self, version: int) -> Mapping[tuple[str, str], str | None]:
        return care.fresh_schema(version)

    def surroundings(self, *, fix: bool) -> Iterator[Check]:
        return beside.surroundings(self._database, fix=fix)

    def remains(self) -> Iterator[Check]:
        return beside.remains(self._database.layout)

    def written_once_lifted(self, tx: Session) -> contextlib.AbstractContextManager[None]:
        return erasing.written_once_lifted(tx)

    def free_bytes(self, tx: Session) -> int:
        return erasing.free_bytes(tx)

    def erase(self) -> None:
        erasing.erase(self._database)

    def copy_to_file(self, tx: Session, path: str) -> None:
        with translated(layout_of(path)):
            copies.copy_to_file(tx, path)

    def check_copy(self, path: str) -> Sequence[str]:
        with translated(layout_of(path)):
            return copies.check_copy(path)

    @contextlib.contextmanager
    def private_copy(self, tx: Session) -> Iterator[Session]:
        with copies.private_copy(tx) as session, translated(self._database.layout):
            yield session
