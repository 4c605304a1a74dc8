"""One owner: who renews keeps what it holds, whoever else looks, asks or guesses."""

from itertools import pairwise

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from support.buses import refused
from support.ledgers import all_events, owners_by_event
from support.processes import Clerk, crew, run_json
from support.timing import undisturbed

LEASE_SECONDS = 60
NANO = 1_000_000_000


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "real" / "bus.db"
    path.parent.mkdir()
    creating.create(str(path))
    return path


def _claimed(office, **options):
    office.bus("leader").send(to="pool", subject="task", **options)
    worker = office.bus("w1")
    claimed = worker.claim(mailboxes=["pool"], lease_seconds=LEASE_SECONDS)
    return worker, claimed.thread.id, claimed.lease.token


def test_a_held_thread_is_never_offered_however_often_others_ask(office):
    worker, thread, token = _claimed(office)
    rival = office.bus("w2")
    for _ in range(50):
        office.clock.advance(LEASE_SECONDS / 2)
        worker.renew(thread, token)
        rival.fetch(mailboxes=["pool"])
        with refused("nothing_available"):
            rival.claim(mailboxes=["pool"])
        with refused("already_claimed"):
            rival.claim(thread, mailboxes=["pool"])
    shown = rival.show(thread).thread
    assert (shown.holder, shown.epoch, shown.deliveries) == ("w1", 1, 1)


def test_a_job_five_times_as_long_as_its_lease_is_delivered_once(path):
    def trial():
        thread = leader.send(to="w1", subject="long job").thread.id
        held = worker.call("claim", thread, lease_seconds=1)
        rival.start("claim", thread, mailboxes=["w1"], wait_seconds=5)
        renewed = [held]
        while rival.silent_for(0.3):
            renewed.append(worker.call("renew", thread, held.token))
        taken = rival.answer()
        if taken.refused is None:
            gaps = [
                after.ended_ns - before.began_ns for before, after in pairwise((*renewed, taken))
            ]
            assert max(gaps) >= NANO, "it was renewed in time"
            return False
        assert {answer.exit_code for answer in renewed} == {0}
        assert worker.call("done", thread, held.token).exit_code == 0
        assert owners_by_event(all_events(leader))[thread] == [(1, "w1")]
        return True

    with (
        crew(Clerk(path, "w1"), Clerk(path, "w2")) as (worker, rival),
        Bus.open(path, agent="leader") as leader,
    ):
        undisturbed(trial)


def test_a_renewal_moves_its_time_and_the_end_of_the_lease(office):
    worker, thread, token = _claimed(office)
    before = worker.show(thread).thread.lease
    office.clock.advance(10)
    after = worker.renew(thread, token).lease
    assert before.renewed_at is None
    assert after.renewed_at == office.clock.wall_ms
    assert after.expires_at == before.expires_at + 10_000


def test_an_update_extends_the_lease(office):
    worker, thread, token = _claimed(office)
    office.clock.advance(LEASE_SECONDS - 1)
    worker.update(thread, token, progress=50)
    office.clock.advance(LEASE_SECONDS - 1)
    with refused("nothing_available"):
        office.bus("w2").claim(mailboxes=["pool"])


@pytest.mark.parametrize("jump_seconds", [-600, 600])
def test_a_wall_clock_set_anew_steals_no_lease_and_takes_back_no_promise(office, jump_seconds):
    worker, thread, token = _claimed(office)
    promised = worker.show(thread).thread.lease.expires_at
    office.clock.jump_wall(jump_seconds)
    with refused("nothing_available"):
        office.bus("w2").claim(mailboxes=["pool"])
    assert worker.renew(thread, token).lease.expires_at >= promised
    office.clock.advance(LEASE_SECONDS + 1)
    assert office.bus("w2").claim(mailboxes=["pool"]).thread.id == thread


def test_a_machine_that_was_suspended_burns_no_lease(office):
    worker, thread, token = _claimed(office)
    # The monotonic clock stands still meanwhile; the wall clock goes on.
    office.clock.jump_wall(8 * 3600)
    assert not worker.renew(thread, token).late


def test_the_old_owner_is_named_when_its_lease_has_run_out(office):
    _, thread, _ = _claimed(office)
    office.clock.advance(LEASE_SECONDS + 1)
    office.bus("w2").claim(mailboxes=["pool"])
    (event,) = [e for e in all_events(office.bus()) if e.kind == "lease_expired"]
    assert (event.thread_id, event.data["lease_holder"]) == (thread, "w1")


def test_a_command_without_a_token_is_a_wrong_call_and_with_a_guessed_one_refused(path, inbox_bin):
    with Bus.open(path, agent="leader") as leader, Bus.open(path, agent="w1") as worker:
        thread = leader.send(to="w1", subject="task").thread.id
        worker.claim()
        for verb, body in (("done", ()), ("fail", ("--body", "b")), ("release", ())):
            call = (verb, thread, *body, "--db", str(path))
            assert run_json(inbox_bin, *call, agent="intruder").exit_code == 2
            guessed = run_json(inbox_bin, *call, "--token", "guess", agent="w1")
            assert guessed.exit_code == 7
        assert leader.show(thread).thread.state == "claimed"


def test_the_option_names_the_claimer_before_the_environment_does(path, inbox_bin, monkeypatch):
    monkeypatch.setenv("INBOX_AGENT", "w7")
    with Bus.open(path, agent="leader") as leader:
        leader.send(to="pool", subject="one")
        leader.send(to="pool", subject="two")
    claim = ("claim", "--mailbox", "pool", "--db", str(path))
    assert run_json(inbox_bin, *claim).json["data"]["lease"]["holder"] == "w7"
    assert run_json(inbox_bin, *claim, agent="w8").json["data"]["lease"]["holder"] == "w8"


@pytest.mark.parametrize("value", [0, -1, 0.5, 86_401, float("nan"), float("inf"), 1e300])
def test_a_lease_out_of_range_is_a_wrong_call_and_takes_nothing(office, value):
    worker, thread, token = _claimed(office)
    office.bus("leader").send(to="pool", subject="another")
    with refused("usage"):
        worker.claim(mailboxes=["pool"], lease_seconds=value)
    with refused("usage"):
        worker.renew(thread, token, lease_seconds=value)
    assert len(worker.list(states_wanted=["claimed"]).items) == 1


@pytest.mark.parametrize("value", ["", " ", "\0", "a b", ".."], ids=repr)
def test_blank_and_unprintable_names_are_wrong_calls_and_as_ids_not_found(office, value):
    worker, thread, _ = _claimed(office)
    calls = [
        lambda: worker.send(to=value, subject="s"),
        lambda: worker.send(to="x", subject="s", agent=value),
        lambda: worker.claim(mailboxes=[value]),
    ]
    for call in calls:
        with refused("usage"):
            call()
    for look in (worker.claim, worker.show):
        with refused("not_found"):
            look(value)
    assert [t.id for t in worker.list().items] == [thread]


@pytest.mark.parametrize("key", ["", "\0", "k" * 10_000], ids=["empty", "NUL", "huge"])
def test_a_key_that_tells_nothing_apart_is_a_wrong_call(office, key):
    leader = office.bus("leader")
    with refused("usage"):
        leader.send(to="pool", subject="task", key=key)
    assert leader.list().items == ()
