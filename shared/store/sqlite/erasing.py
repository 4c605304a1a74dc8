"""Making bytes that were taken out of rows be gone from the files of a database as well.

SQLite leaves what a row had in the pages that it frees, and in its log, until something else is
written there (sqlite.org/pragma.html, "secure_delete"; sqlite.org/lang_vacuum.html).
"""

import contextlib
from collections.abc import Iterator

from ...errors import InboxOrchError
from ..engine import Engine, Session
from .connecting import SLICE_MS
from .log import TRUNCATE_SECONDS
from .refusals import oldest_reader

_WRITTEN_ONCE = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"


@contextlib.contextmanager
def written_once_lifted(tx: Session) -> Iterator[None]:
    """Inside a transaction: rows that are written once may be changed. The triggers are the same
    afterwards; were it cut short, the transaction would take their removal back."""
    # What is replaced is written over with zeros, so that nothing depends on what comes later.
    tx.all("PRAGMA secure_delete=ON")
    tx.all("PRAGMA defer_foreign_keys=ON")
    triggers = [(str(row[0]), str(row[1])) for row in tx.all(_WRITTEN_ONCE)]
    for name, _ in triggers:
        tx.run(f"DROP TRIGGER {name}")
    yield
    for _, statement in triggers:
        tx.run(statement)


def erase(database: Engine) -> None:
    """Write the whole file anew, without what no row has any more, and empty the log.

    Behind the gate: others read on, and write again afterwards. Errors: `busy` (a reader holds an
    old snapshot, so that the log cannot be emptied), `disk_full`, `read_only`, `io_error`.
    """
    with database.unshared() as session:
        session.run("VACUUM")
        session.all(f"PRAGMA busy_timeout={int(TRUNCATE_SECONDS * 1000)}")
        try:
            refused = session.only("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        finally:
            session.all(f"PRAGMA busy_timeout={SLICE_MS}")
    if refused:
        reader = oldest_reader(database.layout) or "a process that cannot be told"
        raise InboxOrchError(
            "busy",
            f"the log of {database.layout.database} cannot be emptied: {reader} reads an old state",
            hint="let it end, and give the same command again: that finishes it",
            details={"path": database.layout.wal},
        )


def free_bytes(tx: Session) -> int:
    """How much of the file belongs to no row."""
    free, size = tx.only("PRAGMA freelist_count")[0], tx.only("PRAGMA page_size")[0]
    return int(free) * int(size)
