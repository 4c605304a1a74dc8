"""Fencing: in which order a token is judged (protocol, guarantee 1), for every command of a
holder; and that a refused command changes nothing."""

import pytest

from support.buses import refused
from support.ledgers import dump

LEASE_SECONDS = 60


class Desk:
    """A leader and a worker named w1, and the ways in which a token can have aged."""

    def __init__(self, office):
        self.office = office
        self.leader = office.bus("leader")
        self.worker = office.bus("w1")

    def claim(self, **options):
        self.leader.send(to="workers", subject="task", body="do it", **options)
        return self.take()

    def take(self):
        claimed = self.worker.claim(mailboxes=["workers"], lease_seconds=LEASE_SECONDS)
        return claimed.thread.id, claimed.lease.token

    def expire(self):
        self.office.clock.advance(LEASE_SECONDS + 1)

    def reap(self):
        self.office.bus("passer-by").fetch(mailboxes=["workers"])

    # -- situations: each returns (thread, token) ------------------------------------------

    def unknown_thread(self):
        _, token = self.claim()
        return "0" * 25 + "1", token

    def cancelled(self):
        thread, token = self.claim()
        self.leader.cancel(thread)
        return thread, token

    def cancelled_while_blocked(self):
        thread, token = self.claim()
        self.worker.ask(thread, token, body="Which?")
        self.leader.cancel(thread)
        return thread, token

    def cancelled_after_release(self):
        thread, token = self.claim()
        self.worker.release(thread, token)
        self.leader.cancel(thread)
        return thread, token

    def cancelled_after_reaping(self):
        thread, token = self.claim()
        self.expire()
        self.reap()
        self.leader.cancel(thread)
        return thread, token

    def cancelled_with_an_older_token(self):
        thread, token = self.taken_over()
        self.leader.cancel(thread)
        return thread, token

    def taken_over(self):
        thread, token = self.claim()
        self.expire()
        assert self.take()[0] == thread
        return thread, token

    def taken_over_after_release(self):
        thread, token = self.claim()
        self.worker.release(thread, token, body="not mine")
        assert self.take()[0] == thread
        return thread, token

    def finished_by_the_next_holder(self):
        thread, token = self.claim()
        self.expire()
        self.worker.done(*self.take())
        return thread, token

    def reaped(self):
        thread, token = self.claim()
        self.expire()
        self.reap()
        return thread, token

    def reaped_while_blocked(self):
        thread, token = self.claim()
        self.worker.ask(thread, token, body="Which?")
        self.expire()
        self.reap()
        return thread, token

    def exhausted(self):
        thread, token = self.claim(max_deliveries=1)
        self.expire()
        self.reap()
        assert self.leader.show(thread).thread.reason == "exhausted"
        return thread, token

    def after_a_reboot(self):
        thread, token = self.claim()
        self.office.clock.reboot()
        self.reap()
        return thread, token

    def token_of_another_thread(self):
        _, token = self.claim()
        thread, _ = self.claim()
        return thread, token

    def token_that_never_was(self):
        thread, _ = self.claim()
        return thread, "t" * 32

    def ended_by_done(self):
        thread, token = self.claim()
        self.worker.done(thread, token, body="first")
        return thread, token

    def ended_by_fail(self):
        thread, token = self.claim()
        self.worker.fail(thread, token, body="first")
        return thread, token

    def ended_by_retry(self):
        thread, token = self.claim()
        self.worker.fail(thread, token, body="first", retry_in_seconds=5)
        return thread, token

    def ended_by_release(self):
        thread, token = self.claim()
        self.worker.release(thread, token, body="first")
        return thread, token

    def held(self):
        return self.claim()

    def expired_unnoticed(self):
        thread, token = self.claim()
        self.expire()
        return thread, token

    def blocked(self):
        thread, token = self.claim()
        self.worker.ask(thread, token, body="first")
        return thread, token


CALLS = {
    "renew": lambda w, thread, token: w.renew(thread, token),
    "update": lambda w, thread, token: w.update(thread, token, body="second"),
    "ask": lambda w, thread, token: w.ask(thread, token, body="second"),
    "done": lambda w, thread, token: w.done(thread, token, body="second"),
    "fail": lambda w, thread, token: w.fail(thread, token, body="second"),
    "release": lambda w, thread, token: w.release(thread, token, body="second"),
}

