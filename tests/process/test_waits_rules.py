"""What a wait returns and what it leaves alone: cursors, time-outs, one's own messages."""

import time

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store import waits
from support.buses import Office, refused
from support.clocks import SteppingClock
from support.timing import PATIENCE_SECONDS, undisturbed


class UnsteadyClock(SteppingClock):
    """Its wall clock is set anew between readings: `ahead_by` says by how much each is ahead,
    and the last of these holds from then on."""

    def __init__(self):
        super().__init__()
        self.ahead_by = [0]

    def now(self):
        ahead_ms = self.ahead_by.pop(0) if len(self.ahead_by) > 1 else self.ahead_by[0]
        moment = super().now()
        return moment._replace(wall_ms=moment.wall_ms + ahead_ms)


@pytest.fixture
def clock():
    return SteppingClock()


@pytest.fixture
def leader(path, clock):
    with Bus.open(path, agent="leader", clock=clock) as leader:
        yield leader


@pytest.fixture
def worker(path, clock):
    with Bus.open(path, agent="w1", clock=clock) as worker:
        yield worker


@pytest.fixture
def looks(monkeypatch):
    """How often waits have looked at the database."""
    counted = []
    genuine = waits.look_once

    def counting(look):
        counted.append(look)
        return genuine(look)

    monkeypatch.setattr(waits, "look_once", counting)
    return counted


def _held(leader, worker, lease_seconds=300):
    leader.send(to="w1", subject="task", body="do it")
    claimed = worker.claim(lease_seconds=lease_seconds)
    return claimed.thread.id, claimed.lease.token


def test_ones_own_messages_never_end_a_wait_for_a_reply(leader, worker):
    thread, token = _held(leader, worker)
    worker.update(thread, token, body="half way")
    for after in (None, "0"):
        with refused("timeout"):
            # The task itself is by the leader: begin behind it.
            worker.wait_reply(thread, token, after=after and "1", wait_seconds=0.05)


def test_ones_own_messages_never_end_a_wait_for_mail(leader):
    leader.send(to="leader", subject="note to myself")
    with refused("timeout"):
        leader.fetch(wait_seconds=0.05)


def test_a_wait_that_timed_out_gives_the_cursor_that_misses_nothing(leader, worker):
    thread, token = _held(leader, worker)
    with refused("timeout") as failure:
        worker.wait_reply(thread, token, wait_seconds=0.01)
    cursor = failure.value.data["next_cursor"]
    leader.reply(thread, body="between two waits")
    # Something of one's own in between would move the default start past the reply.
    worker.update(thread, token, body="still working")
    replies = worker.wait_reply(thread, token, after=cursor, wait_seconds=0)
    assert [m.body for m in replies.messages] == ["between two waits"]
    assert int(replies.next_cursor) > int(cursor)


def test_a_watch_resumed_at_its_last_event_misses_none_and_repeats_none(leader):
    leader.send(to="pool", subject="one")
    first = list(leader.watch(after="0", wait_seconds=0))
    leader.send(to="pool", subject="two")
    rest = list(leader.watch(after=str(first[-1].seq), wait_seconds=0))
    everything = list(leader.watch(after="0", wait_seconds=0))
    assert [e.seq for e in first + rest] == [e.seq for e in everything]


def test_a_reply_that_is_there_already_is_returned_by_a_wait_of_zero(leader, worker):
    thread, token = _held(leader, worker)
    worker.ask(thread, token, body="Which?")
    leader.reply(thread, body="that one")
    replies = worker.wait_reply(thread, token, wait_seconds=0)
    assert [m.body for m in replies.messages] == ["that one"]


def test_a_wait_of_zero_with_nothing_there_is_a_timeout(leader, worker):
    thread, token = _held(leader, worker)
    with refused("timeout") as failure:
        worker.wait_reply(thread, token, wait_seconds=0)
    assert failure.value.exit_code == 8


def test_an_idle_wait_looks_at_the_database_only_at_its_start_and_its_end(worker, looks):
    with refused("timeout"):
        worker.fetch(wait_seconds=1)
    assert len(looks) == 2


def test_peeking_beside_an_expired_lease_waits_as_quietly_as_ever(leader, worker, clock, looks):
    _held(leader, worker, lease_seconds=1)
    worker.mark_read(worker.fetch())
    clock.ahead_ms += 2000
    with refused("timeout"):
        worker.fetch(peek=True, wait_seconds=1)
    assert len(looks) <= 3


