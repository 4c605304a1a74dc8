"""Power loss: the log of a recorded run, cut at every frame, and a checkpoint cut at every page.

What a call had returned for before the cut is there; what came after is there whole or not at
all; both doctors find nothing. (That the log is synced before a call returns, and an artifact
before that, is the affair of `tests/sqlite/test_order_of_calls.py`.)
"""

import random
import shutil
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.store.sqlite import creating
from support.processes import Child, crew

# The log as sqlite.org/fileformat2.html#the_write_ahead_log describes it.
HEADER_BYTES = 32
FRAME_HEADER_BYTES = 24

RECORDED = """
import os
from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from support.processes import say
from support.runs import add_task, run_init

path, attached = sys.argv[1:]
leader, worker = Bus.open(path, agent="leader"), Bus.open(path, agent="w1")
scheduler = Scheduler(Bus.open(path, agent="leader"))

def returned(what):
    size = os.stat(path + "-wal").st_size
    newest = leader.database.connection.execute("SELECT max(seq) FROM event").fetchone()[0]
    say([what, size, newest])

def held(subject):
    thread = leader.send(to="w1", subject=subject, body="do it\\n" * 300).thread.id
    returned(f"send {subject}")
    token = worker.claim(thread, mailboxes=["w1"]).lease.token
    returned(f"claim {subject}")
    return thread, token

first = held("first")
worker.update(*first, body="half", attach=[attached])
returned("update")
worker.ask(*first, body="Which?", options=["a", "b"])
returned("ask")
leader.reply(first[0], body="a")
returned("reply")
worker.done(*first, body="done", payload='{"n": 1}', attach=[attached])
returned("done")
worker.fail(*held("second"), body="it breaks", retry_in_seconds=1)
returned("fail")
third = held("third")
worker.release(*third)
returned("release")
leader.cancel(third[0], body="enough")
returned("cancel")
run = scheduler.run(run_init(scheduler, repository=None).data["run"]["name"])
returned("run")
for key in ("a", "b"):
    add_task(scheduler, run, key_name=key, title=key, worktree=False,
             depends_on=["a"] if key == "b" else [])
    returned(f"task {key}")
(item,) = scheduler.dispatch(run).items
returned("dispatch")
token = worker.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token
returned("claim a")
worker.done(item["thread"], token, body="done")
returned("done a")
scheduler.reconcile(run)
returned("reconcile")
say("over")
sys.stdin.readline()
"""


# What is written down without an event: who has read which mailbox, what a leader is about to do.
UNTOLD = ('INSERT INTO "reader"', 'INSERT INTO "intent"', 'INSERT INTO "sqlite_sequence"')


class Acknowledged(NamedTuple):
    """A call that has returned: how long the log was then, and the newest event."""

    what: str
    log_bytes: int
    newest: int


class Recording(NamedTuple):
    """The files that a killed process has left, and what it had been told before."""

    folder: Path
    acknowledged: list[Acknowledged]
    log: bytes
    database: bytes

    @property
    def frame_bytes(self) -> int:
        """A frame: its header and a page."""
        return FRAME_HEADER_BYTES + int(struct.unpack(">I", self.log[8:12])[0])

    @property
    def frames(self) -> int:
        """How many there are."""
        return (len(self.log) - HEADER_BYTES) // self.frame_bytes

    def cut(self, log_bytes: int) -> list[Acknowledged]:
        """The calls that had returned when the log was no longer than that."""
        return [call for call in self.acknowledged if call.log_bytes <= log_bytes]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("recorded")
    path = folder / ".inbox" / "bus.db"
    creating.create(str(path))
    (folder / "file").write_bytes(bytes(range(256)) * 30)
    acknowledged = []
    with crew(Child(RECORDED, path, folder / "file")) as (recorded,):
        while (heard := recorded.hear()) != "over":
            acknowledged.append(Acknowledged(*heard))
        recorded.kill()
    log = Path(f"{path}-wal").read_bytes()
    return Recording(folder, acknowledged, log, path.read_bytes())


