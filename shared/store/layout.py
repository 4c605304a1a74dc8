"""Where the files of one database lie, all beside it.

Only SQLite ever opens the database file and its `-wal` and `-shm`: a process that opens and
closes one of them itself drops SQLite's POSIX locks (fcntl(2): closing any descriptor of a
file releases the process's locks on it), and commits of others are then lost. `live` refuses
such files to whatever reads what a caller has named.
"""

import os
from typing import NamedTuple

FOLDER_NAME = ".inbox"
DATABASE_NAME = "bus.db"


class Layout(NamedTuple):
    """The absolute paths that belong to one database."""

    database: str
    gate: str
    artifacts: str
    bells: str

    @property
    def wal(self) -> str:
        """The write-ahead log; looked at by stat only."""
        return self.database + "-wal"

    @property
    def shm(self) -> str:
        """The index of the write-ahead log; looked at by stat only."""
        return self.database + "-shm"

    @property
    def journal(self) -> str:
        """The rollback journal, which there is only without a log."""
        return self.database + "-journal"

    @property
    def sqlite_files(self) -> tuple[str, ...]:
        """What only SQLite opens."""
        return self.database, self.wal, self.shm, self.journal

    @property
    def own(self) -> tuple[str, ...]:
        """What lies beside the database and must not be a link; the gate sees to itself."""
        return self.wal, self.shm, self.journal, self.artifacts, self.bells, self.hooks

    @property
    def hooks(self) -> str:
        """The folder in which hooks remember what they have announced."""
        return self.bells.removesuffix("bells") + "hooks"

    @property
    def reserve(self) -> str:
        """The file that keeps room for a full disk."""
        return self.gate.removesuffix("gate") + "reserve"

    @property
    def tracing(self) -> str:
        """The file that whoever exports a trace locks."""
        return self.gate.removesuffix("gate") + "tracing"

    def holds(self, path: str) -> bool:
        """Whether a path leads to a file of this database, or into the folder of any project's:
        writing there by any other way than SQLite's would lose what is stored."""
        real = os.path.realpath(path)
        if real in (*self.sqlite_files, self.gate, self.reserve, self.tracing):
            return True
        if FOLDER_NAME in real.split(os.sep):
            return True
        own = (self.artifacts, self.bells, self.hooks)
        return any(real == f or real.startswith(f + os.sep) for f in own)


def layout_of(database: str) -> Layout:
    """The layout of a database path; symbolic links are resolved, so that aliases agree.

    A database with a name of its own gets neighbours with its name in front, so that two
    databases in one folder never share artifacts.
    """
    real = os.path.realpath(database)
    folder, name = os.path.split(real)
    prefix = "" if name == DATABASE_NAME else name + "."
    return Layout(
        real,
        os.path.join(folder, prefix + "gate"),
        os.path.join(folder, prefix + "artifacts"),
        os.path.join(folder, prefix + "bells"),
    )


def database_in(folder: str) -> str:
    """The database path that `init FOLDER` makes."""
    return os.path.join(folder, FOLDER_NAME, DATABASE_NAME)
