"""What the end of one task means for the others, and what a leader is told of it."""

import functools

import pytest

from inbox_orch.orch.attempts import fold, work
from inbox_orch.orch.runs.model import Limits
from support.buses import refused
from support.runs import Site, commit, git, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


def told(site: Site, run) -> list[str]:
    """What a wait has to tell now, once."""
    waited = site.scheduler.wait(run, wait_seconds=0)
    site.scheduler.mark_told(waited)
    return [event.kind for event in waited.changes]


def nothing_to_tell(site: Site, run) -> bool:
    with refused("timeout"):
        site.scheduler.wait(run, wait_seconds=0)
    return True


# -- policies --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fail-fast", "abort"])
def test_a_strict_policy_counts_a_time_out_only_after_the_last_try(site: Site, policy: str):
    run = site.open_run(on_failure=policy)
    site.add(run, "a", max_attempts=2, limits=Limits(queue_seconds=10))
    site.add(run, "b", "c")
    runs = site.dispatch(run, "a", "b")
    token = site.claim(runs["b"], lease_seconds=3600)
    site.clock.advance(11)
    assert site.states(run) == {"a": "backing_off", "b": "active", "c": "ready"}
    site.clock.advance(10)
    site.dispatch(run, "a")
    site.clock.advance(11)

    assert site.states(run) == {"a": "failed", "b": "active", "c": "unreachable"}
    assert site.standing(run, "c").because == ("a",)
    if policy == "fail-fast":
        site.worker.renew(runs["b"]["thread"], token)
        assert site.attempts(run, "b")[-1].state == "running"
    else:
        with refused("cancelled"):
            site.worker.renew(runs["b"]["thread"], token)
        assert site.states(run)["b"] == "cancelled"


def test_losses_and_failures_have_budgets_of_their_own(site: Site, run):
    site.add(run, "a", max_attempts=2, max_infra_attempts=2)

    def lose() -> None:
        item = site.dispatch(run)["a"]
        for _ in range(3):
            site.claim(item, lease_seconds=1)
            site.clock.advance(2)
            site.scheduler.reconcile(run)

    lose()
    site.clock.advance(200)
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 1, 1)
    site.clock.advance(200)
    lose()

    assert site.task(run, "a").state == "failed"
    assert [a.state for a in site.attempts(run, "a")] == ["lost", "failed", "lost"]