class Replay:
    """One folder in which the files are put again and again as a power cut leaves them."""

    def __init__(self, recording: Recording, folder: Path) -> None:
        self._recording = recording
        self.path = folder / ".inbox" / "bus.db"
        shutil.copytree(recording.folder / ".inbox", self.path.parent)
        self._dumps: dict[int, str] = {}
        self._sound: set[str] = set()

    def after(self, log: bytes, database: bytes) -> int:
        """Put them there, and judge what is found; returns the newest event."""
        for ending in ("-wal", "-shm"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)
        self.path.write_bytes(database)
        Path(f"{self.path}-wal").write_bytes(log)
        with Bus.open(self.path, agent="leader") as bus:
            newest = bus.database.connection.execute("SELECT max(seq) FROM event").fetchone()[0]
            rows = list(bus.database.connection.iterdump())
            if "\n".join(rows) not in self._sound:
                assert bus.doctor(verify=True).problems == 0
                assert Scheduler(bus).doctor(verify=True).problems == 0
                self._sound.add("\n".join(rows))
        # The same newest event, the same state: whatever was not whole is not there.
        told = "\n".join(row for row in rows if not row.startswith(UNTOLD))
        assert self._dumps.setdefault(newest or 0, told) == told
        return int(newest or 0)


@pytest.fixture
def replay(recording: Recording, tmp_path: Path) -> Replay:
    return Replay(recording, tmp_path / "replayed")


def cuts(recording: Recording, torn: int) -> Iterator[tuple[int, int]]:
    """(bytes of the log that are whole, bytes that are left of it) at every frame."""
    for frame in range(recording.frames + 1):
        whole = HEADER_BYTES + frame * recording.frame_bytes
        yield whole, min(len(recording.log), whole + torn)


def test_the_recorded_run_is_long_enough_to_tell_something(recording: Recording):
    assert len(recording.acknowledged) >= 20
    assert recording.frames >= 150
    assert len(recording.log) == recording.acknowledged[-1].log_bytes
    sys.stdout.write(f"{len(recording.acknowledged)} calls, {recording.frames} frames\n")


@pytest.mark.parametrize("torn", [0, 1000], ids=["between_frames", "in_a_frame"])
def test_whatever_had_returned_before_the_cut_is_there_and_nothing_by_half(
    recording: Recording, replay: Replay, torn: int
):
    whole_calls = {call.newest for call in recording.acknowledged}
    found = []
    for whole, left in cuts(recording, torn):
        newest = replay.after(recording.log[:left], recording.database)
        before = recording.cut(whole)
        if before:
            assert newest >= before[-1].newest, f"{before[-1].what} is lost at byte {whole}"
        found.append(newest)
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == recording.acknowledged[-1].newest
    # Every state that a caller was told of was met, and few others: those between the commits
    # of one call of `orch`.
    assert whole_calls <= set(found)
    within = set(found) - whole_calls - {0}
    first_of_orch = next(c for c in recording.acknowledged if c.what == "cancel").newest
    assert all(newest > first_of_orch for newest in within)


def test_a_tail_that_was_never_written_is_not_taken_for_a_commit(
    recording: Recording, replay: Replay
):
    """A file system may give a file its length before its content: zeros, or what was there."""
    chance = random.Random(5)
    for whole, _ in list(cuts(recording, 0))[:: max(1, recording.frames // 40)]:
        left = len(recording.log) - whole
        for tail in (bytes(left), chance.randbytes(left), recording.log[:left]):
            newest = replay.after(recording.log[:whole] + tail, recording.database)
            before = recording.cut(whole)
            assert newest >= (before[-1].newest if before else 0)


def test_a_checkpoint_that_is_cut_short_at_any_page_loses_nothing(
    recording: Recording, replay: Replay
):
    """Its pages come on the disk in any order, some by half; the log stays until they all have."""
    size = recording.frame_bytes - FRAME_HEADER_BYTES
    pages: dict[int, bytes] = {}
    for frame in range(recording.frames):
        start = HEADER_BYTES + frame * recording.frame_bytes
        (number,) = struct.unpack(">I", recording.log[start : start + 4])
        pages[number] = recording.log[start + FRAME_HEADER_BYTES :][:size]
    chance = random.Random(7)
    order = list(pages)
    chance.shuffle(order)
    database = bytearray(recording.database.ljust(max(pages) * size, b"\0"))
    for number in order:
        offset = (number - 1) * size
        half = bytearray(database)
        half[offset : offset + size // 2] = pages[number][: size // 2]
        newest = replay.after(recording.log, bytes(half))
        assert newest == recording.acknowledged[-1].newest
        database[offset : offset + size] = pages[number]
