"""Looking after a live database drops none of SQLite's locks and takes none for long."""

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from sqlite.writing import Writing
from support.processes import Child

CARE = """
import os
from pathlib import Path
from inbox_orch.inbox import Bus
from support.processes import say
path, copy = Path(sys.argv[1]), sys.argv[2]
opened, statements = [], []

def looked():
    inodes = {str(os.stat(f"{path}{end}").st_ino) for end in ("", "-shm")}
    rows = [line.split() for line in open("/proc/locks")]
    return sorted(r[-3:] for r in rows if r[1] == "POSIX" and r[-3].split(":")[-1] in inodes)

def locks():
    # A row between two pages of a file that changes meanwhile may be read twice or not at all.
    while (found := looked()) != looked():
        pass
    return found

sys.addaudithook(lambda name, given: opened.append(str(given[0])) if name == "open" else None)
with Bus.open(path, agent="keeper") as bus:
    connection = bus.database.connection
    connection.set_trace_callback(statements.append)
    with bus.database.snapshot():
        connection.execute("SELECT 1 FROM thread").fetchall()
        held = locks()
        assert held or not os.path.exists("/proc/locks")
        path.chmod(0o640)
        bus.doctor(verify=True, fix=True)
        assert path.stat().st_mode & 0o777 == 0o600
        kept = locks() == held
    bus.backup(copy, artifacts=True)
    list(bus.export())
    bus.prune(0)
say([kept, opened, statements])
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".inbox" / "bus.db"
    creating.create(str(path))
    (tmp_path / "file.txt").write_text("content")
    with Bus.open(path, agent="leader") as bus:
        for name in ("one", "two"):
            sent = bus.send(to="w", subject=name, attach=[str(tmp_path / "file.txt")])
        bus.cancel(sent.thread.id)
    return path


@pytest.fixture
def care(path, tmp_path):
    """(the locks stayed, paths opened by Python, SQL of the main connection)."""
    child = Child(CARE, path, tmp_path / "copy.db")
    yield child.hear()
    child.close()


def test_a_held_lock_survives_all_care_and_no_file_of_sqlite_s_is_opened(care, path):
    kept, opened, _ = care

    assert kept
    assert any(name.endswith("gate") for name in opened)
    assert [name for name in opened if name.startswith(str(path))] == []


def test_every_write_of_the_care_begins_immediate(care):
    _, _, statements = care
    writing = Writing()
    for statement in statements:
        writing.note(statement)
    assert writing.faults == []
    assert writing.writes >= 5
