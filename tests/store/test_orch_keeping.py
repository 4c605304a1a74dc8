"""The ref that keeps accepted work: set before the work is accepted, by one process at a time, and
put back when nothing comes of it."""

from pathlib import Path

import pytest

from inbox_orch.orch.attempts import keep, verify
from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.runs import Site, commit, git, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


def delivered(site: Site, run, **task) -> str:
    """The head of an attempt that is submitted."""
    site.add(run, "a", **task)
    return site.deliver(site.dispatch(run)["a"], "a.txt")


def kept(site: Site) -> list[str]:
    """The commits that are kept as accepted work."""
    return git(site.repository, "for-each-ref", "--format=%(objectname)", keep.REFS).split()


def dies_before_accepting(monkeypatch, scheduler) -> None:
    """The scheduler's process is gone when the ref is set and nothing is accepted yet."""

    class Died(BaseException):
        pass

    def die(*arguments, **named):
        raise Died

    # Nothing that it would do on its way out comes to pass, either.
    monkeypatch.setattr(keep, "put_back", die)
    only_for(monkeypatch, scheduler, verify, "_decided", die)
    only_for(monkeypatch, scheduler, verify, "settle", die)
    run = scheduler.run(None)
    with pytest.raises(Died):
        scheduler.reconcile(run)
    monkeypatch.undo()


def belongs_to_the_dead(site: Site, run) -> None:
    """What is begun is a process's that does not run any more."""
    (intent,) = site.open_intents(run)
    gone = intent.owner._replace(process=4194303, started=1)
    with site.scheduler.database.transaction() as tx:
        assert journal_rows.take_over_intent(tx, intent.number, intent.owner, gone)


@pytest.mark.parametrize("checks", [[], ["true"]])
def test_work_is_kept_before_it_is_accepted(site: Site, run, monkeypatch, checks):
    head = delivered(site, run, checks=checks)
    dies_before_accepting(monkeypatch, site.leader())

    assert kept(site) == [head]
    assert site.task(run, "a").state == "active"


@pytest.mark.parametrize("checks", [[], ["true"]])
def test_what_a_dead_leader_has_kept_is_accepted_by_the_next(site: Site, run, monkeypatch, checks):
    head = delivered(site, run, checks=checks)
    dies_before_accepting(monkeypatch, site.leader())
    belongs_to_the_dead(site, run)

    site.scheduler.reconcile(run)

    assert kept(site) == [head]
    assert site.task(run, "a").accepted_head == head
    assert site.open_intents(run) == []


def test_a_dispatch_accepts_it_as_well(site: Site, run, monkeypatch):
    """It decides on what needs no check, and the next tasks build on that."""
    head = delivered(site, run)
    dies_before_accepting(monkeypatch, site.leader())
    belongs_to_the_dead(site, run)

    site.dispatch(run)

    assert (kept(site), site.task(run, "a").accepted_head) == ([head], head)


@pytest.mark.parametrize("checks", [[], ["true"]])
def test_what_a_dead_leader_has_kept_and_nobody_accepts_is_kept_no_more(
    site: Site, run, monkeypatch, checks
):
    delivered(site, run, checks=checks)
    dies_before_accepting(monkeypatch, site.leader())
    belongs_to_the_dead(site, run)
    site.scheduler.cancel(run, ["a"])

    site.scheduler.reconcile(run)

    assert kept(site) == []
    assert site.open_intents(run) == []
    assert [a.state for a in site.attempts(run, "a")] == ["cancelled"]


def test_what_was_not_accepted_is_kept_no_more_once_git_can_remove_it(site: Site, run, monkeypatch):
    """A lock that another git has left, say, is in the way."""
    delivered(site, run)
    dies_before_accepting(monkeypatch, site.leader())
    belongs_to_the_dead(site, run)
    (attempt,) = site.attempts(run, "a")
    lock = Path(site.repository, ".git", f"{keep.ref_of(attempt)}.lock")
    lock.touch()

    site.scheduler.cancel(run, ["a"])
    assert len(site.open_intents(run)) == 1
    lock.unlink()
    site.scheduler.reconcile(run)

    assert (kept(site), site.open_intents(run)) == ([], [])


def test_what_is_cancelled_while_its_ref_is_set_is_kept_no_more(site: Site, run, monkeypatch):
    delivered(site, run)
    slow, set_ref = site.leader(), Repository.keep

    def keep_and_be_late(repository, ref, commit, *locks):
        set_ref(repository, ref, commit, *locks)
        monkeypatch.undo()
        site.scheduler.cancel(run, ["a"])

    monkeypatch.setattr(Repository, "keep", keep_and_be_late)
    slow.reconcile(run)

    assert kept(site) == []
    assert site.open_intents(run) == []
    assert site.task(run, "a").state == "cancelled"


def test_what_one_leader_is_accepting_another_leaves_alone(site: Site, run, monkeypatch):
    head = delivered(site, run)
    slow, set_ref = site.leader(), Repository.keep
    decided = []

    def keep_and_be_watched(repository, ref, commit, *locks):
        monkeypatch.undo()
        decided.append(verify.verify(site.scheduler.desk, run))
        set_ref(repository, ref, commit, *locks)

    monkeypatch.setattr(Repository, "keep", keep_and_be_watched)
    slow.reconcile(run)

    assert decided == [0]
    assert kept(site) == [head]
    assert site.task(run, "a").accepted_head == head


def test_where_the_ref_cannot_be_set_nothing_is_accepted_and_nothing_is_left(
    site: Site, run, monkeypatch
):
    head = delivered(site, run)

    def fail(repository, ref, *arguments):
        raise InboxOrchError("disk_full", "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Repository, "keep", fail)
        with refused("disk_full"):
            site.scheduler.reconcile(run)
    assert site.open_intents(run) == []
    assert site.attempts(run, "a")[-1].state == "submitted"

    site.scheduler.reconcile(run)

    assert kept(site) == [head]


def test_an_adoption_that_is_overtaken_puts_the_ref_back_to_what_was_accepted_before(
    site: Site, run, monkeypatch
):
    """The attempt was accepted once, and the leader has taken that back."""
    first = delivered(site, run)
    site.scheduler.reconcile(run)
    site.scheduler.retry(run, ["a"], force=True)
    (attempt,) = site.attempts(run, "a")
    commit(str(attempt.worktree_path), "b.txt", "text")
    slow, set_ref = site.leader(), Repository.keep

    def keep_and_be_late(repository, ref, commit, *locks):
        set_ref(repository, ref, commit, *locks)
        if ref == keep.ref_of(attempt):
            monkeypatch.undo()
            site.dispatch(run)

    monkeypatch.setattr(Repository, "keep", keep_and_be_late)
    with refused("live_attempt"):
        slow.adopt(run, "a")

    assert kept(site) == [first]
    assert site.open_intents(run) == []
    with site.scheduler.database.snapshot() as snapshot:
        present = attempts.get(snapshot, attempt.id)
    assert present is not None
    assert present.head_commit == first
