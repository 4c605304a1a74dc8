"""How attempts follow their threads: retries, budgets, cancelling, policies, redelivery."""

import functools

import pytest

from inbox_orch.orch.attempts import fold, work
from inbox_orch.shared.store import events
from support.buses import refused
from support.runs import Site, branches, commit, git, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


def wait_out_the_back_off(site: Site, run, key: str) -> None:
    until = site.standing(run, key).until
    assert until is not None
    site.clock.advance((until - site.clock.wall_ms) / 1000 - 0.001)
    assert site.states(run)[key] == "backing_off"
    site.clock.advance(0.002)
    assert site.states(run)[key] == "ready"


def kinds(site: Site, run) -> list[str]:
    with site.scheduler.database.snapshot() as snapshot:
        return [
            e.kind
            for e in events.after(
                snapshot, 0, limit=10_000, matching=events.Matching(run_id=run.id)
            )
        ]


# -- following the thread --------------------------------------------------------------------


def test_an_attempt_follows_its_thread_step_by_step(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]

    def state() -> tuple[str, str]:
        site.scheduler.reconcile(run)
        return site.attempts(run, "a")[-1].state, site.task(run, "a").state

    assert state() == ("offered", "active")
    token = site.claim(item)
    assert state() == ("running", "active")
    site.worker.ask(item["thread"], token, body="which?")
    assert state() == ("blocked", "blocked")
    site.scheduler.answer(run, "a", body="this")
    assert state() == ("running", "active")
    site.worker.release(item["thread"], token)
    assert state() == ("offered", "active")


def test_folding_may_skip_states(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.worker.ask(item["thread"], token, body="which?")
    site.scheduler.reconcile(run)
    commit(item["worktree"], "a.txt", "text")
    site.worker.done(item["thread"], token)

    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "succeeded"}


