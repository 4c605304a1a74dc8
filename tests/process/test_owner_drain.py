"""One owner: a pool empties a queue; every thread is worked on once, and none is lost."""

import random

import pytest

from inbox_orch.inbox import Bus
from support.ledgers import all_events, live_leases, owners_by_event
from support.processes import Child, close_all, crew, linger

WORKERS = 8
THREADS = 2000

# Claims and finishes until nothing has come for longer than a killed worker's lease.
_DRAIN = """
from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say

path, agent, lease_seconds, wait_seconds = sys.argv[1:]
mine = []
with Bus.open(path, agent=agent, busy_seconds=300) as bus:
    say("ready")
    sys.stdin.readline()
    while True:
        try:
            claimed = bus.claim(
                mailboxes=["workers"],
                lease_seconds=float(lease_seconds),
                wait_seconds=float(wait_seconds),
            )
        except InboxOrchError as error:
            assert error.exit_code == 8, error
            break
        try:
            bus.done(claimed.thread.id, claimed.lease.token, body=agent)
        except InboxOrchError as error:
            # On a busy machine a short lease can run out between the two.
            assert (error.code, lease_seconds) == ("lease_lost", "1"), error
        else:
            mine.append(claimed.thread.id)
say(mine)
"""


@pytest.fixture
def leader(path):
    with Bus.open(path, agent="leader") as leader:
        with leader.transaction():
            for number in range(THREADS):
                leader.send(to="workers", subject=f"thread {number}", max_deliveries=1000)
        yield leader


def _worker(path, number, lease_seconds, wait_seconds):
    return Child(_DRAIN, path, f"w{number}", lease_seconds, wait_seconds)


def _set_off(workers):
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")


def test_8_processes_claim_2000_threads_once_each_and_lose_none(path, leader):
    workers = [_worker(path, n, 60, 0) for n in range(WORKERS)]
    with crew(*workers):
        _set_off(workers)
        claims = [thread for worker in workers for thread in worker.hear()]
    assert len(claims) == THREADS
    assert len(set(claims)) == THREADS
    owners = owners_by_event(all_events(leader))
    assert all(len(o) == 1 for o in owners.values())
    assert leader.list(states_wanted=["done"], limit=1, count=True).total == THREADS


def test_with_workers_killed_all_the_time_every_thread_is_finished_once(path, leader):
    chance = random.Random(8)
    workers = [_worker(path, n, 1, 3) for n in range(WORKERS)]
    kills = 0
    try:
        _set_off(workers)
        while leader.list(states_wanted=["pending"], limit=1).items:
            linger(chance.uniform(0.02, 0.1))
            place = chance.randrange(WORKERS)
            workers[place].kill()
            workers[place].close()
            kills += 1
            workers[place] = _worker(path, place, 1, 3)
            _set_off([workers[place]])
            assert max(live_leases(path).values(), default=0) <= 1
        for worker in workers:
            worker.hear()
    finally:
        close_all(workers)
    events = all_events(leader)
    owners_by_event(events)
    finished = [e.thread_id for e in events if e.kind == "thread_done"]
    assert len(finished) == THREADS
    assert len(set(finished)) == THREADS
    # Workers died with a thread in hand, else this would have shown nothing.
    assert any(e.kind == "lease_expired" for e in events), kills
