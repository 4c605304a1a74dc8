"""Runs as a whole: paused, cancelled, closed, reopened."""

import functools

import pytest

from inbox_orch.orch.attempts import fold as folding
from inbox_orch.orch.attempts import work
from inbox_orch.orch.runs.model import Limits
from support.buses import refused
from support.runs import Site, branches, commit, only_for, worktree_paths


@pytest.fixture
def run(site: Site):
    return site.open_run()


def state_of(site: Site, run) -> str:
    return site.scheduler.run(run.name).state


def outcome(site: Site, run) -> str:
    return site.scheduler.status(run).outcome


# -- paused ----------------------------------------------------------------------------------


def test_a_paused_run_dispatches_nothing_and_what_runs_goes_on(site: Site, run):
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]

    paused = site.scheduler.pause_run(run)

    assert (paused.run.state, paused.already, paused.outcome) == ("paused", False, "running")
    with refused("invalid_state"):
        site.dispatch(site.scheduler.run(run.name))
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded", "b": "ready"}
    site.scheduler.resume_run(run)
    assert set(site.dispatch(run)) == {"b"}


def test_a_leader_that_has_seen_the_run_open_dispatches_nothing_in_a_paused_one(site: Site, run):
    site.add(run, "a")
    site.leader().pause_run(run)

    with refused("invalid_state"):
        site.scheduler.dispatch(run)

    assert site.attempts(run, "a") == []


def test_a_paused_run_is_not_stuck(site: Site, run):
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    for key, item in site.dispatch(run).items():
        site.deliver(item, "same.txt", f"{key}\n")
    site.scheduler.dispatch(run)
    assert outcome(site, run) == "stuck"

    site.scheduler.pause_run(run)

    assert outcome(site, run) == "running"


def test_pausing_and_resuming_again_changes_nothing(site: Site, run):
    assert not site.scheduler.pause_run(run).already
    assert site.scheduler.pause_run(run).already
    assert not site.scheduler.resume_run(run).already
    assert site.scheduler.resume_run(run).already
    assert site.scheduler.doctor(verify=True).problems == 0


# -- closed ----------------------------------------------------------------------------------


def test_a_run_with_a_live_attempt_is_not_closed(site: Site, run):
    site.add(run, "a")
    site.dispatch(run)

    with refused("live_attempt") as failure:
        site.scheduler.close_run(run)

    assert failure.value.exit_code == 9
    assert failure.value.details["attempts"] == ["a/1"]
    assert "orch run cancel" in failure.value.hint
    assert state_of(site, run) == "open"


def test_closing_deletes_nothing(site: Site, run):
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    commit(item["worktree"], "later.txt", "later")

    closed = site.scheduler.close_run(run)

    assert (closed.run.state, closed.already, closed.outcome) == ("closed", False, "partial")
    assert closed.run.closed_at is not None and closed.run.cancelled_at is None
    assert branches(site.repository) == {item["branch"]}
    assert len(worktree_paths(site.repository)) == 1
    assert site.states(run) == {"a": "succeeded", "b": "ready"}
    assert site.scheduler.close_run(run).already


def test_a_closed_run_takes_nothing_and_is_not_the_only_one(site: Site, run):
    site.add(run, "a", "b")
    site.scheduler.close_run(run)
    scheduler = site.scheduler

    for change in (
        lambda: site.add(run, "c"),
        lambda: scheduler.add_dependency(run, "a", "b"),
        lambda: scheduler.cancel(run, ["a"]),
        lambda: scheduler.skip(run, ["a"]),
        lambda: scheduler.retry(run, ["a"]),
        lambda: scheduler.reassign(run, ["a"], "others"),
        lambda: scheduler.dispatch(run),
        lambda: scheduler.pause_run(run),
        lambda: scheduler.resume_run(run),
        lambda: scheduler.cancel_run(run),
    ):
        with refused("invalid_state"):
            change()
    with refused("not_found"):
        scheduler.run(None)
    assert [r.id for r in scheduler.runs()] == []
    assert [r.id for r in scheduler.runs(closed=True)] == [run.id]


@pytest.mark.parametrize("until", ["change", "blocked", "run", "task:a"])
def test_a_wait_on_a_closed_run_returns(site: Site, run, until: str):
    site.add(run, "a")
    site.scheduler.close_run(run)

    waited = site.scheduler.wait(run, until=until, wait_seconds=0)

    assert waited.failure is not None and waited.failure.code == "run_unsuccessful"


def test_a_reopened_run_goes_on(site: Site, run):
    site.add(run, "a")
    site.scheduler.close_run(run)

    reopened = site.scheduler.reopen_run(run)

    assert (reopened.run.state, reopened.run.closed_at) == ("open", None)
    assert set(site.dispatch(run)) == {"a"}
    assert site.scheduler.reopen_run(run).already
    assert site.scheduler.doctor(verify=True).problems == 0


# -- cancelled -------------------------------------------------------------------------------


