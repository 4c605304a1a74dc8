"""Every error of SQLite has a name of ours, and says whether trying again can help."""

import sqlite3

import pytest

from inbox_orch.shared.store.layout import layout_of
from inbox_orch.shared.store.sqlite.refusals import named

NAMES = {
    "SQLITE_BUSY": ("busy", True),
    "SQLITE_BUSY_SNAPSHOT": ("busy", True),
    "SQLITE_BUSY_RECOVERY": ("busy", True),
    "SQLITE_LOCKED": ("busy", True),
    "SQLITE_PROTOCOL": ("busy", True),
    "SQLITE_FULL": ("disk_full", True),
    "SQLITE_READONLY": ("read_only", False),
    "SQLITE_READONLY_DIRECTORY": ("read_only", False),
    "SQLITE_CANTOPEN": ("read_only", False),
    "SQLITE_PERM": ("read_only", False),
    "SQLITE_CORRUPT": ("corrupt", False),
    "SQLITE_NOTADB": ("corrupt", False),
    "SQLITE_IOERR": ("io_error", False),
    "SQLITE_IOERR_FSYNC": ("io_error", False),
    "SQLITE_CONSTRAINT": ("internal", False),
    "SQLITE_MISUSE": ("internal", False),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_sqlite_is_named_by_its_code_and_never_by_its_text(tmp_path, name):
    error = sqlite3.OperationalError("a text that says nothing")
    error.sqlite_errorcode = getattr(sqlite3, name)
    error.sqlite_errorname = name
    given = named(layout_of(str(tmp_path / "bus.db")), error)
    assert (given.code, given.retryable) == NAMES[name]
    assert given.details["path"].endswith("bus.db")