def test_waiting_for_mail_beside_a_due_thread_waits_as_quietly_as_ever(
    leader, worker, clock, looks
):
    leader.send(to="w1", subject="later", delay_seconds=1)
    worker.mark_read(worker.fetch())
    clock.ahead_ms += 2000
    with refused("timeout"):
        worker.fetch(wait_seconds=1)
    assert len(looks) <= 3


def test_a_watch_ends_in_time_although_events_keep_coming(leader):
    leader.send(to="pool", subject="first")
    seen = 0
    began = time.monotonic()
    for _ in leader.watch(after="0", wait_seconds=0.2):
        leader.send(to="pool", subject="one more for each that is seen")
        seen += 1
        assert time.monotonic() - began < PATIENCE_SECONDS, "the watch went on after its time"
    assert seen > 1


def test_a_watch_of_zero_seconds_gives_what_was_there_when_it_began(leader):
    for number in range(3):
        leader.send(to="pool", subject=f"thread {number}")
    seen = []
    for event in leader.watch(after="0", wait_seconds=0):
        seen.append(event)
        leader.send(to="pool", subject="meanwhile")
        assert len(seen) < 100, "the watch chases what comes meanwhile"
    assert len(seen) == 3


def test_a_watch_for_one_kind_does_not_read_the_other_events_again_and_again(leader, monkeypatch):
    from inbox_orch.shared.store import events

    asked = []
    genuine = events.after

    def noting(connection, seq, **options):
        asked.append(seq)
        return genuine(connection, seq, **options)

    monkeypatch.setattr(events, "after", noting)
    for number in range(5):
        leader.send(to="pool", subject=f"thread {number}")

    def looks_again() -> bool:
        asked.clear()
        assert list(leader.watch(after="0", kinds=["thread_done"], wait_seconds=0.05)) == []
        assert asked in ([0], [0, 5])
        return len(asked) == 2

    undisturbed(looks_again)


def test_waiting_for_a_thread_of_a_foreign_mailbox_is_refused_at_once(leader, worker, path, clock):
    thread, _ = _held(leader, worker)
    with Bus.open(path, agent="w2", clock=clock) as stranger, refused("wrong_mailbox"):
        stranger.claim(thread, wait_seconds=30)


def test_a_wait_for_a_held_thread_says_in_the_end_who_holds_it(leader, worker, path, clock):
    thread, _ = _held(leader, worker)
    with Bus.open(path, agent="w2", clock=clock) as rival, refused("timeout") as failure:
        rival.claim(thread, mailboxes=["w1"], wait_seconds=0.05)
    assert failure.value.details["holder"] == "w1"


def test_an_expiry_that_a_refused_claim_came_across_stays_recorded(tmp_path):
    office = Office(tmp_path)
    leader, worker = office.bus("leader"), office.bus("w1")
    thread = leader.send(to="w1", subject="poison", max_deliveries=1).thread.id
    worker.claim(lease_seconds=60)
    office.clock.advance(61)
    with refused("invalid_state"):
        worker.claim(thread)
    assert leader.show(thread).thread.reason == "exhausted"
    office.close()


def test_a_wall_clock_set_to_and_fro_around_a_deadline_does_not_confuse_the_wait(path):
    clock = UnsteadyClock()
    with (
        Bus.open(path, agent="leader", clock=clock) as leader,
        Bus.open(path, agent="w1", clock=clock) as worker,
    ):
        thread, token = _held(leader, worker)
        worker.ask(thread, token, body="Which?", deadline_seconds=30)
        clock.ahead_by = [60_000, 0, 60_000]
        with refused("timeout"):
            worker.wait_reply(thread, token, wait_seconds=0)
        (message,) = worker.wait_reply(thread, token, wait_seconds=0).messages
        assert message.kind == "system"


def test_a_first_wait_outlives_a_write_lock_although_it_has_to_note_its_reader(path):
    with Bus.open(path, agent="w9", busy_seconds=0.05) as newcomer:
        gate = newcomer.database._gate.__class__(newcomer.database.layout.gate)
        gate.acquire(1)
        try:
            with refused("timeout"):
                newcomer.fetch(wait_seconds=0.3, peek=True)
            began = time.monotonic()
            with refused("busy"):
                newcomer.fetch(wait_seconds=0.5)
            assert time.monotonic() - began >= 0.5
        finally:
            gate.release()
