"""A database of an older schema, for those who only look: read as the newest one, left as it is."""

import sqlite3

from inbox_orch.migrations import SCHEMA_VERSION


class Upgraded:
    """A copy of what a connection sees, brought to the newest schema, in a nameless file that is
    gone with it. It is made anew when there has been a commit."""

    def __init__(self, source: sqlite3.Connection) -> None:
        self._source = source
        self._copy: sqlite3.Connection | None = None
        self._version = 0

    def current(self) -> sqlite3.Connection:
        """The copy; the source itself once that has been brought up to date."""
        version = int(self._source.execute("PRAGMA data_version").fetchone()[0])
        if self._copy is None or version != self._version:
            self.close()
            if int(self._source.execute("PRAGMA user_version").fetchone()[0]) >= SCHEMA_VERSION:
                return self._source
            self._copy, self._version = _upgraded(self._source), version
        return self._copy

    def close(self) -> None:
        """Forget the copy."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None


def _upgraded(source: sqlite3.Connection) -> sqlite3.Connection:
    from inbox_orch.migrations.apply import migrate

    copy = sqlite3.connect("", isolation_level=None)
    try:
        copy.execute("PRAGMA journal_mode=OFF").fetchall()
        source.backup(copy)
        copy.row_factory = sqlite3.Row
        copy.execute("BEGIN IMMEDIATE")
        migrate(copy)
        copy.execute("COMMIT")
        copy.execute("BEGIN")  # as what is seen of a live file: one snapshot
    except BaseException:
        copy.close()
        raise
    return copy
