"""Single tasks: cancelled, skipped, retried, reassigned, and edges taken away."""

import functools
import json
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import fold as folding
from inbox_orch.orch.attempts import work
from inbox_orch.orch.git import worktrees
from inbox_orch.orch.runs.model import Limits
from inbox_orch.shared.store import events
from support.buses import refused
from support.runs import Site, commit, git, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


def newest(site: Site, run, key: str = "a"):
    return site.attempts(run, key)[-1]


def failed_for_good(site: Site, run, key: str = "a", body: str = "it does not work"):
    item = site.dispatch(run, key)[key]
    site.fail(item, body=body, fatal=True)
    site.scheduler.reconcile(run)
    return item


# -- cancel ----------------------------------------------------------------------------------


def test_a_pending_task_is_cancelled_at_once_and_what_waits_for_it_is_unreachable(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])

    done = site.scheduler.cancel(run, ["a"])

    assert ([t.state for t in done.tasks], done.already, done.ending) == (["cancelled"], (), ())
    assert site.states(run) == {"a": "cancelled", "b": "unreachable"}
    assert site.standing(run, "b").because == ("a",)
    assert site.scheduler.cancel(run, ["a"]).already == ("a",)


def test_a_cancelled_worker_learns_of_it_and_its_task_ends_then(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)

    done = site.scheduler.cancel(run, ["a"])

    assert done.ending == ("a",)
    assert (newest(site, run).state, newest(site, run).ending_as) == ("ending", "cancelled")
    assert site.states(run) == {"a": "active"}
    for call in ("renew", "update", "done"):
        with refused("cancelled"):
            extra = {} if call == "renew" else {"body": "late"}
            getattr(site.worker, call)(item["thread"], token, **extra)
    site.scheduler.reconcile(run)
    assert (newest(site, run).state, site.states(run)["a"]) == ("cancelled", "cancelled")
    assert site.task(run, "a").work_failures == 0


def test_an_attempt_that_nobody_holds_is_cancelled_at_once(site: Site, run):
    site.add(run, "a")
    site.dispatch(run)

    assert site.scheduler.cancel(run, ["a"]).ending == ()
    assert site.states(run) == {"a": "cancelled"}


def test_a_blocked_task_is_cancelled_and_its_question_is_closed(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    site.worker.ask(item["thread"], site.claim(item), body="which?")

    site.scheduler.cancel(run, ["a"])

    assert site.scheduler.questions(run) == []
    assert site.task(run, "a").state == "active"


def test_work_that_is_submitted_can_be_cancelled(site: Site, run):
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    folding.fold(site.scheduler.desk, run)

    site.scheduler.cancel(run, ["a"])

    assert (newest(site, run).state, site.states(run)["a"]) == ("cancelled", "cancelled")


def test_an_attempt_that_runs_out_of_time_can_be_cancelled_for_good(site: Site, run):
    site.add(run, "a", limits=Limits(run_seconds=10))
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(11)
    folding.fold(site.scheduler.desk, run)
    assert newest(site, run).ending_as == "timed_out"

    assert site.scheduler.cancel(run, ["a"]).already == ()
    assert site.scheduler.cancel(run, ["a"]).already == ("a",)
    with refused("cancelled"):
        site.worker.renew(item["thread"], token)
    site.scheduler.reconcile(run)

    assert newest(site, run).state == "cancelled"
    assert (site.states(run)["a"], site.task(run, "a").work_failures) == ("cancelled", 0)
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_failure_that_was_not_folded_yet_comes_first_and_its_task_is_cancelled(
    site: Site, run, monkeypatch
):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    fold = folding.fold
    calls = []

    def fail_after_the_first(self, run):
        found = fold(self, run)
        if not calls:
            site.fail(item)
        calls.append(run)
        return found

    monkeypatch.setattr(folding, "fold", fail_after_the_first)
    site.scheduler.cancel(run, ["a"])

    assert (newest(site, run).state, site.task(run, "a").state) == ("failed", "cancelled")


@pytest.mark.parametrize("verb", ["cancel", "skip"])
def test_what_is_final_is_left_alone(site: Site, run, verb: str):
    site.add(run, "a", "b")
    failed_for_good(site, run)

    with refused("invalid_state"):
        getattr(site.scheduler, verb)(run, ["b", "a"])

    assert site.states(run) == {"a": "failed", "b": "ready"}, "all of it or none"


def test_an_attempt_that_another_leader_is_making_is_busy(site: Site, run, monkeypatch):
    site.add(run, "a")
    other = site.leader()
    make = functools.partial(work.prepare, other.desk)
    codes = []

    def cancel_meanwhile(*arguments):
        for verb, more in (("cancel", ()), ("reassign", ("others",))):
            with refused("busy") as failure:
                getattr(site.scheduler, verb)(run, ["a"], *more)
            codes.append(failure.value.retryable)
        return make(*arguments)

    only_for(monkeypatch, other, work, "prepare", cancel_meanwhile)
    monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.05)
    other.dispatch(run)

    assert codes == [True, True]
    assert newest(site, run).state == "offered"


