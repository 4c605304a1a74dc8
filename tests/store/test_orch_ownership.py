"""Whose it is to carry out what was begun: two leaders that both think so harm nobody's work."""

import functools
import json
import os
import threading
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import provision as provisioning
from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.attempts import work
from inbox_orch.orch.git import worktrees
from inbox_orch.orch.journal import finishing, owners
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs import task_rows as tasks
from inbox_orch.orch.runs.desk import place_of
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes import processes
from support.runs import Site, branches, only_for, worktree_paths
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def run(site: Site):
    run = site.open_run()
    site.add(run, "a")
    return run


def seen_from_another_container(monkeypatch: pytest.MonkeyPatch, scheduler: Scheduler) -> None:
    """The scheduler's owner is as a process of another PID namespace writes it down: no process
    here has its number and its start."""
    elsewhere = scheduler.database.owner()._replace(process=4194303, started=1, namespace=1)
    monkeypatch.setattr(scheduler.database, "owner", lambda: elsewhere)


def seen_as_gone(monkeypatch: pytest.MonkeyPatch, scheduler: Scheduler) -> None:
    """The scheduler's owner is as a process that has ended leaves it."""
    gone = scheduler.database.owner()._replace(process=4194303, started=1)
    monkeypatch.setattr(scheduler.database, "owner", lambda: gone)


def while_it_makes_the_worktree(monkeypatch, scheduler: Scheduler, happening) -> None:
    """Let something happen just after a leader has made the worktree."""
    make = functools.partial(work.prepare, scheduler.desk)

    def make_and_look_up(*arguments):
        made = make(*arguments)
        happening()
        return made

    only_for(monkeypatch, scheduler, work, "prepare", make_and_look_up)


def test_the_namespace_of_a_process_is_that_of_the_kernel():
    assert processes.namespace() == os.stat("/proc/self/ns/pid").st_ino != 0


def test_what_another_container_has_begun_is_left_to_it(site: Site, run, monkeypatch):
    first = site.leader()
    seen_from_another_container(monkeypatch, first)
    taken = []
    while_it_makes_the_worktree(
        monkeypatch, first, lambda: taken.append(finishing.finish_intents(site.scheduler.desk, run))
    )

    done = first.dispatch(run)

    assert (taken, done.items[0]["state"]) == ([0], "offered")


def test_what_another_container_has_begun_is_finished_after_a_time(site: Site, run, monkeypatch):
    first = site.leader()
    seen_from_another_container(monkeypatch, first)

    def die():
        raise KeyboardInterrupt

    while_it_makes_the_worktree(monkeypatch, first, die)
    with pytest.raises(KeyboardInterrupt):
        first.dispatch(run)

    assert finishing.finish_intents(site.scheduler.desk, run) == 0
    site.clock.advance(601)
    assert finishing.finish_intents(site.scheduler.desk, run) == 1
    assert site.attempts(run, "a")[0].state == "offered"
    assert site.open_intents(run) == []


def test_a_leader_that_was_taken_for_dead_does_not_hand_out_what_is_made_anew(
    site: Site, run, monkeypatch
):
    """The second takes over while the first makes the worktree, and waits for its lock."""
    first, second = site.leader(), site.leader()
    seen_as_gone(monkeypatch, first)
    taken = []
    # Only taking over: making it anew would wait for the first, which is in this very thread.
    provision = functools.partial(provisioning.provision, second.desk)
    only_for(
        monkeypatch,
        second,
        provisioning,
        "provision",
        lambda run, attempt: taken.append(attempt) or attempt,
    )
    while_it_makes_the_worktree(
        monkeypatch, first, lambda: finishing.finish_intents(second.desk, run)
    )

    done = first.dispatch(run)

    assert (len(taken), done.items[0]["state"]) == (1, "allocating")
    assert provision(run, taken[0]).state == "offered"
    assert site.open_intents(run) == []
    with site.scheduler.database.snapshot() as snapshot:
        assert snapshot.one("SELECT count(*) FROM thread")[0] == 1


def test_a_worktree_that_was_handed_out_meanwhile_is_not_made_anew(site: Site, run):
    item = site.dispatch(run)["a"]
    site.claim(item)
    (Path(item["worktree"]) / "half.txt").write_text("half done")
    attempt = site.attempts(run, "a")[0]

    # As it was seen before it was handed out.
    stale = attempt._replace(state="allocating", thread_id=None)
    assert provisioning.provision(site.leader().desk, run, stale).state == "offered"

    assert (Path(item["worktree"]) / "half.txt").read_text() == "half done"