def test_what_depends_on_a_failure_is_unreachable_with_its_cause_and_no_wait_hangs(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.add(run, "c", depends_on=["b"])
    site.fail(site.dispatch(run)["a"], fatal=True)

    status = site.scheduler.status(run)

    stands = {row.standing.task.key: row.standing for row in status.rows}
    assert {key: s.state for key, s in stands.items()} == {
        "a": "failed",
        "b": "unreachable",
        "c": "unreachable",
    }
    assert (stands["b"].because, stands["c"].because) == (("a",), ("a",))
    for until in ("run", "task:b", "task:c", "blocked"):
        waited = site.scheduler.wait(run, until=until, wait_seconds=0)
        assert waited.failure is not None and waited.failure.code == "run_unsuccessful"


@pytest.mark.parametrize("verb", ["cancel", "fail"])
def test_what_needs_success_is_never_ready_after_another_end(site: Site, run, verb: str):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.add(run, "after")
    site.scheduler.add_dependency(run, "after", "a", "finished")
    if verb == "cancel":
        site.scheduler.cancel(run, ["a"])
    else:
        site.fail(site.dispatch(run)["a"], fatal=True)

    assert set(site.dispatch(run)) == {"after"}
    assert site.states(run)["b"] == "unreachable"


def test_a_task_that_is_added_after_what_it_depends_on_succeeded_is_ready(site: Site, run):
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    site.add(run, "b", depends_on=["a"])

    assert site.states(run)["b"] == "ready"


# -- what a leader is told -------------------------------------------------------------------


def test_an_attempt_that_nobody_has_claimed_is_nothing_to_tell(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    assert nothing_to_tell(site, run)

    site.claim(item)

    assert nothing_to_tell(site, run)


def test_the_leader_is_told_of_a_worker_that_died_when_the_attempt_is_lost(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    for _ in range(2):
        site.claim(item, lease_seconds=1)
        site.clock.advance(2)
        assert nothing_to_tell(site, run), "the next worker goes on where it was left"
    site.claim(item, lease_seconds=1)
    site.clock.advance(2)

    assert told(site, run) == ["attempt_lost"]


def test_the_leader_is_told_of_every_clock_that_ran_out(site: Site, run):
    site.add(run, "a", max_attempts=1, limits=Limits(queue_seconds=10))
    site.dispatch(run)
    assert nothing_to_tell(site, run)
    site.clock.advance(10)

    assert told(site, run) == ["attempt_timed_out", "task_failed"]


def test_the_same_question_again_is_one_open_question(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    for _ in range(9):
        site.worker.ask(item["thread"], token, body="which?")

    assert told(site, run) == ["attempt_blocked"]
    assert len(site.scheduler.questions(run)) == 1
    again = site.scheduler.wait(run, wait_seconds=0)
    assert again.changes == ()
    assert again.failure is not None and again.failure.code == "needs_decision"


def test_a_blocked_worker_whose_lease_ran_out_is_blocked_and_an_answer_revives_its_thread(
    site: Site, run
):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.worker.ask(item["thread"], site.claim(item, lease_seconds=5), body="which?")
    site.clock.advance(3600)

    site.scheduler.reconcile(run)
    assert (site.attempts(run, "a")[-1].state, site.states(run)["a"]) == ("blocked", "blocked")
    site.scheduler.answer(run, "a", body="this")

    assert site.attempts(run, "a")[-1].state == "offered"
    again = site.office.bus("w2").claim(item["thread"], mailboxes=["workers"])
    assert again.thread.deliveries == 1
    assert [m.body for m in again.messages][-1] == "this"


def test_a_question_with_a_deadline_does_not_block_for_ever(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=3600)
    site.worker.ask(item["thread"], token, body="which?", deadline_seconds=60)
    site.scheduler.reconcile(run)
    assert site.states(run)["a"] == "blocked"
    site.clock.advance(61)

    site.scheduler.reconcile(run)

    assert site.attempts(run, "a")[-1].state == "running"
    assert site.scheduler.questions(run) == []


def test_a_worker_that_comes_back_after_its_lease_changes_nothing_and_its_commits_stay(
    site: Site, run
):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    old = site.claim(item, lease_seconds=10)
    first = commit(item["worktree"], "first.txt", "first\n")
    site.clock.advance(20)
    new = site.office.bus("w2").claim(item["thread"], mailboxes=["workers"]).lease.token

    for call in ("renew", "done"):
        with refused("lease_lost"):
            extra = {} if call == "renew" else {"body": "mine"}
            getattr(site.worker, call)(item["thread"], old, **extra)

    site.worker.renew(item["thread"], new)
    assert git(site.repository, "rev-parse", item["branch"]) == first
    assert site.attempts(run, "a")[-1].number == 1


@pytest.mark.parametrize("until", ["run", "task:a"])
def test_a_question_that_holds_the_last_slot_needs_a_decision(site: Site, until: str):
    run = site.open_run(max_parallel=1)
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    site.worker.ask(item["thread"], site.claim(item, lease_seconds=3600), body="which?")
    assert site.states(run) == {"a": "blocked", "b": "ready"}

    waited = site.scheduler.wait(run, until=until, wait_seconds=0)

    assert waited.failure is not None and waited.failure.code == "needs_decision"


def test_a_question_beside_a_free_slot_needs_none_yet(site: Site):
    run = site.open_run(max_parallel=2)
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    site.worker.ask(item["thread"], site.claim(item, lease_seconds=3600), body="which?")

    with refused("timeout"):
        site.scheduler.wait(run, until="run", wait_seconds=0)
    site.scheduler.pause_run(run)
    waited = site.scheduler.wait(run, until="run", wait_seconds=0)
    assert waited.failure is not None and waited.failure.code == "needs_decision"


def test_an_abort_that_comes_late_does_not_reach_what_was_taken_up_again(site: Site, monkeypatch):
    """A leader has seen the failure; before it writes, another one has retried the task."""
    run = site.open_run(on_failure="abort")
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    other, make = site.leader(), functools.partial(work.prepare, site.leader().desk)

    def fail_meanwhile(*arguments):
        site.fail(item, fatal=True)
        fold.fold(site.scheduler.desk, run)
        return make(*arguments)

    only_for(monkeypatch, other, work, "prepare", fail_meanwhile)
    other.dispatch(run, task_names=["b"])
    slow, third = site.leader(), site.leader()
    begin = slow.database.transaction

    def begin_late(**options):
        monkeypatch.setattr(slow.database, "transaction", begin)
        third.retry(run, ["a"])
        third.dispatch(run, task_names=["a"])
        return begin(**options)

    monkeypatch.setattr(slow.database, "transaction", begin_late)
    fold._abort(slow.desk, run)

    assert site.states(run) == {"a": "active", "b": "cancelled"}
    assert site.attempts(run, "a")[-1].state == "offered"


# -- two leaders that fold at once -----------------------------------------------------------


def after_it_has_looked(monkeypatch, scheduler, happening) -> None:
    """Let something happen once a leader has seen the threads, and before it writes."""
    look = functools.partial(fold._with_threads, scheduler.desk)

    def look_and_be_late(run):
        found = look(run)
        monkeypatch.undo()
        happening()
        return found

    only_for(monkeypatch, scheduler, fold, "_with_threads", look_and_be_late)


def test_what_another_leader_has_folded_and_accepted_is_left_as_it_is(site: Site, run, monkeypatch):
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    slow = site.leader()
    after_it_has_looked(monkeypatch, slow, lambda: site.scheduler.reconcile(run))

    fold.fold(slow.desk, run)

    assert site.attempts(run, "a")[0].state == "succeeded"
    assert site.scheduler.doctor(verify=True).problems == 0


def test_an_ending_that_another_leader_has_settled_is_settled_once(site: Site, run, monkeypatch):
    site.add(run, "a")
    site.claim(site.dispatch(run)["a"], lease_seconds=3600)
    site.scheduler.cancel(run, ["a"])
    assert site.attempts(run, "a")[0].state == "ending"
    site.clock.advance(61)
    slow = site.leader()
    after_it_has_looked(monkeypatch, slow, lambda: fold.fold(site.scheduler.desk, run))

    fold.fold(slow.desk, run)

    assert site.attempts(run, "a")[0].state == "cancelled"
    assert site.scheduler.doctor(verify=True).problems == 0
