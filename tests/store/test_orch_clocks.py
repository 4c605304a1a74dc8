"""Attempts that run out of time, on each of their clocks."""

import pytest

from inbox_orch.orch.attempts import fold, stop, timing
from inbox_orch.orch.runs.model import Limits
from support.buses import refused
from support.runs import Site


@pytest.fixture
def run(site: Site):
    return site.open_run()


def offered(site: Site, run, **limits: float):
    site.add(run, "a", limits=Limits(**limits))
    return site.dispatch(run)["a"]


def newest(site: Site, run):
    site.scheduler.reconcile(run)
    return site.attempts(run, "a")[-1]


def is_over(site: Site, run, seconds: float, clock: str):
    """After so many seconds, and not a moment before, the attempt ends by this clock."""
    site.clock.advance(seconds - 0.001)
    before = newest(site, run)
    assert (before.live, before.clock) == (True, None), before
    site.clock.advance(0.001)
    after = newest(site, run)
    assert after.clock == clock
    return after


# -- each clock ------------------------------------------------------------------------------


def test_an_attempt_that_nobody_claims_runs_out_of_time(site: Site, run):
    item = offered(site, run, queue_seconds=60)

    attempt = is_over(site, run, 60, "queue")

    assert (attempt.state, attempt.ending_as) == ("timed_out", "timed_out")
    assert "60 s" in attempt.reason
    assert site.worker.show(item["thread"], mailboxes=["workers"]).thread.state == "cancelled"
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 1, 0)


def test_the_queue_clock_starts_anew_when_the_thread_is_offered_again(site: Site, run):
    item = offered(site, run, queue_seconds=60)
    site.clock.advance(50)
    token = site.claim(item)
    site.clock.advance(50)
    site.worker.release(item["thread"], token, delay_seconds=100)

    site.clock.advance(100)
    is_over(site, run, 60, "queue")


def test_the_queue_clock_starts_anew_after_a_holder_died(site: Site, run):
    item = offered(site, run, queue_seconds=60)
    site.claim(item, lease_seconds=50)
    site.clock.advance(51)
    assert newest(site, run).state == "offered"

    is_over(site, run, 60, "queue")


def test_the_run_clock_goes_from_the_first_claim_over_every_holder(site: Site, run):
    item = offered(site, run, run_seconds=100)
    site.clock.advance(500)
    token = site.claim(item)
    site.clock.advance(40)
    site.worker.release(item["thread"], token)
    site.clock.advance(20)
    site.claim(item)

    attempt = is_over(site, run, 40, "run")

    assert (attempt.state, attempt.ending_as) == ("ending", "timed_out")


def test_the_run_clock_stands_still_while_a_question_is_open(site: Site, run):
    item = offered(site, run, run_seconds=100)
    token = site.claim(item, lease_seconds=5000)
    site.clock.advance(40)
    site.worker.ask(item["thread"], token, body="which?")
    site.clock.advance(1000)
    assert newest(site, run).state == "blocked"
    site.scheduler.answer(run, "a", body="this")

    is_over(site, run, 60, "run")


def test_a_question_that_was_withdrawn_stopped_the_run_clock_all_the_same(site: Site, run):
    item = offered(site, run, run_seconds=100)
    token = site.claim(item, lease_seconds=5000)
    site.clock.advance(40)
    site.worker.ask(item["thread"], token, body="which?")
    site.clock.advance(1000)
    site.worker.release(item["thread"], token)
    site.claim(item)

    is_over(site, run, 60, "run")


def test_a_worker_that_is_silent_runs_out_of_time(site: Site, run):
    item = offered(site, run, silent_seconds=30)
    token = site.claim(item, lease_seconds=3600)
    for speak in (
        lambda: site.worker.renew(item["thread"], token),
        lambda: site.worker.update(item["thread"], token, body="half"),
    ):
        site.clock.advance(29)
        assert newest(site, run).state == "running"
        speak()

    is_over(site, run, 30, "silent")


def test_the_silent_clock_starts_anew_with_the_answer(site: Site, run):
    item = offered(site, run, silent_seconds=30)
    token = site.claim(item, lease_seconds=3600)
    site.worker.ask(item["thread"], token, body="which?")
    site.clock.advance(600)
    assert newest(site, run).state == "blocked"
    site.scheduler.answer(run, "a", body="this")

    is_over(site, run, 30, "silent")


def test_a_question_that_nobody_answers_runs_out_of_time(site: Site, run):
    item = offered(site, run, block_seconds=300, run_seconds=10)
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(5)
    site.worker.ask(item["thread"], token, body="which?")

    attempt = is_over(site, run, 300, "block")

    assert attempt.state == "ending"
    assert site.task(run, "a").state == "active"
    assert site.scheduler.questions(run) == []


