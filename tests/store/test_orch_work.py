"""Who did it, and since when: of work in hand, and of work that has ended."""

import pytest

from inbox_orch.orch.views.work import changed_at, works_of
from support.runs import Site, commit


@pytest.fixture
def run(site: Site):
    return site.open_run()


def row(site: Site, run, key: str = "a"):
    rows = site.scheduler.status(run).rows
    return next(row for row in rows if row.standing.task.key == key)


def taken_over(site: Site, run) -> None:
    """Task `a`, which bob has claimed and let run out, and which w1 has done after him."""
    item = site.dispatch(run)["a"]
    bob = site.office.bus("bob")
    bob.claim(item["thread"], mailboxes=["workers"], lease_seconds=60)
    site.clock.advance(61)
    commit(item["worktree"], "a.txt", "a\n")
    site.worker.done(item["thread"], site.claim(item), body="It is done.\nAll of it.")
    site.scheduler.reconcile(run)


def test_ended_work_is_of_who_did_it_and_who_lost_it_is_told(site: Site, run):
    site.add(run, "a")
    assert row(site, run).worker is None

    taken_over(site, run)

    assert (row(site, run).standing.state, row(site, run).worker) == ("succeeded", "w1")
    assert row(site, run).as_json()["worker"] == "w1"
    (attempt,) = site.attempts(run, "a")
    work = works_of(site.scheduler.desk, [attempt])[attempt.id]
    assert (work.workers, work.deliveries, work.lost_leases) == (("bob", "w1"), 2, 1)
    assert (work.words, work.last_words) == ("w1, after bob", "It is done. All of it.")
    shown = site.scheduler.show_task(run, "a").as_json()["attempts"][0]["work"]
    told = site.scheduler.report(run, most=10).as_json()["items"][0]["work"]
    assert shown == told == work.as_json()


def test_what_waits_to_be_tried_again_is_nobodys(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    assert row(site, run).worker == "w1"

    site.worker.fail(item["thread"], token, body="no")
    site.scheduler.reconcile(run)

    assert (row(site, run).standing.task.state, row(site, run).worker) == ("pending", None)


def test_taking_a_worktree_away_is_no_change_of_the_work(site: Site, run):
    site.add(run, "a")
    taken_over(site, run)
    (before,) = site.attempts(run, "a")
    site.clock.advance(3600)

    site.scheduler.cleanup(run, force=True)

    (after,) = site.attempts(run, "a")
    assert after.removed_at is not None
    assert changed_at(after) == changed_at(before) == before.ended_at
