"""Fetching from several mailboxes: what is hidden holds up its own mailbox only."""

import pytest

from support.buses import refused
from support.engines import looking


@pytest.fixture
def alice(office):
    return office.bus("alice")


@pytest.fixture
def bob(office):
    return office.bus("bob")


@pytest.fixture
def sealed(alice, office):
    """A sealed thread of alice's among the workers, with a message to her."""
    thread = alice.send(to="workers", subject="secret", sealed=True).thread.id
    claim = office.bus("w1").claim(thread, mailboxes=["workers"])
    office.bus("w1").update(thread, claim.lease.token, body="hidden from bob")
    return thread


def bodies(fetched):
    return [message.body for message, _ in fetched.items]


def test_a_hidden_message_holds_up_its_own_mailbox_only(alice, bob, sealed):
    alice.send(to="bob", subject="task", body="for bob")

    fetched = bob.fetch(mailboxes=["alice"])
    bob.mark_read(fetched)

    assert bodies(fetched) == ["for bob"]
    assert not fetched.truncated
    assert bob.fetch(mailboxes=["alice"]).items == ()


def test_no_cursor_passes_a_hidden_message(office, alice, bob, sealed):
    office.bus("w2").send(to="alice", subject="task", body="behind it")
    office.bus("w2").send(to="bob", subject="task", body="for bob")
    bob.mark_read(bob.fetch(mailboxes=["alice"]))
    alice.unseal(sealed)

    assert bodies(bob.fetch(mailboxes=["alice"])) == ["hidden from bob", "behind it"]


def test_what_comes_before_a_hidden_message_is_shown_once(office, alice, bob):
    office.bus("w2").send(to="alice", subject="task", body="before it")
    thread = alice.send(to="workers", subject="secret", sealed=True).thread.id
    claim = office.bus("w1").claim(thread, mailboxes=["workers"])
    office.bus("w1").update(thread, claim.lease.token, body="hidden from bob")

    first = bob.fetch(mailboxes=["alice"])
    bob.mark_read(first)

    assert bodies(first) == ["before it"]
    assert bob.fetch(mailboxes=["alice"]).items == ()


def test_the_overview_counts_what_a_fetch_would_show(office, alice, bob, sealed):
    office.bus("w2").send(to="alice", subject="task", body="behind it")
    alice.send(to="bob", subject="task")

    assert bob.overview(mailboxes=["alice"]).unread == {"bob": 1, "alice": 0}
    assert alice.overview().unread == {"alice": 2}


def test_own_messages_are_passed_over_for_good(alice):
    for number in range(3):
        alice.send(to="alice", subject=str(number))

    assert alice.fetch(peek=True).items == ()
    assert position(alice) == 0
    assert alice.fetch().items == ()
    assert position(alice) == 3


def test_own_messages_behind_unread_ones_are_passed_over_with_them(alice, bob):
    bob.send(to="alice", subject="one")
    alice.send(to="alice", subject="own")
    bob.send(to="alice", subject="two")
    alice.send(to="alice", subject="own")

    alice.mark_read(alice.fetch(limit=1))
    assert position(alice) == 2
    alice.mark_read(alice.fetch(limit=1))
    assert position(alice) == 4


def position(bus):
    rows = looking(bus.database).all(
        "SELECT position FROM read_cursor WHERE agent = 'alice' AND mailbox = 'alice'"
    )
    return rows[0][0] if rows else 0


def test_a_waiting_sender_notices_that_the_last_holder_has_died(office, alice):
    thread = alice.send(to="workers", subject="task", max_deliveries=1).thread.id
    office.bus("w1").claim(mailboxes=["workers"], lease_seconds=60)
    office.clock.advance(61)

    fetched = alice.fetch()

    assert [message.kind for message, _ in fetched.items] == ["system"]
    assert alice.show(thread).thread.reason == "exhausted"


def test_a_look_of_others_notices_nothing_of_it(office, alice, bob):
    thread = alice.send(to="workers", subject="task", max_deliveries=1).thread.id
    office.bus("w1").claim(mailboxes=["workers"], lease_seconds=60)
    office.clock.advance(61)

    assert bob.fetch().items == ()
    alice.fetch(peek=True)

    assert alice.show(thread).thread.state == "claimed"


def test_an_empty_fetch_gives_the_cursor_that_the_agent_has_come_to(alice, bob):
    message = alice.send(to="bob", subject="task", body="for bob").message
    assert bob.fetch(peek=True, limit=1).next_cursor == str(message.id)
    bob.mark_read(bob.fetch())

    empty = bob.fetch()
    assert (empty.agent, empty.items, empty.next_cursor) == ("bob", (), str(message.id))
    with refused("timeout") as failure:
        bob.fetch(wait_seconds=0)
    assert failure.value.data["next_cursor"] == str(message.id)


def test_a_mailbox_with_many_unread_messages_hides_none_and_takes_no_longer(engine, alice, bob):
    """Steps of the engine's own, which no load of the machine changes."""

    def send(number):
        with alice.transaction():
            for each in range(number):
                alice.send(to="bob", subject="task", body=f"{each}")

    def steps():
        with engine.steps(bob.database) as counted:
            assert bob.fetch(limit=5, peek=True).truncated
        return len(counted)

    send(50)
    before = steps()
    send(2_000)
    alice.send(to="bob", subject="task", body="the newest")
    assert steps() <= before * 1.2 + 2
    seen = []
    while True:
        fetched = bob.fetch(limit=1000)
        seen += bodies(fetched)
        bob.mark_read(fetched)
        if not fetched.truncated:
            break
    assert len(seen) == 2_051
    assert seen[-1] == "the newest"
