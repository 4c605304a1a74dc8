"""The cursor that a watch ends with: what it has looked through is not looked through again."""

import pytest

from support.buses import Office


@pytest.fixture
def leader(tmp_path):
    office = Office(tmp_path)
    yield office.bus("leader")
    office.close()


def test_a_watch_whose_filter_matches_nothing_ends_behind_what_it_has_seen(leader):
    leader.send(to="w1", subject="task")
    stream = leader.watch(after="0", kinds=["thread_done"], wait_seconds=0)

    assert list(stream) == []
    assert stream.next_cursor == leader.latest_event() == "1"


def test_a_watch_that_is_left_early_goes_on_behind_the_last_event_it_gave(leader):
    leader.send(to="w1", subject="one")
    leader.send(to="w1", subject="two")
    stream = leader.watch(after="0", wait_seconds=0)

    assert stream.next_cursor == "0"
    assert (next(stream).seq, stream.next_cursor) == (1, "1")
    assert [event.seq for event in leader.watch(after=stream.next_cursor, wait_seconds=0)] == [2]