# -- skip ------------------------------------------------------------------------------------


def test_what_waits_for_a_skipped_task_may_start(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])

    site.scheduler.skip(run, ["a"])

    assert site.states(run) == {"a": "skipped", "b": "ready"}
    assert site.scheduler.skip(run, ["a"]).already == ("a",)
    site.deliver(site.dispatch(run)["b"], "b.txt")
    site.scheduler.reconcile(run)
    assert site.scheduler.status(run).outcome == "succeeded"


def test_what_runs_is_not_skipped(site: Site, run):
    site.add(run, "a")
    site.dispatch(run)

    with refused("invalid_state") as failure:
        site.scheduler.skip(run, ["a"])
    assert "cancel" in failure.value.hint


# -- retry -----------------------------------------------------------------------------------


def test_a_retry_revives_what_depends_on_it_with_the_same_task_and_fresh_budgets(site: Site, run):
    site.add(run, "a", max_attempts=2)
    site.add(run, "b", depends_on=["a"])
    site.add(run, "c", depends_on=["b"])
    for _ in range(2):
        site.fail(site.dispatch(run)["a"])
        site.scheduler.reconcile(run)
        site.clock.advance(200)
    assert site.states(run) == {"a": "failed", "b": "unreachable", "c": "unreachable"}
    before = site.task(run, "a")

    site.scheduler.retry(run, ["a"])

    task = site.task(run, "a")
    assert (task.id, task.state, task.attempts) == (before.id, "pending", 2)
    assert (task.work_failures, task.infra_failures) == (0, 0)
    assert site.states(run) == {"a": "ready", "b": "waiting", "c": "waiting"}
    item = site.dispatch(run)["a"]
    assert item["number"] == 3
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded", "b": "ready", "c": "waiting"}


@pytest.mark.parametrize("policy", ["fail-fast", "abort"])
def test_a_retry_of_the_failed_task_lets_a_strict_run_go_on(site: Site, policy: str):
    run = site.open_run(on_failure=policy)
    site.add(run, "a", "b")
    failed_for_good(site, run)
    assert site.states(run)["b"] == "unreachable"

    site.scheduler.retry(run, ["a"])

    assert site.states(run) == {"a": "ready", "b": "ready"}


def test_several_tasks_are_retried_at_once_or_none(site: Site, run):
    site.add(run, "a", "b", "c")
    site.scheduler.cancel(run, ["a", "b"])

    with refused("invalid_state"):
        site.scheduler.retry(run, ["a", "b", "c"])
    assert site.states(run) == {"a": "cancelled", "b": "cancelled", "c": "ready"}
    assert len(site.scheduler.retry(run, ["a", "b", "a"]).tasks) == 2
    assert set(site.states(run).values()) == {"ready"}


def test_a_succeeded_task_is_done_over_again_only_by_force(site: Site, run):
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    with refused("invalid_state") as failure:
        site.scheduler.retry(run, ["a"])
    assert "--force" in failure.value.hint
    site.scheduler.retry(run, ["a"], force=True)

    task = site.task(run, "a")
    assert (task.state, task.accepted_attempt, task.accepted_head) == ("pending", None, None)
    first = site.attempts(run, "a")[0]
    kept = site.scheduler.desk.repository(run).ref_commit(f"refs/orch/heads/{first.id}")
    assert kept == first.head_commit
    site.deliver(site.dispatch(run)["a"], "again.txt")
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded"}
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_task_that_is_tried_again_by_itself_needs_no_retry(site: Site, run):
    site.add(run, "a")
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)

    with refused("invalid_state"):
        site.scheduler.retry(run, ["a"])


