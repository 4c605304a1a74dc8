"""Bells: what dead, deaf and planted ones do to writers and to other waiters, which is nothing."""

import os
import stat

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared import creating
from inbox_orch.shared.bells import Bells
from support.processes import Clerk, close_all, crew


@pytest.fixture
def path(tmp_path):
    path = tmp_path / ".inbox" / "bus.db"
    creating.create(str(path))
    return path


@pytest.fixture
def folder(path):
    return path.parent / "bells"


@pytest.fixture
def leader(path):
    with Bus.open(path, agent="leader") as leader:
        yield leader


def _fifos(folder):
    return [p for p in folder.rglob("*") if stat.S_ISFIFO(p.lstat().st_mode)]


def test_200_killed_waiters_leave_nothing_after_the_next_message(path, leader, folder):
    left = 200
    while left:
        waiters = [Clerk(path, "w1") for _ in range(min(25, left))]
        left -= len(waiters)
        for waiter in waiters:
            waiter.start("claim", wait_seconds=600)
        for waiter in waiters:
            waiter.until_asleep()
        close_all(waiters)
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
        assert waiter.answer(within=5).exit_code == 0


def test_bells_removed_under_a_waiting_process_cost_time_and_no_message(path, leader, folder):
    with crew(Clerk(path, "w1")) as (waiter,):
        waiter.start("claim", wait_seconds=60)
        waiter.until_asleep()
        for bell in _fifos(folder):
            bell.unlink()
        leader.send(to="w1", subject="task")
        assert waiter.answer(within=5).exit_code == 0