def test_a_question_whose_asker_has_gone_ends_at_once_when_its_time_is_over(site: Site, run):
    item = offered(site, run, block_seconds=300)
    token = site.claim(item, lease_seconds=10)
    site.worker.ask(item["thread"], token, body="which?")

    assert is_over(site, run, 300, "block").state == "timed_out"


# -- what follows ----------------------------------------------------------------------------


def test_it_keeps_its_slot_until_its_holder_knows(site: Site):
    run = site.open_run(max_parallel=1)
    item = offered(site, run, run_seconds=10)
    site.add(run, "b")
    token = site.claim(item, lease_seconds=3600)
    assert is_over(site, run, 10, "run").state == "ending"
    assert site.dispatch(run) == {}

    with refused("cancelled"):
        site.worker.renew(item["thread"], token)

    assert newest(site, run).state == "timed_out"
    assert set(site.dispatch(run)) == {"b"}


@pytest.mark.parametrize("lease_seconds, after", [(5, 5), (3600, 60)])
def test_it_ends_with_the_lease_or_after_the_grace(site: Site, run, lease_seconds, after):
    item = offered(site, run, silent_seconds=2)
    site.claim(item, lease_seconds=lease_seconds)
    site.clock.advance(2)
    assert newest(site, run).state == "ending"
    left = after - 2 if lease_seconds < 60 else after

    site.clock.advance(left - 0.001)
    assert newest(site, run).state == "ending"
    site.clock.advance(0.001)
    assert newest(site, run).state == "timed_out"


def test_the_last_time_out_fails_the_task(site: Site, run):
    site.add(run, "a", max_attempts=2, limits=Limits(queue_seconds=5))
    for number in (1, 2):
        assert site.dispatch(run)["a"]["number"] == number
        site.clock.advance(6)
        assert newest(site, run).state == "timed_out"
        site.clock.advance(200)

    assert site.states(run) == {"a": "failed"}
    assert site.dispatch(run) == {}


def test_a_late_report_changes_nothing(site: Site, run):
    item = offered(site, run, run_seconds=10)
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(11)
    newest(site, run)

    with refused("cancelled"):
        site.worker.done(item["thread"], token, body="done at last")

    assert newest(site, run).state == "timed_out"


def test_a_worker_that_ended_before_anybody_looked_keeps_its_end(site: Site, run):
    item = offered(site, run, run_seconds=10)
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(1000)
    site.worker.fail(item["thread"], token, body="it does not work")

    attempt = newest(site, run)

    assert (attempt.state, attempt.clock) == ("failed", None)


def test_a_worker_that_speaks_while_the_clock_is_looked_at_goes_on(site: Site, run, monkeypatch):
    item = offered(site, run, silent_seconds=10)
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(11)
    stop_late = stop._stop_late

    def renew_first(self, *arguments):
        site.worker.renew(item["thread"], token)
        return stop_late(self, *arguments)

    monkeypatch.setattr(stop, "_stop_late", renew_first)

    assert newest(site, run).state == "running"


def test_a_lease_that_ran_out_with_the_clock_is_noticed_first(site: Site, run):
    item = offered(site, run, silent_seconds=10)
    site.claim(item, lease_seconds=10)
    site.clock.advance(10)

    assert newest(site, run).state == "offered"


def test_two_leaders_end_it_once(site: Site, run):
    offered(site, run, queue_seconds=5)
    site.clock.advance(6)
    other = site.leader()

    assert fold.fold(site.scheduler.desk, run) > 0
    assert fold.fold(other.desk, run) == 0
    assert site.task(run, "a").work_failures == 1


def test_the_database_folds_from_its_events_after_all_that(site: Site, run):
    item = offered(site, run, block_seconds=10)
    site.worker.ask(item["thread"], site.claim(item, lease_seconds=30), body="which?")
    site.clock.advance(10)
    newest(site, run)
    site.clock.advance(60)
    newest(site, run)

    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_wait_knows_when_the_next_clock_runs_out(site: Site, run):
    offered(site, run, queue_seconds=60)

    assert timing.due(site.scheduler.desk, run).due_wall_ms == site.clock.wall_ms + 60_000


# -- slots by mailbox ------------------------------------------------------------------------


def test_no_more_attempts_live_in_a_mailbox_than_the_config_allows(site: Site):
    from inbox_orch.orch.runs.config import Config

    run = site.open_run(config=Config(mailboxes={"slow": 1}))
    site.add(run, "a", "b", mailbox="slow", priority=9)
    site.add(run, "c", "d")

    items = site.dispatch(run)

    assert set(items) == {"a", "c", "d"}
    with refused("invalid_state") as failure:
        site.dispatch(run, "b")
    assert failure.value.details["mailbox"] == "slow"
    assert site.dispatch(run, "b", mailbox="fast")["b"]["mailbox"] == "fast"


def test_a_task_named_by_its_key_and_its_id_is_dispatched_once(site: Site, run):
    site.add(run, "a")

    assert len(site.scheduler.dispatch(run, task_names=["a", site.task(run, "a").id]).items) == 1
