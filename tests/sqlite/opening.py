"""Many processes that open one database at the same moment, and the schema that it has then."""

import contextlib
import sqlite3
from pathlib import Path

from support.processes import Child, Gun, close_all

_OPENER = """
import os, sqlite3
from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say
statements = []
connect = sqlite3.connect
def traced(*arguments, **options):
    connection = connect(*arguments, **options)
    connection.set_trace_callback(statements.append)
    return connection
os.read(int(sys.argv[2]), 1)
sqlite3.connect = traced
try:
    with Bus.open(sys.argv[1], agent="w9", busy_seconds=300) as bus:
        found = len(bus.list().items)
    say([sum(s.startswith("PRAGMA user_version=") for s in statements), found])
except InboxOrchError as error:
    say([error.code, error.message])
"""


def opened_at_once(path: Path, processes: int) -> list[list[object]]:
    """What each of so many processes says: how often it has set the version of the schema, and how
    many threads it has seen; or the code and the message of its refusal."""
    gun = Gun()
    descriptor = gun.descriptor
    openers = [Child(_OPENER, path, descriptor, pass_fds=(descriptor,)) for _ in range(processes)]
    try:
        gun.fire(processes)
        return [opener.hear() for opener in openers]
    finally:
        close_all(openers, gun)


def schema_of(path: Path) -> dict[tuple[str, str], str | None]:
    """(type, name) of every table, index and trigger of the file, with its statement."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master")
        return {(r[0], r[1]): r[2] for r in rows if not r[1].startswith("sqlite_")}
