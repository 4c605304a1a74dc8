"""A claim takes the first by priority, then age, however many threads are free again at once."""

import pytest

from inbox_orch.inbox.domain.limits import MAX_REAPED
from inbox_orch.inbox.services import claiming

MANY = 2 * MAX_REAPED + 3


def _sent(office, number, *, mailbox="q", **options):
    leader = office.bus("leader")
    return [
        leader.send(to=mailbox, subject=f"s{n}", priority=n, **options).thread
        for n in range(number)
    ]


def _held(office, threads, holder="w"):
    bus = office.bus(holder)
    return [bus.claim(t.id, mailboxes=[t.mailbox], lease_seconds=20).lease.token for t in threads]


def test_of_many_whose_lease_is_over_the_first_is_taken(office):
    _held(office, _sent(office, MANY))
    office.clock.advance(21)
    z = office.bus("z")
    taken = [z.claim(mailboxes=["q"]).thread.priority for _ in range(MANY)]
    assert taken == list(reversed(range(MANY)))


def test_of_many_in_several_mailboxes_the_first_is_taken(office):
    _held(office, _sent(office, MANY, mailbox="low"))
    best = office.bus("leader").send(to="high", subject="s", priority=MANY).thread
    _held(office, [best])
    office.clock.advance(21)
    claimed = office.bus("z").claim(mailboxes=["low", "high"])
    assert claimed.thread.id == best.id


def test_a_thread_behind_many_that_have_no_delivery_left_is_taken(office):
    _held(office, _sent(office, MANY, max_deliveries=1))
    last = office.bus("leader").send(to="q", subject="s", priority=0).thread
    _held(office, [last])
    office.clock.advance(21)
    assert office.bus("z").claim(mailboxes=["q"]).thread.id == last.id


def test_of_many_whose_question_nobody_answered_the_first_is_taken(office):
    threads = _sent(office, MANY)
    w = office.bus("w")
    for thread, token in zip(threads, _held(office, threads), strict=True):
        w.ask(thread.id, token, body="?", deadline_seconds=30)
    office.clock.advance(31)
    assert office.bus("z").claim(mailboxes=["q"]).thread.priority == MANY - 1


@pytest.mark.parametrize("at_once", [10, 24, 25, 26])
def test_of_many_whose_time_has_come_the_first_is_taken(office, monkeypatch, at_once):
    monkeypatch.setattr(claiming, "_MOST_MADE_DUE", at_once)
    _sent(office, 25, delay_seconds=5)
    office.clock.advance(6)
    assert office.bus("z").claim(mailboxes=["q"]).thread.priority == 24


@pytest.mark.parametrize("number", [1, MAX_REAPED, MAX_REAPED + 1])
def test_a_thread_that_waits_all_the_time_keeps_its_place(office, number):
    _held(office, _sent(office, number))
    waiting = office.bus("leader").send(to="q", subject="first", priority=99).thread
    office.clock.advance(21)
    assert office.bus("z").claim(mailboxes=["q"]).thread.id == waiting.id