def test_redelivery_stays_inside_the_attempt(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.claim(item)
    commit(item["worktree"], "half.txt", "half")
    site.clock.advance(301)

    site.scheduler.reconcile(run)

    assert [a.state for a in site.attempts(run, "a")] == ["offered"]
    claimed = site.office.bus("w2").claim(item["thread"], mailboxes=["workers"])
    assert claimed.thread.deliveries == 2
    assert len(site.attempts(run, "a")) == 1


def test_workers_that_die_three_times_lose_the_attempt_and_not_the_work_budget(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    for _ in range(3):
        site.claim(item)
        site.clock.advance(301)
        site.scheduler.reconcile(run)

    attempt = site.attempts(run, "a")[-1]
    assert attempt.state == "lost"
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 0, 1)


# -- retries ---------------------------------------------------------------------------------


def test_a_failure_is_tried_again_after_a_pause_with_what_was_learnt(site: Site, run):
    site.add(run, "a", body="Write the lexer.")
    first = site.dispatch(run)["a"]
    token = site.claim(first)
    site.worker.ask(first["thread"], token, body="Which separator?")
    site.scheduler.answer(run, "a", body="semicolon")
    commit(first["worktree"], "half.txt", "half")
    site.worker.fail(first["thread"], token, body="the grammar is ambiguous")
    site.scheduler.reconcile(run)

    assert site.standing(run, "a").state == "backing_off"
    assert site.dispatch(run) == {}
    wait_out_the_back_off(site, run, "a")
    second = site.dispatch(run)["a"]

    text = site.office.bus("w2").claim(second["thread"], mailboxes=["workers"]).messages[0].body
    assert text.startswith("Do a\n\nWrite the lexer.\n\nEarlier attempts\n\nAttempt 1: failed.")
    for learnt in ("the grammar is ambiguous", "Which separator?", "semicolon", "half.txt"):
        assert learnt in text
    assert second["number"] == 2
    assert second["thread"] != first["thread"]
    assert second["branch"] != first["branch"]
    assert second["worktree"] != first["worktree"]
    assert branches(site.repository) == {first["branch"], second["branch"]}
    tip = git(site.repository, "rev-parse", first["branch"])
    assert tip == git(first["worktree"], "rev-parse", "HEAD")


def test_a_reason_is_that_of_the_failure_whoever_wrote_after_it(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.fail(item, body="the grammar\n is ambiguous")
    site.office.bus("leader").reply(item["thread"], body="what a pity")

    site.scheduler.reconcile(run)

    assert site.attempts(run, "a")[-1].reason == "the grammar is ambiguous"


def test_a_look_at_a_long_thread_reads_one_message_of_it(site: Site, run, monkeypatch):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.worker.ask(item["thread"], token, body="which?")

    def too_much(*arguments, **options):
        raise AssertionError("every message of the thread was read")

    monkeypatch.setattr(site.scheduler.bus, "messages", too_much)

    site.scheduler.answer(run, "a", body="this")
    site.worker.ask(item["thread"], token, body="and which then?")
    site.scheduler.reconcile(run)
    assert [q.message.body for q in site.scheduler.questions(run)] == ["and which then?"]
    site.worker.fail(item["thread"], token, body="it does not work")
    site.scheduler.reconcile(run)
    assert site.attempts(run, "a")[0].reason == "it does not work"


def test_the_task_has_failed_when_its_tries_are_used_up(site: Site, run):
    site.add(run, "a", max_attempts=2)
    site.add(run, "b", depends_on=["a"])
    site.add(run, "c", depends_on=["b"])
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)
    wait_out_the_back_off(site, run, "a")
    site.fail(site.dispatch(run)["a"])

    status = site.scheduler.status(run)

    assert site.states(run) == {"a": "failed", "b": "unreachable", "c": "unreachable"}
    assert site.standing(run, "c").because == ("a",)
    assert status.outcome == "failed"
    assert site.task(run, "a").reason == "attempt 2 failed: it does not work"


def test_a_fatal_failure_is_not_tried_again(site: Site, run):
    site.add(run, "a")
    site.fail(site.dispatch(run)["a"], fatal=True)

    assert site.states(run) == {"a": "failed"}


# -- cancelling ------------------------------------------------------------------------------


def ending(site: Site, run) -> bool:
    site.scheduler.reconcile(run)
    return site.attempts(run, "a")[-1].state == "ending"


def test_a_cancelled_attempt_ends_when_its_holder_knows(site: Site):
    run = site.open_run(max_parallel=1)
    site.add(run, "a", "b")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.office.bus("leader").cancel(item["thread"])

    assert ending(site, run)
    assert site.task(run, "a").state == "active"
    assert site.dispatch(run) == {}, "the slot is free only when nobody works on it"
    with refused("cancelled"):
        site.worker.renew(item["thread"], token)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "cancelled", "b": "ready"}
    assert set(site.dispatch(run)) == {"b"}


