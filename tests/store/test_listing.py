"""Lists, and that nothing on the way of a command goes through a whole table."""

import itertools

import pytest

from inbox_orch.inbox.store import listing
from support.buses import Office

MAILBOXES, SENDERS = ("builds", "x"), ("ann", "bob")


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    office = Office(tmp_path_factory.mktemp("office"))
    yield office
    office.close()


@pytest.fixture(scope="module")
def full(office):
    """A bus on a database with two threads of each mailbox, sender and state but `blocked`."""
    worker = office.bus("worker")
    for mailbox, sender, verb in itertools.product(
        MAILBOXES, SENDERS, (None, "claim", "done", "fail", "cancel") * 2
    ):
        thread = office.bus(sender).send(to=mailbox, subject="s", body="b").thread.id
        if verb == "cancel":
            office.bus(sender).cancel(thread)
        elif verb is not None:
            token = worker.claim(thread, mailboxes=MAILBOXES).lease.token
            if verb != "claim":
                getattr(worker, verb)(thread, token, body="b")
    return worker


def some(values):
    return [(), *itertools.combinations(values, 1), values]


@pytest.mark.parametrize("few", [0, 1_000], ids=["many_of_a_sender", "few_of_a_sender"])
@pytest.mark.parametrize("mailboxes", some(MAILBOXES))
@pytest.mark.parametrize("senders", some(SENDERS))
@pytest.mark.parametrize("states", [(), ("done",), ("pending", "failed"), ("blocked",)])
def test_a_list_shows_what_its_filter_lets_through_by_age(
    full, monkeypatch, mailboxes, senders, states, few
):
    monkeypatch.setattr(listing, "_FEW", few)
    everything = full.list(limit=1000).items
    expected = [
        thread
        for thread in everything
        if (not mailboxes or thread.mailbox in mailboxes)
        and (not senders or thread.sender in senders)
        and (not states or thread.state in states)
    ]

    shown = full.list(
        mailboxes=mailboxes, senders=senders, states_wanted=states, limit=1000, count=True
    )

    assert len(everything) >= 40
    assert list(shown.items) == expected
    assert shown.total == len(expected)


def test_a_list_goes_on_where_the_last_one_ended(full):
    whole = [thread.id for thread in full.list(mailboxes=["x"], limit=1000).items]
    found, cursor, truncated = [], None, True
    while truncated:
        page = full.list(mailboxes=["x"], limit=3, after=cursor)
        found += [thread.id for thread in page.items]
        cursor, truncated = page.next_cursor, page.truncated

    assert found == whole


@pytest.mark.parametrize("replies, truncated", [(100, False), (101, True)])
def test_a_claim_shows_the_task_and_the_newest_messages(office, replies, truncated):
    leader = office.bus("leader")
    with leader.transaction():
        thread = leader.send(to="long", subject="s", body="the task").thread.id
        for number in range(replies):
            leader.reply(thread, body=str(number))

    claim = office.bus("worker").claim(thread, mailboxes=["long"])

    newest = [str(number) for number in range(replies - 100, replies)]
    assert [message.body for message in claim.messages] == ["the task", *newest]
    assert claim.messages_truncated is truncated


def test_stats_count_sealed_threads_only_for_those_who_may_see_them(office, full):
    def pending(agent):
        counted = {entry["mailbox"]: entry for entry in office.bus(agent).stats().mailboxes}
        return counted.get("secret", {"pending": 0})["pending"]

    seen = [pending(agent) for agent in ("ann", "stranger", None)]
    # To a mailbox of its own: whoever names a mailbox reads it, and is shown what is sealed there.
    office.bus("ann").send(to="secret", subject="s", body="b", sealed=True)

    assert [pending(agent) for agent in ("ann", "stranger", None)] == [seen[0] + 1, *seen[1:]]


def test_no_command_goes_through_a_whole_table(engine, office, full):
    # `stats` and the total of a list count everything, and are left out.
    with engine.statements(full.database) as seen:
        full.send(to="builds", subject="s", body="b", key="k")
        claim = full.claim(mailboxes=MAILBOXES)
        held = claim.thread.id, claim.lease.token
        full.renew(*held)
        full.update(*held, body="b", key="k")
        full.ask(*held, body="b")
        full.reply(claim.thread.id, body="b", agent="ann")
        full.mark_read(full.wait_reply(*held, wait_seconds=0))
        full.show(claim.thread.id)
        full.done(*held, body="b")
        full.mark_read(full.fetch(mailboxes=MAILBOXES))
        full.overview(mailboxes=MAILBOXES)
        list(full.watch(after="0", wait_seconds=0))
        list(full.watch(after="0", thread_id=claim.thread.id, wait_seconds=0))
        for mailboxes, senders, states in itertools.product(
            ((), MAILBOXES), ((), SENDERS), ((), ("done", "failed"))
        ):
            full.list(mailboxes=mailboxes, senders=senders, states_wanted=states)

    scans = {
        (what, statement)
        for what, statement in engine.scans(full.database, seen)
        # The index of the live leases alone, of which there are as many as agents.
        if what != "SCAN lease USING INDEX lease_expiry"
    }

    assert len(seen) > 100
    assert scans == set()