# In the order in which a token is judged: the first that applies decides.
REFUSALS = {
    "unknown_thread": ("not_found", 3),
    "cancelled": ("cancelled", 10),
    "cancelled_while_blocked": ("cancelled", 10),
    "cancelled_after_release": ("cancelled", 10),
    "cancelled_after_reaping": ("cancelled", 10),
    "cancelled_with_an_older_token": ("lease_lost", 7),
    "taken_over": ("lease_lost", 7),
    "taken_over_after_release": ("lease_lost", 7),
    "finished_by_the_next_holder": ("lease_lost", 7),
    "reaped": ("lease_lost", 7),
    "reaped_while_blocked": ("lease_lost", 7),
    "exhausted": ("lease_lost", 7),
    "after_a_reboot": ("lease_lost", 7),
    "token_of_another_thread": ("lease_lost", 7),
    "token_that_never_was": ("lease_lost", 7),
    "ended_by_done": ("invalid_state", 4),
    "ended_by_fail": ("invalid_state", 4),
    "ended_by_retry": ("invalid_state", 4),
    "ended_by_release": ("invalid_state", 4),
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("situation", REFUSALS)
def test_a_token_is_refused_by_the_first_reason_and_changes_nothing(office, situation, verb):
    desk = Desk(office)
    thread, token = getattr(desk, situation)()
    code, exit_code = REFUSALS[situation]
    if code == "cancelled":
        # That its holder has been told is recorded once; from then on nothing changes either.
        with refused("cancelled"):
            desk.worker.renew(thread, token)
    before = dump(office.path)
    with refused(code) as failure:
        CALLS[verb](desk.worker, thread, token)
    assert failure.value.exit_code == exit_code
    assert dump(office.path) == before


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.parametrize("situation", ["held", "expired_unnoticed"])
def test_the_current_token_serves_until_somebody_notices_the_expiry(office, situation, verb):
    desk = Desk(office)
    written = CALLS[verb](desk.worker, *getattr(desk, situation)())
    assert written.late == (situation == "expired_unnoticed")


@pytest.mark.parametrize("verb", ["renew", "update", "done", "fail", "release"])
def test_a_blocked_holder_may_do_all_but_ask_something_else(office, verb):
    desk = Desk(office)
    thread, token = desk.blocked()
    after = CALLS[verb](desk.worker, thread, token).thread
    assert (after.question is None) == (verb in ("done", "fail", "release"))
    if after.question is not None:
        with refused("invalid_state"):
            CALLS["ask"](desk.worker, thread, token)


@pytest.mark.parametrize(
    "situation, repeat",
    [
        ("ended_by_done", lambda w, t, k: w.done(t, k, body="first")),
        ("ended_by_fail", lambda w, t, k: w.fail(t, k, body="first")),
        ("ended_by_retry", lambda w, t, k: w.fail(t, k, body="first", retry_in_seconds=5)),
        ("ended_by_release", lambda w, t, k: w.release(t, k, body="first")),
        ("blocked", lambda w, t, k: w.ask(t, k, body="first")),
    ],
)
def test_an_exact_repeat_is_already_and_changes_nothing(office, situation, repeat):
    desk = Desk(office)
    thread, token = getattr(desk, situation)()
    before = dump(office.path)
    assert repeat(desk.worker, thread, token).already
    assert dump(office.path) == before


def test_a_repeat_of_release_is_lost_once_somebody_has_claimed_again(office):
    desk = Desk(office)
    thread, token = desk.taken_over_after_release()
    with refused("lease_lost"):
        desk.worker.release(thread, token, body="not mine")


def test_an_attachment_is_not_copied_in_for_a_token_that_is_refused(office, tmp_path):
    desk = Desk(office)
    thread, token = desk.taken_over()
    file = tmp_path / "report.txt"
    file.write_text("work of a holder that was overtaken")
    for call in (desk.worker.update, desk.worker.done):
        with refused("lease_lost"):
            call(thread, token, attach=[str(file)])
    assert [p for p in (office.path.parent / "artifacts").rglob("*") if p.is_file()] == []


def test_a_refused_holder_learns_who_has_the_thread_now(office):
    desk = Desk(office)
    thread, token = desk.taken_over()
    with refused("lease_lost") as failure:
        desk.worker.renew(thread, token)
    details = failure.value.details
    assert (details["holder"], details["epoch"], details["token_epoch"]) == ("w1", 2, 1)


@pytest.mark.parametrize("verb", CALLS)
def test_a_holder_whose_last_delivery_ran_out_learns_that_the_thread_is_given_up(office, verb):
    desk = Desk(office)
    thread, token = desk.exhausted()
    with refused("lease_lost") as failure:
        CALLS[verb](desk.worker, thread, token)
    details = failure.value.details
    assert (details["state"], details["reason"]) == ("failed", "exhausted")
    assert "failed (exhausted)" in failure.value.message