def test_a_cancelled_attempt_ends_when_the_lease_has_run_out(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.claim(item, lease_seconds=5)
    site.office.bus("leader").cancel(item["thread"])

    assert ending(site, run)
    site.clock.advance(4)
    assert ending(site, run)
    site.clock.advance(2)
    assert not ending(site, run)
    assert site.states(run) == {"a": "cancelled"}


def test_a_cancelled_attempt_ends_when_the_grace_is_over(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.claim(item, lease_seconds=3600)
    site.office.bus("leader").cancel(item["thread"])

    assert ending(site, run)
    site.clock.advance(59)
    assert ending(site, run)
    site.clock.advance(2)
    assert not ending(site, run)
    assert site.states(run) == {"a": "cancelled"}


def test_a_cancelled_attempt_that_nobody_holds_ends_at_once(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.office.bus("leader").cancel(item["thread"])

    site.scheduler.reconcile(run)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "cancelled"}


# -- policies --------------------------------------------------------------------------------


def test_continue_goes_on_with_what_does_not_depend_on_the_failure(site: Site, run):
    site.add(run, "a", "b")
    site.fail(site.dispatch(run, "a")["a"], fatal=True)

    assert site.states(run) == {"a": "failed", "b": "ready"}


def test_fail_fast_starts_nothing_more_and_lets_what_runs_finish(site: Site):
    run = site.open_run(on_failure="fail-fast")
    site.add(run, "a", "b", "c")
    items = site.dispatch(run, "a", "b")
    site.fail(items["a"], fatal=True)

    assert site.states(run) == {"a": "failed", "b": "active", "c": "unreachable"}
    site.deliver(items["b"], "b.txt")
    site.scheduler.reconcile(run)
    assert site.states(run)["b"] == "succeeded"
    assert site.scheduler.status(run).outcome == "partial"


def test_fail_fast_counts_a_task_only_after_its_last_try(site: Site):
    run = site.open_run(on_failure="fail-fast")
    site.add(run, "a", max_attempts=2)
    site.add(run, "b")
    site.fail(site.dispatch(run, "a")["a"])

    assert site.states(run) == {"a": "backing_off", "b": "ready"}


def test_abort_cancels_what_runs(site: Site):
    run = site.open_run(on_failure="abort")
    site.add(run, "a", "b", "c")
    items = site.dispatch(run, "a", "b")
    token = site.claim(items["b"])
    site.fail(items["a"], fatal=True)

    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "failed", "b": "active", "c": "unreachable"}
    with refused("cancelled"):
        site.worker.renew(items["b"]["thread"], token)
    site.scheduler.reconcile(run)
    assert site.states(run)["b"] == "cancelled"


@pytest.mark.parametrize("end", ["done", "fail", "cancel"])
def test_abort_leaves_alone_what_has_ended_and_is_not_folded_yet(site: Site, end: str):
    run = site.open_run(on_failure="abort")
    site.add(run, "a", "b")
    items = site.dispatch(run)
    commit(items["b"]["worktree"], "b.txt", "text")
    site.fail(items["a"], fatal=True)
    if end == "cancel":
        site.office.bus("leader").cancel(items["b"]["thread"])
    else:
        getattr(site.worker, end)(items["b"]["thread"], site.claim(items["b"]), body="ended")

    site.scheduler.reconcile(run)
    site.scheduler.reconcile(run)

    expected = {"done": "succeeded", "fail": "unreachable", "cancel": "cancelled"}
    assert site.states(run) == {"a": "failed", "b": expected[end]}


def test_abort_reaches_an_attempt_that_was_being_made_when_the_task_failed(site: Site, monkeypatch):
    run = site.open_run(on_failure="abort")
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    other = site.leader()
    make = functools.partial(work.prepare, other.desk)

    def fail_meanwhile(*arguments):
        site.fail(item, fatal=True)
        fold.fold(site.scheduler.desk, run)
        return make(*arguments)

    only_for(monkeypatch, other, work, "prepare", fail_meanwhile)
    other.dispatch(run, task_names=["b"])

    site.scheduler.reconcile(run)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "failed", "b": "cancelled"}


# -- limits ----------------------------------------------------------------------------------


def test_no_more_attempts_live_than_the_run_allows(site: Site):
    run = site.open_run(max_parallel=2)
    site.add(run, "a", "b", "c")

    items = site.dispatch(run)
    assert set(items) == {"a", "b"}
    assert site.dispatch(run) == {}
    with refused("invalid_state"):
        site.dispatch(run, "c")
    site.deliver(items["a"], "a.txt")
    assert set(site.dispatch(run)) == {"c"}


def test_the_most_urgent_are_dispatched_first(site: Site):
    run = site.open_run(max_parallel=1)
    site.add(run, "plain")
    site.add(run, "urgent", priority=7)

    assert set(site.dispatch(run)) == {"urgent"}


def test_a_mailbox_can_be_given_for_once(site: Site, run):
    site.add(run, "a")

    assert site.dispatch(run, mailbox="special")["a"]["mailbox"] == "special"
    assert site.task(run, "a").mailbox == "workers"


def test_the_database_folds_from_its_events_after_all_that(site: Site, run):
    site.add(run, "a")
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)
    wait_out_the_back_off(site, run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    assert kinds(site, run)[-2:] == ["attempt_succeeded", "task_succeeded"]
    assert site.scheduler.doctor(verify=True).problems == 0


def test_what_failed_in_one_moment_is_not_tried_again_in_one_moment(
    site: Site, run, monkeypatch: pytest.MonkeyPatch
):
    draws = {"a": 0.0, "b": 0.5, "c": 1.0}
    site.add(run, *draws)
    items = site.dispatch(run)
    for key, draw in draws.items():
        monkeypatch.setattr("random.random", lambda drawn=draw: drawn)
        site.fail(items[key])
        site.scheduler.reconcile(run)

    due = {key: site.standing(run, key).until - site.clock.wall_ms for key in draws}

    assert due == {"a": 1000, "b": 1500, "c": 2000}
