"""Fencing between real processes: a holder that stood still finds itself overtaken."""

import pytest

from inbox_orch.inbox import Bus
from support.clocks import SteppingClock
from support.ledgers import all_events, dump, owners_by_event
from support.processes import Clerk, close_all, crew, run_json, until

LEASE_SECONDS = 300
CALLS = {
    "renew": {},
    "update": {"body": "second"},
    "ask": {"body": "second"},
    "done": {"body": "second"},
    "fail": {"body": "second"},
    "release": {"body": "second"},
}


@pytest.fixture
def pair(path):
    """Two processes of one agent name."""
    clerks = [Clerk(path, "w1"), Clerk(path, "w1")]
    yield clerks
    close_all(clerks)


def _claim(clerk, **options):
    return clerk.call("claim", mailboxes=["workers"], lease_seconds=1, **options)


def test_a_stopped_holder_that_goes_on_after_a_takeover_is_refused_everything(path, leader, pair):
    first, second = pair
    leader.send(to="workers", subject="task")
    stale = _claim(first)
    first.freeze()
    current = _claim(second, wait_seconds=10)
    assert current.thread == stale.thread
    second.call("renew", current.thread, current.token, lease_seconds=300)
    before = dump(path)
    first.thaw()
    for verb, options in CALLS.items():
        answer = first.call(verb, stale.thread, stale.token, **options)
        assert (verb, answer.refused, answer.exit_code) == (verb, "lease_lost", 7)
    assert dump(path) == before
    assert second.call("done", current.thread, current.token).exit_code == 0


def test_a_holder_stopped_inside_wait_reply_comes_out_of_it_with_lease_lost(leader, pair):
    first, second = pair
    leader.send(to="workers", subject="task")
    stale = _claim(first)
    first.start("wait_reply", stale.thread, stale.token, wait_seconds=60)
    first.until_asleep()
    first.freeze()
    current = _claim(second, wait_seconds=10)
    first.thaw()
    answer = first.answer()
    assert (answer.refused, answer.exit_code) == ("lease_lost", 7)
    assert second.call("renew", current.thread, current.token).exit_code == 0


def test_a_stopped_holder_that_nobody_has_overtaken_goes_on_under_its_own_epoch(leader, pair):
    first, _ = pair
    leader.send(to="workers", subject="task")
    held = _claim(first)
    first.freeze()
    until(lambda: leader.show(held.thread).thread.lease.expired)
    first.thaw()
    renewed = first.call("renew", held.thread, held.token)
    assert renewed.exit_code == 0
    assert renewed.value["late"]
    assert renewed.value["lease"]["epoch"] == held.value["lease"]["epoch"]


def test_a_result_of_the_next_holder_stands_and_is_the_only_end(leader, pair):
    first, second = pair
    leader.send(to="workers", subject="task")
    stale = _claim(first)
    first.freeze()
    current = _claim(second, wait_seconds=10)
    second.call("done", current.thread, current.token, body="by the second")
    first.thaw()
    assert first.call("done", stale.thread, stale.token, body="by the first").exit_code == 7
    shown = leader.show(stale.thread)
    assert [m.body for m in shown.messages if m.kind == "result"] == ["by the second"]
    events = all_events(leader)
    assert [e.kind for e in events if e.data["to"] == "done"] == ["thread_done"]
    assert len(owners_by_event(events)[stale.thread]) == 2


def test_every_command_with_the_old_token_exits_with_7(path, leader, inbox_bin):
    leader.send(to="workers", subject="task")
    claim = ("claim", "--mailbox", "workers", "--db", str(path))
    stale = run_json(inbox_bin, *claim, "--lease", "1", agent="w1").json["data"]
    current = run_json(inbox_bin, *claim, "--wait", "10", agent="w1").json["data"]
    thread, token = stale["thread"]["id"], stale["lease"]["token"]
    assert (current["thread"]["id"], current["lease"]["epoch"]) == (thread, 2)
    before = dump(path)
    for verb, options in CALLS.items():
        body = ("--body", options["body"]) if options else ()
        ran = run_json(inbox_bin, verb, thread, "--token", token, *body, "--db", str(path))
        assert (verb, ran.exit_code, ran.json["error"]["code"]) == (verb, 7, "lease_lost")
    assert dump(path) == before


def test_a_holder_restarted_under_its_name_does_not_refresh_the_old_lease(path, leader):
    leader.send(to="workers", subject="task")
    with crew(Clerk(path, "w1")) as (dead,):
        held = dead.call("claim", mailboxes=["workers"], lease_seconds=LEASE_SECONDS)
        dead.kill()
    with crew(Clerk(path, "w1")) as (reborn,):
        reborn.call("fetch", mailboxes=["workers"])
        assert leader.show(held.thread).thread.lease.renewed_at is None
    with Bus.open(path, agent="w1", clock=SteppingClock(LEASE_SECONDS + 1)) as later:
        taken = later.claim(mailboxes=["workers"])
        assert (taken.thread.id, taken.lease.epoch) == (held.thread, 2)


def test_holders_killed_by_the_hundred_leave_nothing_that_cannot_be_claimed(path, leader):
    with leader.transaction():
        for number in range(100):
            leader.send(to="workers", subject=f"thread {number}", max_deliveries=1000)
    clerks = [Clerk(path, f"w{n}") for n in range(20)]
    with crew(*clerks):
        for clerk in clerks:
            for _ in range(5):
                clerk.start("claim", mailboxes=["workers"], lease_seconds=LEASE_SECONDS)
        for clerk in clerks:
            assert [clerk.answer().exit_code for _ in range(5)] == [0] * 5
            clerk.kill()
    with Bus.open(path, agent="later", clock=SteppingClock(LEASE_SECONDS + 1)) as later:
        taken = [later.claim(mailboxes=["workers"]) for _ in range(100)]
    assert len({claimed.thread.id for claimed in taken}) == 100
    assert all(claimed.redelivered for claimed in taken)


def test_a_thread_that_kills_whoever_takes_it_fails_at_its_last_delivery(path, leader):
    thread = leader.send(to="workers", subject="poison", max_deliveries=3).thread.id
    for delivery in range(1, 4):
        with crew(Clerk(path, "w1")) as (clerk,):
            claimed = _claim(clerk, wait_seconds=10)
            assert claimed.value["thread"]["deliveries"] == delivery
            clerk.kill()
    until(lambda: leader.show(thread).thread.lease.expired)
    leader.fetch(mailboxes=["workers"])
    shown = leader.show(thread).thread
    assert (shown.state, shown.reason, shown.deliveries) == ("failed", "exhausted", 3)
