"""The write-ahead log, kept short by checkpoints.

SQLite up to 3.51.2 can corrupt the file when a reset of the log races a checkpoint
(sqlite.org/wal.html, "the WAL-reset bug"). So they are made behind the gate, by writers alone.
"""

import contextlib
import os
import sqlite3
import time

from ..layout import Layout
from .connecting import SLICE_MS, Notice
from .refusals import oldest_reader

CHECKPOINT_BYTES = 4 * 1024 * 1024
SHORT_OF_ROOM_BYTES = 64 * 1024
TRUNCATE_BYTES = 64 * 1024 * 1024
TRUNCATE_SECONDS = 2.0
NOTICE_EVERY_SECONDS = 60.0


class Log:
    """The log of one connection."""

    def __init__(self, layout: Layout, connection: sqlite3.Connection, notice: Notice) -> None:
        self._layout, self._connection, self._notice = layout, connection, notice
        self._path = layout.wal
        self._last_notice = float("-inf")

    def keep_short(self, *, alone: bool) -> None:
        """Checkpoint when the log is long, while the gate is held. `alone`: there is no room.

        The change is committed already, so a checkpoint that fails is left to the next writer.
        """
        size = size_of(self._path)
        if alone and size > SHORT_OF_ROOM_BYTES:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return
        if size <= CHECKPOINT_BYTES:
            return
        with contextlib.suppress(sqlite3.Error):
            row = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if size > TRUNCATE_BYTES:
                # With a part left over, a reader sits on an old snapshot: waiting for it behind
                # the gate would hold up every writer at every commit.
                _, frames, copied = row
                self._truncate(size, worth_waiting=frames == copied)

    def _truncate(self, size: int, *, worth_waiting: bool) -> None:
        if worth_waiting and self._truncated_in_time():
            return
        now = time.monotonic()
        if now - self._last_notice >= NOTICE_EVERY_SECONDS:
            self._last_notice = now
            self._notice(
                f"the write-ahead log has grown to {size // (1024 * 1024)} MiB because a reader "
                f"holds an old snapshot: {oldest_reader(self._layout) or 'unknown process'}"
            )

    def _truncated_in_time(self) -> bool:
        self._connection.execute(f"PRAGMA busy_timeout={int(TRUNCATE_SECONDS * 1000)}")
        try:
            row = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={SLICE_MS}")
        return not row[0]


def size_of(path: str) -> int:
    """The length of a file in bytes, 0 when there is none."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
