"""The bus on a real file with a clock that the test turns: leases, questions, keys, cursors."""

import threading

import pytest

from support.buses import refused


def claimed(leader, worker, **options):
    """A thread that `worker` holds: (id, token)."""
    leader.send(to="workers", subject="task", body="do it", **options)
    claim = worker.claim(mailboxes=["workers"], lease_seconds=60)
    return claim.thread.id, claim.lease.token


def test_a_thread_goes_from_sender_to_result(leader, worker):
    thread, token = claimed(leader, worker)
    worker.update(thread, token, body="half", progress=50)
    worker.done(thread, token, body="finished", payload='{"n": 1}')
    shown = leader.show(thread)
    assert shown.thread.state == "done"
    assert [m.kind for m in shown.messages] == ["task", "progress", "result"]
    assert [m.kind for m, _ in leader.fetch().items] == ["progress", "result"]


def test_claim_takes_by_priority_then_age(leader, worker):
    for subject, priority in (("old", 0), ("new", 0), ("urgent", 5)):
        leader.send(to="workers", subject=subject, priority=priority)
    order = [worker.claim(mailboxes=["workers"]).thread.subject for _ in range(3)]
    assert order == ["urgent", "old", "new"]


def test_an_expired_lease_is_offered_again_and_names_the_old_holder(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(61)
    second = office.bus("w2").claim(mailboxes=["workers"])
    assert second.thread.id == thread
    assert second.redelivered
    (expiry,) = [e for e in leader.watch(after="0", wait_seconds=0) if e.kind == "lease_expired"]
    assert expiry.data["lease_holder"] == "w1"
    with refused("lease_lost"):
        worker.done(thread, token, body="too late")


def test_a_late_result_is_accepted_while_nobody_has_noticed(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(61)
    assert worker.done(thread, token, body="late").late
    assert leader.show(thread).thread.late


def test_a_wall_clock_that_jumps_frees_nothing(office, leader, worker):
    claimed(leader, worker)
    office.clock.jump_wall(7 * 24 * 3600)
    with refused("nothing_available"):
        office.bus("w2").claim(mailboxes=["workers"])


def test_a_reboot_ends_every_lease(office, leader, worker):
    thread, _ = claimed(leader, worker)
    office.clock.reboot()
    assert office.bus("w2").claim(mailboxes=["workers"]).thread.id == thread


def test_the_last_delivery_ends_in_exhausted(office, leader, worker):
    thread, _ = claimed(leader, worker, max_deliveries=2)
    office.clock.advance(61)
    assert worker.claim(mailboxes=["workers"], lease_seconds=60).thread.deliveries == 2
    office.clock.advance(61)
    with refused("nothing_available"):
        worker.claim(mailboxes=["workers"])
    shown = leader.show(thread).thread
    assert (shown.state, shown.reason) == ("failed", "exhausted")


def test_a_thread_that_was_given_up_does_not_hold_up_those_behind_it(office, leader, worker):
    claimed(leader, worker, max_deliveries=1)
    behind = leader.send(to="workers", subject="the next").thread.id
    office.clock.advance(61)

    assert worker.claim(mailboxes=["workers"]).thread.id == behind


def test_release_gives_the_delivery_back(leader, worker):
    thread, token = claimed(leader, worker, max_deliveries=1)
    released = worker.release(thread, token)
    assert released.thread.deliveries == 0
    assert worker.claim(mailboxes=["workers"]).thread.deliveries == 1


def test_a_question_survives_the_lease_and_costs_no_delivery(office, leader, worker):
    thread, token = claimed(leader, worker, max_deliveries=1)
    worker.ask(thread, token, body="Which?", options=["a", "b"])
    office.clock.advance(61)
    answered = leader.reply(thread, body="a")
    assert answered.answered
    assert answered.thread.state == "pending"
    again = worker.claim(mailboxes=["workers"])
    assert again.thread.deliveries == 1
    assert worker.done(thread, again.lease.token).thread.state == "done"


def test_an_unanswered_question_goes_back_to_its_holder(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(6)
    replies = worker.wait_reply(thread, token, wait_seconds=0)
    assert replies.messages[0].kind == "system"
    assert leader.show(thread).thread.state == "claimed"


def test_ones_own_reply_answers_nothing(leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?")
    assert not worker.reply(thread, body="I wonder").answered
    assert leader.show(thread).thread.state == "blocked"


def test_the_holder_of_a_cancelled_thread_is_told_and_that_is_recorded_once(leader, worker):
    thread, token = claimed(leader, worker)
    leader.cancel(thread)
    assert leader.cancel(thread).already
    for _ in range(2):
        with refused("cancelled"):
            worker.update(thread, token, body="still here")
    kinds = [e.kind for e in leader.watch(after="0", wait_seconds=0)]
    assert kinds.count("cancel_seen") == 1


def test_a_repeat_of_done_is_already_and_another_request_is_refused(leader, worker):
    thread, token = claimed(leader, worker)
    worker.done(thread, token, body="result")
    assert worker.done(thread, token, body="result").already
    with refused("invalid_state"):
        worker.done(thread, token, body="another result")
    with refused("invalid_state"):
        worker.fail(thread, token, body="result")


def test_the_same_key_gives_the_first_result_and_other_content_is_refused(leader):
    first = leader.send(to="workers", subject="task", body="x", key="k1")
    again = leader.send(to="workers", subject="task", body="x", key="k1")
    assert again == first._replace(replayed=True)
    with refused("key_conflict"):
        leader.send(to="workers", subject="task", body="y", key="k1")
    assert len(leader.list().items) == 1


def test_a_mailbox_that_nobody_reads_is_refused_when_that_is_asked_for(leader, worker):
    worker.fetch(mailboxes=["workers"])

    with refused("unknown_recipient") as failure:
        leader.send(to="worker", subject="task", strict=True)

    assert failure.value.hint == "did you mean workers?"
    assert leader.list().items == ()
    assert leader.send(to="workers", subject="task", strict=True).recipient_known


def test_asking_the_same_again_is_already_while_the_question_is_open(leader, worker):
    thread, token = claimed(leader, worker)
    first = worker.ask(thread, token, body="Which?")
    assert worker.ask(thread, token, body="Which?").already
    with refused("invalid_state"):
        worker.ask(thread, token, body="What else?")
    leader.reply(thread, body="this")
    assert worker.ask(thread, token, body="Which?").message.id != first.message.id


def test_the_cursor_moves_only_when_the_messages_were_read(leader, worker):
    leader.send(to="workers", subject="task", body="do it")
    fetched = worker.fetch(mailboxes=["workers"])
    assert worker.fetch(mailboxes=["workers"]).items == fetched.items
    worker.mark_read(fetched)
    assert worker.fetch(mailboxes=["workers"]).items == ()


def test_a_delayed_thread_is_shown_at_once_and_claimed_when_due(office, leader, worker):
    leader.send(to="workers", subject="later", delay_seconds=30)
    ((_, thread),) = worker.fetch(mailboxes=["workers"]).items
    assert thread.available_at == office.clock.wall_ms + 30_000
    with refused("nothing_available"):
        worker.claim(mailboxes=["workers"])
    office.clock.advance(30)
    assert worker.claim(mailboxes=["workers"]).thread.subject == "later"


def test_a_sealed_thread_is_hidden_from_others_until_it_is_unsealed(office, leader, worker):
    sent = leader.send(to="w1", subject="secret", sealed=True)
    stranger = office.bus("w2")
    assert stranger.list().items == ()
    with refused("not_found"):
        stranger.show(sent.thread.id)
    assert list(stranger.watch(after="0", wait_seconds=0)) == []
    assert worker.list().items[0].id == sent.thread.id
    leader.unseal(sent.thread.id)
    assert stranger.list().items[0].id == sent.thread.id


def test_several_calls_in_one_transaction_happen_together_or_not_at_all(leader):
    def send_two_and_fail():
        with leader.transaction():
            leader.send(to="workers", subject="one")
            leader.send(to="workers", subject="two")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        send_two_and_fail()
    assert leader.list().items == ()


@pytest.mark.parametrize("wait", ["fetch", "claim", "watch"])
def test_nobody_waits_inside_a_transaction(leader, wait: str):
    """Nobody else could write what is waited for."""
    with refused("usage"), leader.transaction():
        leader.send(to="workers", subject="one")
        if wait == "watch":
            list(leader.watch(wait_seconds=5))
        else:
            getattr(leader, wait)(mailboxes=["empty"], wait_seconds=5)
    assert leader.list().items == ()
    with leader.transaction():
        leader.send(to="workers", subject="one")
        with refused("nothing_available"):
            leader.claim(mailboxes=["empty"])
    assert len(leader.list().items) == 1


def test_one_text_is_no_list_of_letters(leader, worker):
    leader.send(to="w", subject="wrong")
    sent = leader.send(to="workers", subject="right").thread.id
    token = worker.claim(sent, mailboxes=["workers"]).lease.token
    for call in (
        lambda: worker.claim(mailboxes="w"),
        lambda: worker.fetch(mailboxes=b"w"),
        lambda: worker.list(mailboxes="w"),
        lambda: worker.list(senders="leader"),
        lambda: worker.list(states_wanted="done"),
        lambda: list(worker.watch(kinds="thread_sent", wait_seconds=0)),
        lambda: list(worker.watch(mailboxes="w", wait_seconds=0)),
        lambda: leader.send(to="workers", subject="s", attach="/etc/hostname"),
        lambda: worker.ask(sent, token, body="?", options="yes"),
    ):
        with refused("usage") as caught:
            call()
        assert "takes a list, not one text" in caught.value.message
    assert [thread.deliveries for thread in leader.list().items] == [0, 1]


def test_a_wall_clock_that_is_set_back_takes_no_thread_out_of_reach(office, leader, worker):
    sent = leader.send(to="workers", subject="task").thread.id
    delayed = leader.send(to="workers", subject="later", delay_seconds=10).thread.id
    office.clock.advance(10)
    worker.release(delayed, worker.claim(delayed, mailboxes=["workers"]).lease.token)
    office.clock.jump_wall(-3600)

    assert worker.claim(sent, mailboxes=["workers"]).thread.id == sent
    assert worker.claim(delayed, mailboxes=["workers"]).thread.id == delayed


def test_an_unanswered_question_noticed_from_another_mailbox_ends_the_lease_first(
    office, leader, worker
):
    """With the lease over, the thread is offered again, and that costs no delivery."""
    thread, token = claimed(leader, worker, max_deliveries=1)
    worker.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(61)

    leader.send(to="elsewhere", subject="another")

    shown = leader.show(thread).thread
    assert (shown.state, shown.holder) == ("pending", None)
    assert worker.claim(thread, mailboxes=["workers"]).thread.deliveries == 1


# -- where a bus can be used ---------------------------------------------------------------


def calls(bus):
    """Everything that looks at the database or writes it."""
    return (
        bus.list,
        lambda: bus.send(to="workers", subject="task"),
        lambda: bus.fetch(wait_seconds=1),
        bus.transaction().__enter__,
        bus.__enter__,
    )


def test_a_closed_bus_refuses_every_call_and_may_be_closed_again(office):
    bus = office.bus("w2")
    bus.close()
    for call in calls(bus):
        with refused("usage") as failure:
            call()
        assert "closed" in failure.value.message
    bus.close()


def test_another_thread_is_refused_and_the_own_one_goes_on(leader):
    refusals = []

    def elsewhere():
        for call in (*calls(leader), leader.close):
            with refused("usage") as failure:
                call()
            refusals.append(failure.value.message)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(refusals) == 6
    assert all("another thread" in message for message in refusals)
    assert leader.send(to="workers", subject="task").thread.state == "pending"
