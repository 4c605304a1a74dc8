"""A sealed thread does not exist for those who may not see it, whatever they call."""

import pytest

from support.buses import refused


@pytest.fixture
def stranger(office):
    return office.bus("stranger")


@pytest.fixture
def thread(leader):
    return leader.send(to="workers", subject="secret", sealed=True).thread.id


CALLS = {
    "show": lambda bus, thread: bus.show(thread),
    "watch": lambda bus, thread: list(bus.watch(thread_id=thread, after="0", wait_seconds=0)),
    "reply": lambda bus, thread: bus.reply(thread, body="text"),
    "cancel": lambda bus, thread: bus.cancel(thread),
    "unseal": lambda bus, thread: bus.unseal(thread),
}


@pytest.mark.parametrize("call", CALLS)
def test_for_an_outsider_there_is_no_such_thread(leader, stranger, thread, call):
    with refused("not_found") as failure:
        CALLS[call](stranger, thread)

    assert "leader" not in str(failure.value.details) + failure.value.message
    assert leader.show(thread).thread.state == "pending"
    assert len(leader.show(thread).messages) == 1


def test_a_watch_without_a_name_sees_no_sealed_thread(office, thread):
    with refused("not_found"):
        CALLS["watch"](office.bus(), thread)


def test_who_reads_its_mailbox_may_write_on_it(office, leader, thread):
    reader = office.bus("w1")
    reader.fetch(mailboxes=["workers"])

    reader.reply(thread, body="text")
    with refused("invalid_state"):
        reader.unseal(thread)
    list(reader.watch(thread_id=thread, mailboxes=["workers"], after="0", wait_seconds=0))
    reader.cancel(thread)

    assert leader.show(thread).thread.state == "cancelled"


def test_an_outsider_may_do_everything_once_it_is_unsealed(leader, stranger, thread):
    leader.unseal(thread)

    for call in ("show", "watch", "reply", "cancel"):
        CALLS[call](stranger, thread)
    assert leader.show(thread).thread.state == "cancelled"


def test_the_key_of_a_reply_gives_its_first_result_to_a_former_reader(office, leader, thread):
    holder = office.bus("w1")
    claim = holder.claim(thread, mailboxes=["workers"])
    holder.release(thread, claim.lease.token)
    first = holder.reply(thread, body="text", key="k1")

    assert holder.reply(thread, body="text", key="k1") == first._replace(replayed=True)