def test_a_cancelled_run_cancels_what_waits_and_is_closed_when_the_last_has_ended(site: Site, run):
    site.add(run, "a", "b", "c")
    site.add(run, "d", depends_on=["a"])
    items = site.dispatch(run, "a", "b")
    token = site.claim(items["a"])

    cancelled = site.scheduler.cancel_run(run)

    assert cancelled.run.state == "cancelling" and cancelled.run.cancelled_at is not None
    assert set(cancelled.cancelled) == {"c", "d"}
    assert cancelled.ending == ("a",)
    assert cancelled.outcome == "running"
    stands = {"a": "active", "b": "cancelled", "c": "cancelled", "d": "cancelled"}
    assert site.states(run) == stands
    with refused("cancelled"):
        site.worker.renew(items["a"]["thread"], token)
    site.scheduler.reconcile(run)

    assert state_of(site, run) == "closed"
    assert set(site.states(run).values()) == {"cancelled"}
    assert outcome(site, run) == "cancelled"
    assert len(worktree_paths(site.repository)) == 2, "nothing is deleted"
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_cancelled_run_in_which_nothing_runs_is_closed_at_once(site: Site, run):
    site.add(run, "a")

    cancelled = site.scheduler.cancel_run(run)

    assert (cancelled.run.state, cancelled.outcome) == ("closed", "cancelled")
    again = site.scheduler.cancel_run(run)
    assert (again.already, again.cancelled) == (True, ())


def test_a_run_without_tasks_can_be_cancelled(site: Site, run):
    assert site.scheduler.cancel_run(run).run.state == "closed"


def test_what_succeeded_before_stays_so_in_a_cancelled_run(site: Site, run):
    site.add(run, "a", "b")
    site.deliver(site.dispatch(run, "a")["a"], "a.txt")
    site.scheduler.reconcile(run)

    assert site.scheduler.cancel_run(run).outcome == "cancelled"
    assert site.states(run) == {"a": "succeeded", "b": "cancelled"}


def test_work_that_is_submitted_and_not_looked_at_is_cancelled_and_kept(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    head = site.deliver(item, "a.txt")
    folding.fold(site.scheduler.desk, run)
    assert site.attempts(run, "a")[-1].state == "submitted"

    assert site.scheduler.cancel_run(run).run.state == "closed"

    assert site.attempts(run, "a")[-1].state == "cancelled"
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "cancelled"}
    assert site.scheduler.desk.repository(run).ref_commit(f"refs/heads/{item['branch']}") == head


def test_a_failure_that_comes_after_the_cancelling_is_not_tried_again(site: Site, run):
    site.add(run, "a", limits=Limits(run_seconds=10))
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(11)
    site.scheduler.reconcile(run)
    assert site.attempts(run, "a")[-1].ending_as == "timed_out"

    site.scheduler.cancel_run(run)
    with refused("cancelled"):
        site.worker.renew(item["thread"], token)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "cancelled"}
    assert state_of(site, run) == "closed"


def test_an_attempt_that_was_being_made_is_cancelled_once_it_is_offered(
    site: Site, run, monkeypatch
):
    site.add(run, "a")
    other = site.leader()
    make = functools.partial(work.prepare, other.desk)
    seen = []

    def cancel_meanwhile(*arguments):
        seen.append(site.scheduler.cancel_run(run).run.state)
        return make(*arguments)

    only_for(monkeypatch, other, work, "prepare", cancel_meanwhile)
    other.dispatch(run)
    site.scheduler.reconcile(run)

    assert seen == ["cancelling"]
    assert site.states(run) == {"a": "cancelled"}
    assert state_of(site, run) == "closed"


def test_a_run_that_is_being_cancelled_takes_nothing_and_is_not_closed_by_hand(site: Site, run):
    site.add(run, "a", "b")
    site.claim(site.dispatch(run, "a")["a"])
    site.scheduler.cancel_run(run)

    with refused("live_attempt"):
        site.scheduler.close_run(run)
    for change in (
        lambda: site.add(run, "c"),
        lambda: site.scheduler.retry(run, ["b"]),
        lambda: site.scheduler.reopen_run(run),
        lambda: site.scheduler.resume_run(run),
    ):
        with refused("invalid_state"):
            change()


def test_a_cancelled_run_can_be_reopened_and_its_tasks_retried(site: Site, run):
    site.add(run, "a")
    site.scheduler.cancel_run(run)

    reopened = site.scheduler.reopen_run(run)

    assert (reopened.run.state, reopened.run.cancelled_at) == ("open", None)
    assert reopened.outcome == "failed"
    site.scheduler.retry(run, ["a"])
    assert set(site.dispatch(run)) == {"a"}


def test_two_leaders_cancel_a_run_once(site: Site, run):
    site.add(run, "a")
    other = site.leader()

    assert not site.scheduler.cancel_run(run).already
    assert other.cancel_run(run).already
    assert site.scheduler.doctor(verify=True).problems == 0


@pytest.mark.parametrize("end", ["done", "fail"])
def test_a_run_is_cancelled_though_a_worker_ends_in_that_very_moment(
    site: Site, run, monkeypatch, end: str
):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "a.txt", "text")
    token = site.claim(item)
    fold = functools.partial(folding.fold, site.scheduler.desk)

    def fold_and_be_late(run):
        monkeypatch.undo()
        folded = fold(run)
        getattr(site.worker, end)(item["thread"], token, body="I am through")
        return folded

    only_for(monkeypatch, site.scheduler, folding, "fold", fold_and_be_late)
    governed = site.scheduler.cancel_run(run)

    assert (governed.run.state, governed.outcome) == ("closed", "cancelled")
    states = {"done": ["cancelled"], "fail": ["failed"]}[end]
    assert [a.state for a in site.attempts(run, "a")] == states
    assert site.scheduler.doctor(verify=True).problems == 0
