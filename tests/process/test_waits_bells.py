"""Bells: what dead, deaf and planted ones do to writers and to other waiters, which is nothing."""

import os
import signal

import pytest

from inbox_orch.shared.store.sqlite.bells import Bells
from support.processes import Child, Clerk, crew, until

# Processes that wait for a thread, each with a database that it has opened itself.
_WAITERS = """
import os
from inbox_orch.inbox import Bus
from support.processes import say

waiters = []
for _ in range(int(sys.argv[2])):
    waiter = os.fork()
    if waiter == 0:
        with Bus.open(sys.argv[1], agent="w1") as bus:
            bus.claim(wait_seconds=600)
        os._exit(1)
    waiters.append(waiter)
say(waiters)
sys.stdin.readline()
say([os.waitstatus_to_exitcode(os.waitpid(waiter, 0)[1]) for waiter in waiters])
"""


@pytest.fixture
def folder(path):
    return path.parent / "bells"


def _fifos(folder):
    return [p for p in folder.rglob("*") if p.is_fifo()]


def _hung_up(folder):
    """Those that are in place, where a writer finds them."""
    return [p for p in _fifos(folder) if not p.name.startswith(".new-")]


def test_200_killed_waiters_leave_nothing_after_the_next_message(path, leader, folder):
    with crew(Child(_WAITERS, path, 200)) as (parent,):
        waiters = parent.hear()
        until(lambda: len(_hung_up(folder)) == 200)
        for waiter in waiters:
            os.kill(waiter, signal.SIGKILL)
        parent.tell("they are dead")
        assert parent.hear() == [-signal.SIGKILL] * 200
    assert len(_fifos(folder)) == 200
    leader.send(to="w1", subject="for whoever is left")
    assert _fifos(folder) == []
    assert not (folder / "w1").exists()


def test_a_wait_that_ends_takes_its_bell_away(path, leader, folder):
    with crew(Clerk(path, "w1")) as (waiter,):
        waiter.start("claim", wait_seconds=60)
        waiter.until_asleep()
        leader.send(to="w1", subject="task")
        assert waiter.answer().exit_code == 0
    assert _fifos(folder) == []


def test_a_bell_that_nobody_empties_never_blocks_a_writer(leader, folder):
    with Bells(str(folder), ["w1"]) as deaf:
        assert deaf.armed
        (bell,) = (folder / "w1").iterdir()
        writer = os.open(bell, os.O_WRONLY | os.O_NONBLOCK)
        _fill(writer)
        os.close(writer)
        leader.send(to="w1", subject="the bell is full")
        assert bell.exists()
        assert deaf.sleep(0)
    assert leader.list().items[0].subject == "the bell is full"


def _fill(writer):
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        return


@pytest.mark.parametrize("kind", ["file", "link to a file", "link to a fifo", "folder"])
def test_what_was_planted_among_the_bells_is_neither_followed_nor_written(
    leader, folder, tmp_path, kind
):
    place = folder / "w1"
    place.mkdir()
    elsewhere = tmp_path / "elsewhere"
    planted = place / "planted"
    reader = None
    if kind == "file":
        planted.write_bytes(b"untouched")
    elif kind == "link to a file":
        elsewhere.write_bytes(b"untouched")
        planted.symlink_to(elsewhere)
    elif kind == "link to a fifo":
        os.mkfifo(elsewhere)
        reader = os.open(elsewhere, os.O_RDONLY | os.O_NONBLOCK)
        planted.symlink_to(elsewhere)
    else:
        planted.mkdir()
    leader.send(to="w1", subject="task")
    assert os.path.lexists(planted)
    if reader is not None:
        assert os.read(reader, 10) == b""
        os.close(reader)
    elif kind != "folder":
        assert planted.read_bytes() == b"untouched"


def test_arming_never_brings_a_removed_folder_back(path, folder, tmp_path):
    path.parent.rename(tmp_path / "moved away")
    with Bells(str(folder), ["w1"]) as unarmed:
        assert not unarmed.armed
    assert not path.parent.exists()


def test_where_no_fifo_can_be_made_a_wait_still_ends_with_its_message(path, leader, folder):
    folder.rmdir()
    folder.write_text("a file in the place of the folder")
    with crew(Clerk(path, "w1")) as (waiter,):
        waiter.start("claim", wait_seconds=60)
        waiter.until_asleep()
        leader.send(to="w1", subject="task")
        assert waiter.answer().exit_code == 0


def test_bells_removed_under_a_waiting_process_cost_time_and_no_message(path, leader, folder):
    with crew(Clerk(path, "w1")) as (waiter,):
        waiter.start("claim", wait_seconds=60)
        waiter.until_asleep()
        for bell in _fifos(folder):
            bell.unlink()
        leader.send(to="w1", subject="task")
        assert waiter.answer().exit_code == 0