def test_the_lock_of_an_attempt_is_held_until_it_is_offered(site: Site, run, monkeypatch):
    """Between the making and the commit nobody else may think that the worktree is nobody's."""
    first = site.leader()
    offer, free = functools.partial(work.offer, first.desk), []

    def look_and_offer(tx, run, task, attempt, text):
        def try_to_get_it():
            monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.05)
            place = place_of(site.scheduler.desk, attempt)
            try:
                with worktrees.alone(site.scheduler.desk.repository(run), place):
                    free.append(True)
            except InboxOrchError as error:
                free.append(error.code)

        thread = threading.Thread(target=try_to_get_it)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        return offer(tx, run, task, attempt, text)

    only_for(monkeypatch, first, work, "offer", look_and_offer)
    first.dispatch(run)

    assert free == ["busy"]


def test_a_failure_of_one_that_was_taken_over_decides_nothing(site: Site, run, monkeypatch):
    first, second = site.leader(), site.leader()
    seen_as_gone(monkeypatch, first)
    only_for(monkeypatch, second, provisioning, "provision", lambda run, attempt: attempt)

    def lose_it_and_fail():
        finishing.finish_intents(second.desk, run)
        raise site_failure()

    while_it_makes_the_worktree(monkeypatch, first, lose_it_and_fail)

    assert first.dispatch(run).items[0]["state"] == "allocating"
    assert site.attempts(run, "a")[0].state == "allocating"
    assert len(site.open_intents(run)) == 1


def site_failure() -> InboxOrchError:
    return InboxOrchError("git_failed", "it does not work")


# -- a repository that is not there ----------------------------------------------------------


def begin_and_die(site: Site, run, monkeypatch) -> None:
    """A dispatch that ends after its intents are written down and before git is touched."""
    dying = site.leader()
    seen_as_gone(monkeypatch, dying)

    def die(*arguments, **options):
        raise KeyboardInterrupt

    only_for(monkeypatch, dying, provisioning, "provision", die)
    with pytest.raises(KeyboardInterrupt):
        dying.dispatch(run)


@pytest.mark.parametrize("policy", ["continue", "abort"])
def test_what_is_cancelled_before_anybody_had_it_counts_as_no_failure(
    site: Site, monkeypatch, policy: str
):
    run = site.open_run(on_failure=policy)
    site.add(run, "b")
    site.dispatch(run, "b")
    site.add(run, "a", max_infra_attempts=1)
    begin_and_die(site, run, monkeypatch)

    done = site.scheduler.cancel(run, ["a"])

    assert (done.already, done.ending) == ((), ())
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("cancelled", 0, 0)
    assert site.attempts(run, "a")[0].state == "provision_failed"
    assert site.states(run)["b"] == "active"
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_dispatch_without_names_hands_out_what_a_killed_one_had_chosen(
    site: Site, run, monkeypatch
):
    begin_and_die(site, run, monkeypatch)
    site.add(run, "b")

    named = site.scheduler.dispatch(run, task_names=["b"])
    tried = site.scheduler.dispatch(run, dry_run=True)
    assert (named.taken_over, tried.taken_over) == ((), ())
    assert site.attempts(run, "a")[0].state == "allocating"

    done = site.scheduler.dispatch(run)

    (item,) = done.taken_over
    assert (item["key"], item["state"], done.items) == ("a", "offered", ())
    assert site.worker.claim(item["thread"], mailboxes=["workers"]).thread.state == "claimed"
    assert site.open_intents(run) == []
    assert site.scheduler.dispatch(run).taken_over == ()


def test_a_dispatch_that_cannot_finish_what_was_begun_says_so(site: Site, run, monkeypatch):
    begin_and_die(site, run, monkeypatch)
    (attempt,) = site.attempts(run, "a")
    Path(str(attempt.worktree_path)).mkdir(parents=True)
    Path(str(attempt.worktree_path), "somebodys.txt").write_text("precious")

    done = site.scheduler.dispatch(run)

    assert done.degraded
    assert [(i["key"], i["state"]) for i in done.taken_over] == [("a", "provision_failed")]