def test_a_retry_goes_on_from_an_attempt_and_tells_what_it_came_to(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    head = commit(item["worktree"], "half.txt", "half\n")
    site.worker.fail(item["thread"], token, body="the grammar is ambiguous", fatal=True)
    site.scheduler.reconcile(run)

    site.scheduler.retry(run, ["a"], from_attempt=1)

    task = site.task(run, "a")
    assert (task.next_base, task.next_base_source) == (head, "attempt")
    second = site.dispatch(run)["a"]
    assert (second["base_commit"], second["base_source"]) == (head, "attempt")
    text = site.worker.claim(second["thread"], mailboxes=["workers"]).messages[0].body
    assert "the grammar is ambiguous" in text
    assert "half.txt" in text
    assert git(site.repository, "rev-parse", item["branch"]) == head


def test_it_goes_on_from_what_a_worker_committed_after_its_end(site: Site, run):
    site.add(run, "a")
    item = failed_for_good(site, run)
    late = commit(item["worktree"], "late.txt", "late\n")

    site.scheduler.retry(run, ["a"], from_attempt=1)

    assert site.task(run, "a").next_base == late


def test_it_goes_on_from_the_head_that_was_seen_when_the_worker_left_its_branch(site: Site, run):
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    git(item["worktree"], "switch", "--quiet", "--detach")
    head = commit(item["worktree"], "half.txt", "half\n")
    (site.folder / "worktrees" / run.name / "a-1" / "dirt.txt").write_text("dirt")
    site.done(item)
    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "failed"}

    steered = site.scheduler.retry(run, ["a"], from_attempt=1)

    assert site.task(run, "a").next_base == head
    assert steered.left_behind == ("dirt.txt",)


def test_after_a_clean_up_it_goes_on_from_the_head_and_the_worker_is_told_of_the_rest(
    site: Site, run
):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    head = commit(item["worktree"], "half.txt", "half\n")
    (Path(item["worktree"]) / "loose.txt").write_text("not committed\n")
    site.worker.fail(item["thread"], token, body="it does not work", fatal=True)
    site.scheduler.reconcile(run)
    site.scheduler.cleanup(run, force=True)
    assert not Path(item["worktree"]).exists()

    steered = site.scheduler.retry(run, ["a"], from_attempt=1)

    assert (site.task(run, "a").next_base, steered.left_behind) == (head, ("loose.txt",))
    second = site.dispatch(run)["a"]
    text = site.worker.claim(second["thread"], mailboxes=["workers"]).messages[0].body
    restore = next(line for line in text.splitlines() if "git restore" in line)
    words = restore.partition("git ")[2].replace("PATH", "loose.txt").split()
    git(second["worktree"], *words)
    assert (Path(second["worktree"]) / "loose.txt").read_text() == "not committed\n"


def test_a_retry_without_it_starts_anew(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "half.txt", "half\n")
    site.fail(item, fatal=True)
    site.scheduler.reconcile(run)
    site.scheduler.retry(run, ["a"], from_attempt=1)
    site.scheduler.cancel(run, ["a"])

    site.scheduler.retry(run, ["a"])

    assert site.task(run, "a").next_base is None
    assert site.dispatch(run)["a"]["base_source"] == "HEAD"


def test_an_attempt_to_go_on_from_must_be_one_of_the_task_and_have_a_commit(site: Site, run):
    site.add(run, "a", "b")
    site.add(run, "notes", worktree=False)
    for key in ("a", "notes"):
        failed_for_good(site, run, key)
    site.scheduler.cancel(run, ["b"])

    with refused("not_found"):
        site.scheduler.retry(run, ["a"], from_attempt=2)
    with refused("not_found"):
        site.scheduler.retry(run, ["b"], from_attempt=1)
    with refused("usage"):
        site.scheduler.retry(run, ["a", "b"], from_attempt=1)
    with refused("usage"):
        site.scheduler.retry(run, ["notes"], from_attempt=1)
    git(
        site.repository, "worktree", "remove", "--force", "--force", newest(site, run).worktree_path
    )
    git(site.repository, "branch", "--quiet", "-D", newest(site, run).branch)
    with refused("invalid_state"):
        site.scheduler.retry(run, ["a"], from_attempt=1)
    assert site.states(run) == {"a": "failed", "b": "cancelled", "notes": "failed"}


# -- reassign --------------------------------------------------------------------------------


def test_a_pending_task_goes_to_the_other_mailbox(site: Site, run):
    site.add(run, "a")

    assert site.scheduler.reassign(run, ["a"], "others").already == ()
    assert site.scheduler.reassign(run, ["a"], "others").already == ("a",)

    assert site.dispatch(run)["a"]["mailbox"] == "others"


