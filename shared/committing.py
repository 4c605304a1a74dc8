"""The end of a transaction, and what a COMMIT that failed has left in the log.

SQLite writes a commit to its log, has the disk sync it, and only then tells the others. When the
sync fails, the commit counts for nobody, and yet it lies there whole: whoever reads the log
anew, once every process has closed the database, takes it in (sqlite.org/wal.html, "Recovery"). So
something that changes nothing is written over it at once. If that cannot be synced either, nobody
can say what will be there.
"""

import sqlite3

from .errors import InboxOrchError
from .layout import Layout

# Refused while it was being written: without its last frame it is no commit.
_NOT_WRITTEN = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_FULL)


def commit(layout: Layout, connection: sqlite3.Connection) -> None:
    """Commit. Raises sqlite3.Error when nothing was done; error `outcome_unknown` when it was done
    wholly or not at all, and nobody can tell which."""
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if _may_be_in_the_log(error) and not _written_over(connection):
            raise _unknown(layout, error) from error
        raise


def _may_be_in_the_log(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) not in _NOT_WRITTEN


def _written_over(connection: sqlite3.Connection) -> bool:
    """Whether another commit, which changes nothing, is on disk in the place of the failed one.

    The frames of a log are chained by their checksums: what is left of a longer commit behind the
    new one counts no more (sqlite.org/walformat.html).
    """
    mode = connection.execute("PRAGMA synchronous").fetchone()[0]
    try:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        connection.execute(f"PRAGMA user_version={version}")
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return False
    finally:
        connection.execute(f"PRAGMA synchronous={mode}")
    return True


def _unknown(layout: Layout, error: sqlite3.Error) -> InboxOrchError:
    return InboxOrchError(
        "outcome_unknown",
        f"the disk failed while a change of {layout.database} was being committed ({error}): it "
        "was done wholly or not at all",
        hint="check the disk; then the same call with the same --key or token is safe, "
        "or look first whether it was done",
        details={
            "path": layout.database,
            "sqlite": getattr(error, "sqlite_errorname", None),
        },
    )
