"""The doctor beside processes that write: one snapshot, and nobody is held up."""

import time

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from support.processes import Child
from support.timing import PATIENCE_SECONDS, promptly

WRITER = """
import sys
from inbox_orch.inbox import Bus
from support.processes import say
bus = Bus.open(sys.argv[1], agent=sys.argv[2], busy_seconds=300)
say("ready")
while True:
    thread = bus.send(to=sys.argv[2], subject="task", body="x" * 200).thread.id
    token = bus.claim().lease.token
    bus.update(thread, token, progress=50)
    bus.done(thread, token, body="ok")
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".inbox" / "bus.db"
    creating.create(str(path))
    return path


@pytest.fixture
def writers(path):
    children = [Child(WRITER, path, f"w{number}") for number in range(3)]
    for child in children:
        assert child.hear() == "ready"
    yield children
    for child in children:
        child.close()


def test_verify_is_clean_at_every_moment_and_the_writers_go_on(path, writers):
    with Bus.open(path, agent="leader") as bus:
        began = time.monotonic()
        seen = []
        while time.monotonic() < began + 3 or len(seen) < 5 or seen[-1] == seen[0]:
            assert time.monotonic() < began + PATIENCE_SECONDS, "the writers did not go on"
            found = bus.doctor(verify=True)
            assert [c for c in found.checks if c.status == "problem"] == []
            seen.append(found.newest_event)
    assert seen == sorted(seen)


def test_a_backup_is_made_in_one_go_while_others_write(path, writers, tmp_path):
    with Bus.open(path, agent="leader") as bus:

        def trial():
            began, newest = time.monotonic(), int(bus.latest_event())
            made = bus.backup(tmp_path / "copy.db", force=True)
            seconds = time.monotonic() - began
            assert made.newest_event >= newest
            with Bus.open(made.path, agent="leader") as copy:
                assert int(copy.latest_event()) == made.newest_event
                assert not copy.doctor(verify=True).problems
            return seconds

        promptly(trial, within=5)
