"""A lease that lives: however often leaders look, nobody else is offered its work; and whoever
takes over after a death need not be whoever died."""

import shutil
from typing import Any

import pytest

from inbox_orch.inbox.services import reaping
from support.buses import refused
from support.runs import Site, commit, git


def test_what_is_held_is_never_dispatched_again_however_often_leaders_look(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=60)
    leaders, rival = [site.leader(f"leader{n}") for n in range(3)], site.office.bus("w2")
    for number in range(50):
        site.clock.advance(30)
        site.worker.renew(item["thread"], token)
        leader = leaders[number % len(leaders)]
        leader.reconcile(run)
        assert leader.ready(run).items == ()
        assert leader.dispatch(run).items == ()
        assert [row.standing.state for row in leader.status(run).rows] == ["active"]
        with refused("nothing_available"):
            rival.claim(mailboxes=["workers"])

    held = site.worker.show(item["thread"]).thread
    assert (held.holder, held.epoch, held.deliveries) == ("w1", 1, 1)
    assert [attempt.number for attempt in site.attempts(run, "a")] == [1]
    site.worker.done(item["thread"], token, body="done")


@pytest.mark.parametrize("look", ["reconcile", "dispatch"])
def test_a_renewal_between_a_leaders_look_and_its_write_keeps_the_lease(
    site: Site, monkeypatch: pytest.MonkeyPatch, look: str
):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=60)
    leader = site.leader("leader")
    genuine = reaping.anything_due
    renewed = []

    def renew_first(desk: Any, *arguments: Any) -> bool:
        due = genuine(desk, *arguments)
        if due and desk is leader.bus.desk:
            # The leader has seen a lease that is over, and is about to say so.
            renewed.append(site.worker.renew(item["thread"], token))
        return due

    monkeypatch.setattr(reaping, "anything_due", renew_first)
    for number in range(5):
        site.clock.advance(61)
        getattr(leader, look)(run)
        assert len(renewed) == number + 1
        assert site.states(run) == {"a": "active"}

    held = site.worker.show(item["thread"]).thread
    assert (held.state, held.holder, held.epoch, held.deliveries) == ("claimed", "w1", 1, 1)
    kinds = [event.kind for event in site.worker.watch(after="0", wait_seconds=0)]
    assert "lease_expired" not in kinds
    assert [(a.number, a.state) for a in site.attempts(run, "a")] == [(1, "running")]
    site.worker.done(item["thread"], token, body="done")


def test_work_whose_worker_died_again_and_again_is_not_tied_to_that_worker(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    for _ in range(3):
        site.claim(item, lease_seconds=10)
        site.clock.advance(11)
        site.scheduler.reconcile(run)
    site.clock.advance(200)

    again = site.dispatch(run)["a"]

    assert again["mailbox"] == "workers"
    taken = site.office.bus("w2").claim(mailboxes=["workers"])
    assert taken.thread.id == again["thread"]
    assert [a.state for a in site.attempts(run, "a")] == ["lost", "offered"]


def test_a_live_attempt_whose_worktree_is_gone_is_told_by_the_doctor_and_never_succeeds(site: Site):
    run = site.open_run()
    site.add(run, "a", allow_empty=True)
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    commit(item["worktree"], "half.txt", "half\n")
    shutil.rmtree(item["worktree"])

    (check,) = [c for c in site.scheduler.doctor().checks if c.name == "worktrees"]
    assert (check.status, check.total) == ("problem", 1)
    assert item["worktree"] in check.items[0]
    site.worker.done(item["thread"], token, body="done")
    site.scheduler.reconcile(run)

    (attempt,) = site.attempts(run, "a")
    assert attempt.state == "lost"
    kept = git(site.repository, "rev-parse", f"refs/orch/late/{attempt.id}")
    assert git(site.repository, "show", f"{kept}:half.txt") == "half"