def test_a_task_that_is_with_a_worker_is_taken_back_and_counts_nothing(site: Site, run):
    site.add(run, "a", max_attempts=1, max_infra_attempts=1)
    first = site.dispatch(run)["a"]
    token = site.claim(first)

    done = site.scheduler.reassign(run, ["a"], "others")

    assert done.ending == ("a",)
    assert site.states(run) == {"a": "active"}
    assert site.dispatch(run) == {}, "no second attempt before the first has ended"
    with refused("cancelled"):
        site.worker.renew(first["thread"], token)
    site.scheduler.reconcile(run)
    task = site.task(run, "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 0, 0)
    assert site.states(run) == {"a": "ready"}, "without a back-off"
    second = site.dispatch(run)["a"]
    assert (second["mailbox"], second["number"]) == ("others", 2)
    text = site.office.bus("w2").claim(second["thread"], mailboxes=["others"]).messages[0].body
    assert "reassigned to others" in text
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_task_that_nobody_has_claimed_is_taken_back_at_once(site: Site, run):
    site.add(run, "a")
    first = site.dispatch(run)["a"]

    assert site.scheduler.reassign(run, ["a"], "others").ending == ()

    assert site.states(run) == {"a": "ready"}
    assert newest(site, run).state == "cancelled"
    assert site.worker.show(first["thread"], mailboxes=["workers"]).thread.state == "cancelled"


def test_reassigned_to_where_it_is_nothing_happens(site: Site, run):
    site.add(run, "a")
    site.dispatch(run)

    assert site.scheduler.reassign(run, ["a"], "workers").already == ("a",)
    assert newest(site, run).state == "offered"


def test_one_that_ends_to_be_tried_again_goes_to_the_other_mailbox_then(site: Site, run):
    site.add(run, "a", limits=Limits(run_seconds=10))
    item = site.dispatch(run)["a"]
    token = site.claim(item, lease_seconds=3600)
    site.clock.advance(11)
    folding.fold(site.scheduler.desk, run)

    site.scheduler.reassign(run, ["a"], "others")
    with refused("cancelled"):
        site.worker.renew(item["thread"], token)
    site.scheduler.reconcile(run)

    assert (newest(site, run).state, site.task(run, "a").work_failures) == ("timed_out", 1)
    site.clock.advance(3)
    assert site.dispatch(run)["a"]["mailbox"] == "others"


def test_what_is_submitted_or_being_cancelled_is_not_reassigned(site: Site, run):
    site.add(run, "a", "b")
    items = site.dispatch(run)
    site.deliver(items["a"], "a.txt")
    site.claim(items["b"])
    site.scheduler.cancel(run, ["b"])

    for key in ("a", "b"):
        with refused("invalid_state"):
            site.scheduler.reassign(run, [key], "others")


def test_one_that_was_reassigned_can_be_cancelled_for_good(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    token = site.claim(item)
    site.scheduler.reassign(run, ["a"], "others")

    assert site.scheduler.cancel(run, ["a"]).already == ()
    with refused("cancelled"):
        site.worker.renew(item["thread"], token)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "cancelled"}


def test_a_mailbox_must_have_a_name(site: Site, run):
    site.add(run, "a")

    with refused("usage"):
        site.scheduler.reassign(run, ["a"], "no such name")


# -- dep remove ------------------------------------------------------------------------------


def test_a_task_waits_no_more_for_what_it_was_freed_of(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])

    done = site.scheduler.remove_dependency(run, "b", "a")

    assert (done["dependency"]["key"], done["dependency"]["condition"]) == ("b", "success")
    assert site.states(run) == {"a": "ready", "b": "ready"}
    assert site.scheduler.doctor(verify=True).problems == 0
    with site.scheduler.database.snapshot() as snapshot:
        kinds = [
            e.kind
            for e in events.after(snapshot, 0, limit=100, matching=events.Matching(run_id=run.id))
        ]
    assert kinds[-1] == "dependency_removed"
    site.scheduler.add_dependency(run, "a", "b")
    assert site.scheduler.doctor(verify=True).problems == 0


def test_an_edge_that_is_not_there_and_one_of_a_started_task_stay(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.dispatch(run)

    with refused("not_found"):
        site.scheduler.remove_dependency(run, "a", "b")
    with refused("invalid_state"):
        site.scheduler.remove_dependency(run, "b", "a")


# -- task show -------------------------------------------------------------------------------


def test_a_task_is_shown_with_its_edges_attempts_and_question(site: Site, run):
    site.add(run, "before")
    site.deliver(site.dispatch(run)["before"], "before.txt")
    site.scheduler.reconcile(run)
    site.add(run, "a", depends_on=["before"], body="Do it.")
    site.add(run, "after", depends_on=["a"])
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)
    site.clock.advance(10)
    item = site.dispatch(run)["a"]
    site.worker.ask(item["thread"], site.claim(item), body="which?")

    shown = site.scheduler.show_task(run, "a").as_json()

    assert json.loads(json.dumps(shown)) == shown
    assert (shown["task"]["key"], shown["task"]["standing"]) == ("a", "blocked")
    assert shown["body"] == "Do it."
    assert [(e["key"], e["verdict"]) for e in shown["depends_on"]] == [("before", "met")]
    assert [(e["key"], e["verdict"]) for e in shown["dependents"]] == [("after", "open")]
    assert [a["state"] for a in shown["attempts"]] == ["failed", "blocked"]
    assert shown["question"]["message"]["body"] == "which?"