def test_a_dispatch_leaves_what_another_is_making_now(site: Site, run, monkeypatch):
    seen = []

    def dispatch_too(*arguments):
        seen.append(site.leader().dispatch(run))

    monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.05)
    while_it_makes_the_worktree(monkeypatch, site.scheduler, dispatch_too)
    item = site.dispatch(run)["a"]

    assert [(done.items, done.taken_over) for done in seen] == [((), ())]
    assert item["state"] == "offered"


def test_a_repository_that_is_gone_fails_its_attempts_and_keeps_nothing_else(
    site: Site, run, monkeypatch
):
    site.add(run, "talk", worktree=False)
    begin_and_die(site, run, monkeypatch)
    away = site.folder / "away"
    site.repository.joinpath(".git").rename(away)

    site.scheduler.reconcile(run)

    assert site.attempts(run, "a")[0].state == "provision_failed"
    assert "is not the repository" in str(site.attempts(run, "a")[0].reason)
    assert site.attempts(run, "talk")[0].state == "offered"
    assert [i.attempt_id for i in site.open_intents(run)] == [site.attempts(run, "a")[0].id]
    assert site.scheduler.reconcile(run).finished_intents == 0

    away.rename(site.repository / ".git")
    assert site.scheduler.reconcile(run).finished_intents == 1
    assert site.open_intents(run) == []
    assert site.scheduler.reconcile(run).finished_intents == 0


def test_what_could_not_be_cleared_away_is_cleared_away_later(site: Site, run, monkeypatch):
    first = site.leader()
    away = site.folder / "away"

    def lose_the_repository():
        site.repository.joinpath(".git").rename(away)
        raise site_failure()

    while_it_makes_the_worktree(monkeypatch, first, lose_the_repository)
    assert first.dispatch(run).degraded
    away.rename(site.repository / ".git")
    assert len(branches(site.repository)) == 1

    assert site.scheduler.reconcile(run).finished_intents == 1

    assert branches(site.repository) == set()
    assert worktree_paths(site.repository) == set()
    assert site.open_intents(run) == []


# -- what a worker is told -------------------------------------------------------------------


def test_the_brief_is_in_the_thread_too(site: Site, run):
    item = site.dispatch(run)["a"]

    claimed = site.office.bus("w2").claim(item["thread"], mailboxes=["workers"])

    payload = json.loads(str(claimed.messages[0].payload))
    assert payload["brief"] == item["brief"]
    assert f"inbox claim {item['thread']}" in payload["brief"]


# -- what the rows guard ---------------------------------------------------------------------


def test_only_the_owner_of_an_intent_notes_closes_or_hands_it_on(site: Site, run):
    me = site.scheduler.database.owner()
    other, third = me._replace(process=4194303), me._replace(started=1)
    attempt = site.dispatch(run)["a"]["id"]
    with site.scheduler.database.transaction() as tx:
        connection, now_ms = tx, tx.now.wall_ms
        journal_rows.open_intent(
            connection, site.attempts(run, "a")[0], "cleanup", {}, owner=me, now_ms=now_ms
        )
        (intent,) = journal_rows.open_intents(connection, run.id)

        assert not journal_rows.owns_intent(connection, attempt, "cleanup", other)
        assert not journal_rows.note_in_intent(connection, attempt, "cleanup", {"x": 1}, other)
        assert not journal_rows.close_intent(connection, attempt, "cleanup", "done", other, now_ms)
        assert not journal_rows.take_over_intent(connection, intent.number, other, third)
        assert journal_rows.open_intents(connection, run.id) == [intent]

        assert journal_rows.take_over_intent(connection, intent.number, me, other)
        assert not journal_rows.take_over_intent(connection, intent.number, me, third)
        assert journal_rows.owns_intent(connection, attempt, "cleanup", other)
        assert journal_rows.note_in_intent(connection, attempt, "cleanup", {"x": 1}, other)
        assert journal_rows.close_intent(connection, attempt, "cleanup", "done", other, now_ms)
        assert not journal_rows.owns_intent(connection, attempt, "cleanup", other)


def test_only_the_owner_of_an_integration_notes_or_closes_it(site: Site, run):
    me = site.scheduler.database.owner()
    other = me._replace(started=1)
    with site.scheduler.database.transaction() as tx:
        connection, now_ms = tx, tx.now.wall_ms
        number = journal_rows.open_integration(
            connection, run_id=run.id, data={}, owner=me, now_ms=now_ms
        )

        assert not journal_rows.note_by_number(connection, number, {"x": 1}, other)
        assert not journal_rows.close_by_number(connection, number, "done", other, now_ms)
        assert journal_rows.note_by_number(connection, number, {"x": 1}, me)
        assert journal_rows.close_by_number(connection, number, "done", me, now_ms)
        assert not journal_rows.close_by_number(connection, number, "done", me, now_ms)


