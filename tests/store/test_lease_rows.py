"""The rows of leases and cursors, statement by statement: what each changes, and what it leaves."""

import pytest

from inbox_orch.inbox.store import cursors, leases
from support.buses import Office
from support.engines import looking


@pytest.fixture
def office(tmp_path):
    office = Office(tmp_path)
    yield office
    office.close()


@pytest.fixture
def leader(office):
    return office.bus("leader")


@pytest.fixture
def worker(office):
    return office.bus("w1")


def claimed(leader, worker, mailbox="workers", lease_seconds=60):
    """A thread that `worker` holds: (id, token)."""
    leader.send(to=mailbox, subject="task", body="do it")
    claim = worker.claim(mailboxes=[mailbox], lease_seconds=lease_seconds)
    return claim.thread.id, claim.lease.token


def rows(bus, statement, *values):
    return [tuple(row) for row in looking(bus.database).all(statement, values)]


# -- leases ----------------------------------------------------------------------------------


def test_a_new_lease_has_everything_that_is_decided_by(office, leader, worker):
    office.clock.advance(7)
    thread, token = claimed(leader, worker)
    now = office.clock.now()
    session = looking(worker.database)
    expected = leases.LeaseRow(
        thread_id=thread,
        epoch=1,
        token=token,
        holder="w1",
        lease_ms=60_000,
        boot_id="first-boot",
        deadline_monotonic=now.monotonic_ms + 60_000,
        expires_at=now.wall_ms + 60_000,
        counted=True,
        read_position=1,
        ended_by=None,
        end_digest=None,
        end_message=None,
    )

    assert leases.by_token(session, token) == expected
    assert leases.live(session, thread) == expected
    assert leases.of_epoch(session, thread, 1) == expected
    assert leases.by_token(session, token).counted is True
    assert rows(worker, "SELECT acquired_at, mailbox FROM lease") == [(now.wall_ms, "workers")]


def test_there_is_no_lease_for_what_nobody_has_acquired(leader, worker):
    thread, _ = claimed(leader, worker)
    session = looking(worker.database)

    assert leases.by_token(session, "none") is None
    assert leases.live(session, "none") is None
    assert leases.of_epoch(session, thread, 0) is None
    assert leases.of_epoch(session, "none", 1) is None


def test_a_lease_is_found_by_its_epoch_also_after_it_has_ended(leader, worker):
    thread, first = claimed(leader, worker)
    worker.release(thread, first)
    second = worker.claim(mailboxes=["workers"]).lease.token
    session = looking(worker.database)

    assert leases.of_epoch(session, thread, 1).token == first
    assert leases.of_epoch(session, thread, 1).ended_by == "released"
    assert leases.of_epoch(session, thread, 2).token == second
    assert leases.live(session, thread).token == second


