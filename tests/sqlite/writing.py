"""Who writes has taken the write lock first: SQLite's statements, looked at one by one."""

import re
import sqlite3

_WRITES = re.compile(r"(?:WITH\b.*\b)?(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.DOTALL)


class Writing:
    """Follows the statements of one connection; `faults` are those that wrote outside of a
    transaction that had begun with the write lock, `writes` counts the others."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.writes = 0
        self._begun: str | None = None

    def note(self, statement: str) -> None:
        """For `set_trace_callback`. What a trigger does comes as a comment, and belongs to the
        statement that set it off."""
        text = statement.strip().upper()
        word = text.split(maxsplit=1)[0].rstrip(";") if text else ""
        if word == "BEGIN":
            self._begun = text.rstrip(";")
        elif word in ("COMMIT", "END") or (word == "ROLLBACK" and " TO " not in f"{text} "):
            self._begun = None
        elif _WRITES.match(text):
            if self._begun == "BEGIN IMMEDIATE":
                self.writes += 1
            else:
                self.faults.append(statement)


def watched(connection: sqlite3.Connection, writing: Writing) -> sqlite3.Connection:
    """The connection, with its statements noted."""
    connection.set_trace_callback(writing.note)
    return connection