def test_a_change_for_a_state_that_has_passed_changes_nothing(site: Site, run):
    item = site.dispatch(run)["a"]
    with site.scheduler.database.transaction() as tx:
        changed = {"reason": "too late"}
        for update, name in ((attempts.update, item["id"]), (tasks.update, item["task"])):
            assert not update(tx, name, changed, expected_state="cancelled")
    assert site.attempts(run, "a")[0].reason is None
    assert site.task(run, "a").reason is None


def test_what_another_thread_of_this_process_is_making_is_not_waited_for(
    site: Site, run, monkeypatch
):
    """In a server one call dispatches while another waits for news, and both are one owner."""
    other, finished = site.leader(), []

    def fail(*arguments):
        raise AssertionError("it would wait until the other one has made it")

    def look():
        with monkeypatch.context() as patch:
            patch.setattr(provisioning, "provision", fail)
            finished.append(other.reconcile(run).finished_intents)

    while_it_makes_the_worktree(monkeypatch, site.scheduler, look)
    items = site.scheduler.dispatch(run).items

    assert finished == [0]
    assert [item["state"] for item in items] == ["offered"]


def test_a_process_is_known_by_its_number_its_start_and_its_boot(site: Site):
    """Its number alone may have been given out again."""
    me = site.scheduler.database.owner()

    def is_abandoned(owner) -> bool:
        intent = journal_rows.Intent(1, "run", "attempt", "dispatch", {}, site.clock.wall_ms, owner)
        return owners.is_abandoned(site.scheduler.desk, intent)

    assert not is_abandoned(me)
    for another in (me.started - 2, me.started + 2):  # ticks; one is lost by rounding
        assert is_abandoned(me._replace(started=another))
    assert is_abandoned(me._replace(boot_id="another boot"))
    assert is_abandoned(me._replace(process=4194303))
    assert not is_abandoned(me._replace(namespace=1, process=4194303))


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_what_cannot_be_seen_from_here_is_given_up_whichever_way_the_clock_was_set(
    site: Site, seconds
):
    foreign = site.scheduler.database.owner()._replace(namespace=1, process=4194303)
    begun = site.clock.wall_ms
    intent = journal_rows.Intent(1, "run", "attempt", "dispatch", {}, begun, foreign)

    site.clock.jump_wall(seconds)

    assert owners.is_abandoned(site.scheduler.desk, intent)


@pytest.mark.parametrize("code", ["disk_full", "read_only"])
def test_an_attempt_that_cannot_be_made_now_keeps_nothing_else_from_it(
    site: Site, run, monkeypatch, code
):
    site.add(run, "b")
    item = site.dispatch(run, "b")["b"]
    begin_and_die(site, run, monkeypatch)

    def refuse(*arguments):
        raise InboxOrchError(code, "the git directory cannot be written")

    only_for(monkeypatch, site.scheduler, provisioning, "provision", refuse)
    site.deliver(item, "b.txt")
    done = site.scheduler.reconcile(run)
    assert (done.finished_intents, site.states(run)) == (0, {"a": "active", "b": "succeeded"})

    monkeypatch.undo()
    assert site.scheduler.reconcile(run).finished_intents == 1
    assert site.attempts(run, "a")[0].state == "offered"


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(site: Site, run, monkeypatch):
    """Whoever held it before has removed the file; a third one would lock another file."""
    repository = site.scheduler.desk.repository(run)
    place = worktrees.Place("orch/x/t/a/1", str(site.worktrees / "a-1"), "0" * 40, "reason")
    path = site.repository / ".git" / "inbox-orch-orch-x-t-a-1.lock"
    acquire = worktrees._acquire

    def acquire_too_late(*arguments):
        monkeypatch.setattr(worktrees, "_acquire", acquire)
        acquire(*arguments)
        path.unlink()

    monkeypatch.setattr(worktrees, "_acquire", acquire_too_late)
    with worktrees.alone(repository, place) as hold:
        assert os.path.samestat(os.stat(path), os.fstat(hold.descriptor))
    assert not path.exists()