def test_a_lease_that_was_not_counted_says_so(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?")
    office.clock.advance(61)
    leader.reply(thread, body="this")
    again = worker.claim(mailboxes=["workers"]).lease.token
    session = looking(worker.database)

    assert leases.by_token(session, again).counted is False
    assert leases.of_epoch(session, thread, 2).counted is False
    assert leases.live(session, thread).counted is False


def test_a_lease_row_is_expired_by_the_clock_of_its_boot(office, leader, worker):
    _, token = claimed(leader, worker)
    lease = leases.by_token(looking(worker.database), token)
    now = office.clock.now()

    assert not lease.expired(now._replace(monotonic_ms=lease.deadline_monotonic - 1))
    assert lease.expired(now._replace(monotonic_ms=lease.deadline_monotonic))
    assert lease.expired(now._replace(boot_id="another"))


@pytest.mark.parametrize(
    "seconds, jump, moved_ms",
    [
        (60, 0, 60_000),
        (90, 0, 90_000),
        # As asked, a shorter one shortens.
        (30, 0, 30_000),
        # A wall clock that went back does not take back what people were told.
        (60, -3600, 50_000 + 3_600_000),
        (90, -3600, 50_000 + 3_600_000),
        (30, -3600, 30_000),
    ],
)
def test_a_renewal_sets_the_deadline_anew(office, leader, worker, seconds, jump, moved_ms):
    _, token = claimed(leader, worker)
    office.clock.advance(10)
    office.clock.jump_wall(jump)
    now = office.clock.now()
    with worker.transaction() as tx:
        expires_at = leases.renew(tx, token, seconds * 1000, now)

    assert expires_at == now.wall_ms + moved_ms
    assert rows(
        worker,
        "SELECT lease_ms, deadline_monotonic, expires_at, renewed_at, renewals FROM lease",
    ) == [(seconds * 1000, now.monotonic_ms + seconds * 1000, expires_at, now.wall_ms, 1)]


def test_a_renewal_after_a_reboot_is_one_of_this_boot(office, leader, worker):
    _, token = claimed(leader, worker)
    office.clock.reboot()
    with worker.transaction() as tx:
        leases.renew(tx, token, 5_000, office.clock.now())
    lease = leases.by_token(looking(worker.database), token)

    assert (lease.boot_id, lease.deadline_monotonic) == ("after-first-boot", 6_000)


def test_a_lease_ends_once(office, leader, worker):
    thread, _ = claimed(leader, worker)
    other, _ = claimed(leader, worker)
    message = leader.show(thread).messages[0].id
    with worker.transaction() as tx:
        leases.end(
            tx,
            thread,
            1,
            ended_by="done",
            now_ms=5,
            digest="digest",
            message_id=message,
        )
        leases.end(tx, thread, 1, ended_by="failed", now_ms=6)

    assert rows(
        worker,
        "SELECT ended_at, ended_by, end_digest, end_message FROM lease WHERE thread_id = ?",
        thread,
    ) == [(5, "done", "digest", message)]
    assert leases.live(looking(worker.database), thread) is None
    assert leases.live(looking(worker.database), other) is not None


def test_a_read_position_moves_forward_only(leader, worker):
    thread, token = claimed(leader, worker)
    other, _ = claimed(leader, worker)
    with worker.transaction() as tx:
        leases.advance_read_position(tx, token, 9)
        leases.advance_read_position(tx, token, 5)
    session = looking(worker.database)

    assert leases.live(session, thread).read_position == 9
    assert leases.live(session, other).read_position == 2


def test_expired_leases_are_found_in_the_mailboxes_asked_for(office, leader, worker):
    first, _ = claimed(leader, worker, "one", 60)
    second, _ = claimed(leader, worker, "two", 60)
    claimed(leader, worker, "one", 61)
    office.clock.advance(60)
    session, now = looking(worker.database), office.clock.now()

    assert leases.expired_in(session, ["one", "two"], now, 10) == [first, second]
    assert leases.expired_in(session, ["two"], now, 10) == [second]
    assert leases.expired_in(session, [], now, 10) == []
    before = now._replace(monotonic_ms=now.monotonic_ms - 1)
    assert leases.expired_in(session, ["one", "two"], before, 10) == []


def test_no_more_expired_leases_are_found_than_asked_for(office, leader, worker):
    found = [claimed(leader, worker, box, 60)[0] for box in ("a", "a", "b", "b", "c")]
    office.clock.advance(61)
    session, now = looking(worker.database), office.clock.now()

    assert leases.expired_in(session, ["a", "b", "c"], now, 3) == found[:3]
    assert leases.expired_in(session, ["a", "b", "c"], now, 2) == found[:2]
    assert leases.expired_in(session, ["a", "b", "c"], now, 9) == found


@pytest.mark.parametrize("boot_id", ["a", "z"])
def test_every_lease_of_another_boot_is_expired(office, leader, worker, boot_id):
    found = {claimed(leader, worker)[0] for _ in range(3)}
    now = office.clock.now()._replace(boot_id=boot_id, monotonic_ms=0)
    session = looking(worker.database)

    assert set(leases.expired_in(session, ["workers"], now, 10)) == found
    assert len(leases.expired_in(session, ["workers"], now, 2)) == 2


def test_the_next_expiry_is_that_of_this_boot_and_of_these_mailboxes(office, leader, worker):
    start = office.clock.now()
    claimed(leader, worker, "one", 60)
    claimed(leader, worker, "two", 30)
    session = looking(worker.database)

    def after(mailboxes, now=start):
        found = leases.next_expiry(session, mailboxes, now)
        return None if found is None else found - start.monotonic_ms

    assert after(["one", "two", "none"]) == 30_000
    assert after(["none", "one"]) == 60_000
    assert after(["none"]) is None
    assert after(["one"], start._replace(boot_id="another")) is None


def test_mailboxes_with_a_live_lease_are_listed_once(leader, worker):
    claimed(leader, worker, "one")
    claimed(leader, worker, "one")
    thread, token = claimed(leader, worker, "two")
    worker.done(thread, token, body="result")

    assert leases.mailboxes_with_live_leases(looking(worker.database)) == ["one"]


def test_mailboxes_in_which_a_senders_threads_are_held_are_listed_once(office, leader, worker):
    claimed(leader, worker, "one")
    claimed(leader, worker, "one")
    claimed(office.bus("other"), worker, "two")
    thread, token = claimed(leader, worker, "three")
    worker.release(thread, token)
    session = looking(worker.database)

    assert leases.mailboxes_of_held(session, "leader") == ["one"]
    assert leases.mailboxes_of_held(session, "other") == ["two"]
    assert leases.mailboxes_of_held(session, "w1") == []


# -- cursors ---------------------------------------------------------------------------------


def test_a_mailbox_that_was_never_read_is_at_0(worker):
    session = looking(worker.database)

    assert cursors.positions(session, "w1", ["a", "b"]) == {"a": 0, "b": 0}


def test_a_cursor_is_an_agents_own_and_moves_forward_only(worker):
    with worker.transaction() as tx:
        cursors.advance(tx, "w1", {"a": 5, "b": 7}, 100)
        cursors.advance(tx, "w2", {"a": 9}, 100)
        cursors.advance(tx, "w1", {"a": 3, "b": 8}, 200)
    session = looking(worker.database)

    assert cursors.positions(session, "w1", ["a", "b", "c"]) == {"a": 5, "b": 8, "c": 0}
    assert cursors.positions(session, "w1", ["b"]) == {"b": 8}
    assert cursors.positions(session, "w2", ["a", "b"]) == {"a": 9, "b": 0}
    assert rows(worker, "SELECT agent, mailbox, updated_at FROM read_cursor ORDER BY 1, 2") == [
        ("w1", "a", 200),
        ("w1", "b", 200),
        ("w2", "a", 100),
    ]


def test_who_reads_a_mailbox_is_remembered_from_the_first_time(worker):
    session = looking(worker.database)
    assert cursors.unknown_to(session, "w1", ["a", "b"]) == ["a", "b"]
    assert not cursors.has_reader(session, "a")
    with worker.transaction() as tx:
        cursors.note_reader(tx, "w1", ["a"], 100)
        cursors.note_reader(tx, "w1", ["a", "c"], 200)
        cursors.note_reader(tx, "w2", ["b", "a"], 300)

    assert cursors.unknown_to(session, "w1", ["b", "a", "d"]) == ["b", "d"]
    assert cursors.has_reader(session, "a")
    assert not cursors.has_reader(session, "d")
    assert sorted(cursors.known_mailboxes(session)) == ["a", "b", "c"]
    assert rows(worker, "SELECT mailbox, agent, first_seen_at FROM reader ORDER BY 1, 2") == [
        ("a", "w1", 100),
        ("a", "w2", 300),
        ("b", "w2", 300),
        ("c", "w1", 200),
    ]


def test_a_thread_is_delivered_once_a_cursor_of_its_mailbox_has_passed_its_first_message(
    office, leader, worker
):
    first = leader.send(to="one", subject="first").thread.id
    second = leader.send(to="one", subject="second").thread.id
    other = leader.send(to="two", subject="other").thread.id
    everything = [first, second, other]
    session = looking(worker.database)

    assert cursors.delivered(session, everything) == set()
    with worker.transaction() as tx:
        cursors.advance(tx, "w1", {"one": 1}, 100)
    assert cursors.delivered(session, everything) == {first}
    assert cursors.delivered(session, [second, other]) == set()
    with worker.transaction() as tx:
        cursors.advance(tx, "w2", {"two": 3, "one": 2}, 100)
    assert cursors.delivered(session, everything) == set(everything)
