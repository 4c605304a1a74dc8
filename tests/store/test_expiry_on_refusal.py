"""An expiry that a call came across stays noticed when the call itself is refused."""

from support.buses import refused
from support.engines import looking


def claimed(leader, worker, **options):
    """A thread that `worker` holds: (id, token)."""
    leader.send(to="workers", subject="task", body="do it", **options)
    claim = worker.claim(mailboxes=["workers"], lease_seconds=60)
    return claim.thread.id, claim.lease.token


def state(bus, thread):
    return bus.show(thread).thread.state


def kinds(bus):
    """What has been recorded; a watch would itself notice what has run out."""
    rows = looking(bus.database).all("SELECT kind FROM event")
    return [row[0] for row in rows]


def test_a_cancel_that_finds_the_thread_failed_leaves_it_failed(office, leader, worker):
    thread, token = claimed(leader, worker, max_deliveries=1)
    office.clock.advance(61)

    with refused("invalid_state"):
        leader.cancel(thread)

    assert state(leader, thread) == "failed"
    with refused("lease_lost"):
        worker.done(thread, token, body="too late")


def test_a_cancel_that_is_refused_inside_a_transaction_of_the_caller_s_keeps_the_expiry(
    office, leader, worker
):
    thread, _ = claimed(leader, worker, max_deliveries=1)
    office.clock.advance(61)

    with leader.transaction():
        with refused("invalid_state"):
            leader.cancel(thread, body="never written")
        leader.send(to="elsewhere", subject="another")

    assert state(leader, thread) == "failed"
    assert [m.kind for m in leader.show(thread).messages] == ["task", "system"]
    assert len(leader.list().items) == 2


def test_a_refused_send_leaves_the_overdue_question_settled(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(6)

    with refused("unknown_recipient"):
        leader.send(to="nobody", subject="task", strict=True)

    assert kinds(leader).count("question_expired") == 1


def test_a_key_conflict_of_the_holder_leaves_the_overdue_question_settled(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.update(thread, token, body="one", key="k1")
    worker.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(6)

    with refused("key_conflict"):
        worker.update(thread, token, body="two", key="k1")

    assert state(leader, thread) == "claimed"
    assert kinds(leader).count("question_expired") == 1


def test_what_was_kept_wakes_those_who_wait_for_it(engine, office, leader, worker, monkeypatch):
    thread, _ = claimed(leader, worker, max_deliveries=1)
    office.clock.advance(61)
    rung = engine.rung(monkeypatch)

    with refused("invalid_state"):
        leader.cancel(thread)

    assert {"leader", "w1"} <= rung
