"""The write-ahead log stays short, and who keeps it long is named."""

import os
import time

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.gate import Gate
from inbox_orch.shared.store.sqlite import log
from support.buses import refused
from support.processes import Child, crew
from support.timing import promptly

MEBIBYTE = 1024 * 1024

_WRITER = """
from inbox_orch.inbox import Bus
from support.processes import say
path, agent, number = sys.argv[1:]
with Bus.open(path, agent=agent) as bus:
    say("ready")
    sys.stdin.readline()
    largest = 0
    for _ in range(int(number)):
        bus.send(to="pool", subject="task", body="x" * 4000)
        largest = max(largest, __import__("os").stat(bus.database.layout.wal).st_size)
say(largest)
"""

_READER = """
import sqlite3
from support.processes import say
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT count(*) FROM thread").fetchall()
say("reads")
sys.stdin.readline()
connection.execute("COMMIT")
say("has read")
sys.stdin.readline()
"""


@pytest.fixture
def told():
    """What the leader's bus had to say to people."""
    return []


@pytest.fixture
def leader(path, told):
    with Bus.open(path, agent="leader", notice=told.append) as leader:
        yield leader


def _log_bytes(bus):
    return os.stat(bus.database.layout.wal).st_size


def _seconds_to_send_ten(bus):
    began = time.monotonic()
    for _ in range(10):
        bus.send(to="pool", subject="small")
    return time.monotonic() - began


def _write_mebibytes(bus, number):
    for _ in range(0, number, 8):
        bus.send(to="pool", subject="large", body="x" * 8 * MEBIBYTE)


def test_several_writers_leave_a_log_of_a_few_mebibytes(path, leader):
    writers = [Child(_WRITER, path, f"w{n}", 1000) for n in range(4)]
    with crew(*writers):
        for writer in writers:
            assert writer.hear() == "ready"
        for writer in writers:
            writer.tell("go")
        largest = max(writer.hear() for writer in writers)
    # Much more than that has gone through it, and it was not cut at every commit either.
    assert os.stat(path).st_size > 16 * MEBIBYTE
    assert log.CHECKPOINT_BYTES < largest < 3 * log.CHECKPOINT_BYTES
    assert leader.list(limit=1, count=True).total == 4000


def test_the_log_is_checkpointed_only_behind_the_gate(path, monkeypatch):
    """SQLite up to 3.51.2 can damage the file when a reset of the log races a checkpoint."""
    monkeypatch.setattr(log, "CHECKPOINT_BYTES", 0)
    refusals = []

    def look(statement):
        if "wal_checkpoint" in statement:
            with refused("busy"):
                Gate(str(path.parent / "gate")).acquire(0.01)
            refusals.append(statement)

    with Bus.open(path, agent="leader") as leader:
        leader.database.connection.set_trace_callback(look)
        leader.send(to="pool", subject="task")
        monkeypatch.setattr(log, "TRUNCATE_BYTES", 0)
        leader.send(to="pool", subject="task")
        assert leader.database.connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0] == 0
    assert len(refusals) >= 2


def test_a_sleeping_reader_is_named_and_holds_nobody_up(path, leader, told):
    with crew(Child(_READER, path)) as (reader,):
        assert reader.hear() == "reads"
        _write_mebibytes(leader, 80)
        assert _log_bytes(leader) > log.TRUNCATE_BYTES
        assert len(told) == 1
        assert "grown to 6" in told[0]
        assert f"process {reader.pid} (python" in told[0]
        promptly(lambda: _seconds_to_send_ten(leader), within=log.TRUNCATE_SECONDS)
        assert len(told) == 1
        reader.tell("go on")
        assert reader.hear() == "has read"
        leader.send(to="pool", subject="cuts the log")
        assert _log_bytes(leader) <= log.CHECKPOINT_BYTES
    assert leader.list(limit=1, count=True).total >= 21


def test_a_log_that_a_killed_process_left_is_cut_by_the_next_writer(path, leader):
    code = """
import os
from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import log
from support.processes import say
log.CHECKPOINT_BYTES = log.TRUNCATE_BYTES = 1 << 40
bus = Bus.open(sys.argv[1], agent="w")
for _ in range(9):
    bus.send(to="pool", subject="large", body="x" * 8 * 1024 * 1024)
say("written")
sys.stdin.readline()
"""
    with crew(Child(code, path)) as (careless,):
        assert careless.hear() == "written"
        careless.kill()
    assert _log_bytes(leader) > log.TRUNCATE_BYTES
    leader.send(to="pool", subject="cuts the log")
    assert _log_bytes(leader) <= log.CHECKPOINT_BYTES
    assert leader.list(limit=1, count=True).total == 10


def test_no_log_is_left_when_the_last_process_has_closed(path):
    with Bus.open(path, agent="leader") as leader:
        leader.send(to="pool", subject="task")
        wal = leader.database.layout.wal
        assert os.path.exists(wal)
    assert not os.path.exists(wal)
