"""Attempts without a blueprint: their change is a patch, and a policy has its say before anything
else does."""

from pathlib import Path

import pytest

from inbox_orch.orch.attempts import judge
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.runs.config import Config
from support.buses import refused
from support.patches import Plain, disagreements
from support.runs import Site, commit, git

ASKING = {"ask_paths": ["ci.yml"]}


@pytest.fixture
def plain(site: Site):
    yield Plain(site)
    assert disagreements(site) == []


IN = ["policy allowed", "apply applied", "acceptance accepted"]


def test_without_a_policy_the_change_is_recorded_and_the_work_accepted_as_it_is(plain: Plain):
    head = plain.open().handed_in(a_txt="one\n")
    plain.lead()

    assert (plain.attempt.state, plain.attempt.head_commit) == ("succeeded", head)
    (patch,) = plain.patches()
    assert (patch.name, patch.state, plain.said()) == ("a/1/1", "committed", IN)
    assert patch.patch.summary.paths == ("a.txt",)
    assert (patch.patch.author, patch.patch.way, patch.patch.head) == ("w1", "commits", head)
    assert git(plain.site.repository, "for-each-ref", "refs/orch/attempts") == ""


def test_what_breaks_the_floor_is_rejected_before_any_check_and_kept(plain: Plain):
    item = plain.open(checks=["touch checked; false"]) and plain.site.dispatch(plain.run)["a"]
    Path(item["worktree"], "out").symlink_to("/etc/passwd")
    head = commit(item["worktree"], "a.txt", "one\n")
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert str(plain.attempt.reason).startswith("policy: link_outside (floor): out leads out of")
    assert not Path(item["worktree"], "checked").exists()
    assert (plain.patches()[0].state, plain.said()) == ("quarantined", ["policy denied"])
    ref = f"refs/orch/attempts/{plain.attempt.id}"
    assert head in git(plain.site.repository, "rev-list", ref).split()


def test_a_run_from_before_is_neither_judged_nor_recorded(plain: Plain):
    plain.open()
    with plain.site.scheduler.database.transaction() as tx:
        tx.run("UPDATE run SET patches = 0")
    plain.run = plain.site.scheduler.run(plain.run.name)
    item = plain.site.dispatch(plain.run)["a"]
    Path(item["worktree"], "out").symlink_to("/etc/passwd")
    plain.site.deliver(item, "a.txt")
    plain.lead()

    assert (plain.attempt.state, plain.patches()) == ("succeeded", [])


def test_with_checks_the_tree_was_verified(plain: Plain):
    plain.open(checks=["true"]).handed_in(a_txt="one\n")
    plain.lead()

    assert plain.said() == [*IN[:2], "gates passed", IN[2]]


def test_a_patch_of_which_a_check_fails_is_dropped_with_its_attempt(plain: Plain):
    plain.open(checks=["false"]).handed_in(a_txt="one\n")
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert (plain.patches()[0].state, plain.said()) == ("dropped", [*IN[:2], "gates failed"])


# -- with a policy ---------------------------------------------------------------------------


@pytest.mark.parametrize("checks", [[], ["true"]])
def test_with_a_policy_the_judged_tree_is_accepted_and_nothing_of_its_history(
    plain: Plain, checks: list[str]
):
    plain.open({}, checks=checks)
    head = plain.handed_in(key_txt="one\n", a_txt="two\n")
    plain.lead()

    accepted, base = str(plain.attempt.head_commit), str(plain.attempt.base_commit)
    repository = plain.site.repository
    assert accepted != head
    assert git(repository, "rev-parse", f"{accepted}^{{tree}}") == git(
        repository, "rev-parse", f"{head}^{{tree}}"
    )
    assert git(repository, "rev-list", "--parents", "-1", accepted) == f"{accepted} {base}"
    assert git(repository, "log", "-1", "--format=%an %s", accepted) == "w1 Do a"
    assert git(repository, "rev-parse", f"refs/orch/heads/{plain.attempt.id}") == accepted
    assert plain.site.task(plain.run, "a").accepted_head == accepted
    kept = git(repository, "rev-list", f"refs/orch/attempts/{plain.attempt.id}").split()
    assert {head, accepted} <= set(kept)


def test_what_is_accepted_is_no_late_work(plain: Plain):
    plain.open({}).handed_in(a_txt="one\n")
    plain.lead()
    plain.lead()

    assert "late" not in str(plain.attempt.details)
    commit(plain.item["worktree"], "b.txt", "more\n")
    plain.lead()
    assert '"late": {' in str(plain.attempt.details)


def test_making_the_accepted_head_again_gives_the_same(plain: Plain):
    plain.open({}).handed_in(a_txt="one\n")
    from inbox_orch.orch.attempts import patches

    desk, task = plain.site.scheduler.desk, plain.site.task(plain.run, "a")
    plain.site.scheduler.status(plain.run)
    head = git(plain.item["worktree"], "rev-parse", "HEAD")
    first = patches.judge(desk, plain.run, task, plain.attempt, head)
    ref = f"refs/orch/attempts/{plain.attempt.id}"
    kept = git(plain.site.repository, "rev-parse", ref)
    plain.site.clock.advance(100)

    assert patches.judge(desk, plain.run, task, plain.attempt, head) == first
    assert git(plain.site.repository, "rev-parse", ref) == kept


def test_history_can_be_kept(plain: Plain):
    head = plain.open({"history": "keep"}).handed_in(a_txt="one\n")
    plain.lead()

    assert plain.attempt.head_commit == head


def test_a_secret_that_was_committed_and_taken_out_again_does_not_come_in(plain: Plain):
    text = f"key = 'AKIA{'Z' * 16}'\n"
    item = plain.open({"secrets": "deny"}) and plain.site.dispatch(plain.run)["a"]
    commit(item["worktree"], "a.txt", text)
    blob = git(item["worktree"], "rev-parse", "HEAD:a.txt")
    plain.site.deliver(item, "a.txt", "no key\n")
    plain.lead()

    kept = f"refs/orch/heads/{plain.attempt.id}"
    repository = plain.site.repository
    assert plain.attempt.state == "succeeded"
    assert blob not in git(repository, "rev-list", "--objects", kept)
    assert blob in git(repository, "rev-list", "--objects", "--all")


def test_what_the_policy_denies_is_rejected_with_the_rule_and_the_way_out(plain: Plain):
    plain.open({"max_files": 1}).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()

    assert plain.attempt.state == "rejected"
    said = "policy: `max_files` of the run: 2 files are changed, and at most 1 are let in; change"
    assert str(plain.attempt.reason).startswith(said)
    assert plain.patches()[0].state == "quarantined"
    assert plain.attempt.head_commit != plain.attempt.base_commit


def test_one_refused_patch_holds_up_no_other(plain: Plain):
    plain.open({"max_files": 1})
    plain.site.add(plain.run, "b")
    items = plain.site.dispatch(plain.run)
    commit(items["a"]["worktree"], "c.txt", "c\n")
    plain.site.deliver(items["a"], "d.txt")
    plain.site.deliver(items["b"], "e.txt")
    plain.lead()

    assert plain.site.states(plain.run)["b"] == "succeeded"
    assert plain.attempt.state == "rejected"


# -- asking ----------------------------------------------------------------------------------


def test_what_is_asked_about_waits_for_somebody_and_then_comes_in(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()

    assert (plain.attempt.state, plain.state) == ("blocked", "blocked")
    assert (plain.patches()[0].state, plain.said()) == ("queued", ["policy asked"])
    (question,) = plain.site.scheduler.questions(plain.run)
    decision = question.decision
    assert decision is not None and decision.answers == ("approve", "refuse", "abandon")
    assert "ci.yml" in decision.sentence and decision.patches == (plain.patches()[0].patch.id,)
    assert "ci.yml" in str(question.message.body) and "a/1/1" in str(question.message.body)

    plain.decide("approve", by="boss")
    assert (plain.attempt.state, plain.state) == ("succeeded", "succeeded")
    assert plain.patches()[0].state == "committed"
    assert plain.said() == ["policy asked", "approval approved", "apply applied", IN[2]]
    assert plain.patches()[0].entries[1].by == "boss"


def test_checks_run_before_anybody_is_asked(plain: Plain):
    plain.open(ASKING, checks=["true"]).handed_in(ci_yml="on: push\n")
    plain.lead()
    assert plain.attempt.state == "blocked"
    assert plain.attempt.details is not None and '"checks"' in plain.attempt.details

    plain.decide("approve", by="boss")
    assert plain.state == "succeeded"
    assert plain.said()[1:] == ["approval approved", "apply applied", "gates passed", IN[2]]


def test_nobody_is_asked_about_what_does_not_pass(plain: Plain):
    plain.open(ASKING, checks=["false"]).handed_in(ci_yml="on: push\n")
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert plain.patches()[0].state == "dropped"


def test_what_is_refused_is_rejected_and_tried_again_knowing_why(plain: Plain):
    plain.open(ASKING, max_attempts=2).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.decide("refuse", "not the build", by="boss")

    assert plain.attempt.state == "rejected"
    assert plain.attempt.reason == "policy: boss refuses it: not the build"
    assert plain.patches()[0].state == "quarantined"
    plain.site.clock.advance(3600)
    item = plain.site.dispatch(plain.run)["a"]
    assert "not the build" in str(plain.site.scheduler.bus.messages(item["thread"])[0].body)


def test_whoever_wrote_it_cannot_approve_of_it(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    with refused("policy_denied"):
        plain.decide("approve", by="w1")
    assert plain.attempt.state == "blocked"

    item = {"thread": plain.attempt.thread_id, "mailbox": "operator"}
    token = plain.site.claim(item)
    plain.site.worker.done(item["thread"], token, body='{"answer": "approve"}')
    plain.lead()
    assert (plain.attempt.state, plain.patches()[0].state) == ("blocked", "queued")
    assert plain.attempt.thread_id != item["thread"]


def test_as_many_as_the_policy_says_have_to_approve_each_by_its_own_name(plain: Plain):
    plain.open({**ASKING, "min_reviewers": 2}).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.decide("approve", by="boss")
    assert (plain.attempt.state, plain.patches()[0].state) == ("blocked", "queued")
    (question,) = plain.site.scheduler.questions(plain.run)
    assert "1 of 2" in str(question.decision and question.decision.sentence)

    with refused("invalid_state"):
        plain.decide("approve", by="boss")
    plain.decide("approve", by="other")
    assert plain.state == "succeeded"
    assert plain.said()[1:3] == ["approval given", "approval approved"]


def test_who_refuses_between_two_approvals_is_heard(plain: Plain):
    plain.open({**ASKING, "min_reviewers": 2}, max_attempts=1).handed_in(ci_yml="on: push\n")
    plain.lead()
    (asked,) = plain.patches()
    for name, deed in (("ada", deeds.approve), ("bob", deeds.refuse)):
        deed(plain.site.leader(name).desk, plain.run, asked.patch, "not so")
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert str(plain.attempt.reason) == "policy: bob refuses it: not so"
    assert len(plain.patches()) == 1


def test_what_is_approved_is_what_comes_in_whatever_lies_there_by_then(plain: Plain):
    head = plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    commit(plain.item["worktree"], "other.txt", "unseen\n")
    plain.decide("approve", by="boss")

    repository = plain.site.repository
    accepted = str(plain.attempt.head_commit)
    assert plain.state == "succeeded"
    assert git(repository, "diff", "--name-only", head, accepted) == ""


def test_an_answer_of_abandon_ends_the_task(plain: Plain):
    plain.open(ASKING, max_attempts=3).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.decide("abandon", by="boss")

    assert (plain.attempt.state, plain.state) == ("failed", "failed")


def test_the_slot_is_given_back_while_somebody_decides(site: Site):
    run = site.open_run(config=Config(policy=ASKING), max_parallel=1)
    site.add(run, "a", "b")
    item = site.dispatch(run)["a"]
    site.deliver(item, "ci.yml")
    site.scheduler.reconcile(run)

    assert list(site.dispatch(run)) == ["b"]


def test_an_attempt_that_waits_can_be_cancelled(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.site.scheduler.cancel(plain.run, ["a"])

    assert plain.state == "cancelled"
    assert plain.patches()[0].state == "dropped"


def test_only_who_may_verify_it_judges_it(plain: Plain):
    plain.open(ASKING, checks=["true"]).handed_in(ci_yml="on: push\n")
    plain.site.scheduler.status(plain.run)
    other = plain.site.leader()
    judge.check_next(other.desk, plain.run)
    plain.lead()
    other.reconcile(plain.run)

    assert plain.attempt.state == "blocked"
    assert plain.said() == ["policy asked"]


# -- from where it is judged ------------------------------------------------------------------


def test_who_goes_on_from_refused_work_is_judged_by_all_of_it(plain: Plain):
    plain.open({"forbid_paths": ["bad.txt"]}, max_attempts=1)
    plain.handed_in(bad_txt="x\n")
    plain.lead()
    plain.site.scheduler.retry(plain.run, ["a"], from_attempt=1)
    plain.handed_in(a_txt="one\n")
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "bad.txt may not be changed" in str(plain.attempt.reason)


def test_what_is_accepted_of_it_stands_on_the_base_of_the_first(plain: Plain):
    plain.open({"forbid_paths": ["bad.txt"]}, max_attempts=1)
    plain.handed_in(bad_txt="x\n", a_txt="one\n")
    plain.lead()
    (refused_one,) = plain.patches()
    plain.site.scheduler.retry(plain.run, ["a"], from_attempt=1)
    item = plain.site.dispatch(plain.run)["a"]
    git(item["worktree"], "rm", "--quiet", "bad.txt")
    git(item["worktree"], "commit", "--quiet", "--message", "Without it")
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "succeeded"
    parents = git(plain.site.repository, "rev-parse", f"{plain.attempt.head_commit}^@")
    assert parents == refused_one.patch.base
    assert plain.patches()[1].patch.summary.paths == ("a.txt",)


def test_who_goes_on_from_refused_work_and_does_nothing_is_judged_too(plain: Plain):
    plain.open({"forbid_paths": ["bad.txt"]}, max_attempts=1, allow_empty=True)
    plain.handed_in(bad_txt="x\n")
    plain.lead()
    plain.site.scheduler.retry(plain.run, ["a"], from_attempt=1)
    plain.handed_in()
    plain.lead()

    assert plain.attempt.state == "rejected"


def test_who_goes_on_from_refused_work_is_judged_by_it_with_a_dependency_done_anew(plain: Plain):
    site = plain.site
    policy = {"forbid_paths": ["bad.txt"], "max_files": 2}
    plain.run = site.open_run(config=Config(policy=policy))
    site.add(plain.run, "b")
    site.add(plain.run, "a", depends_on=["b"], max_attempts=1)
    site.deliver(site.dispatch(plain.run)["b"], "b.txt", "one\n")
    plain.lead()
    plain.handed_in(bad_txt="x\n")
    plain.lead()
    site.scheduler.retry(plain.run, ["b"], force=True)
    site.deliver(site.dispatch(plain.run)["b"], "b2.txt", "two\n")
    plain.lead()
    site.scheduler.retry(plain.run, ["a"], from_attempt=1)
    plain.handed_in(a_txt="one\n")
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "bad.txt may not be changed" in str(plain.attempt.reason)
    of_a = [each for each in plain.patches() if each.patch.attempt_id == plain.attempt.id]
    # What was done anew is no part of it.
    assert of_a[0].patch.summary.paths == ("a.txt", "bad.txt")


def test_an_object_that_is_replaced_by_another_is_what_its_name_says(plain: Plain):
    item = plain.open({"forbid_paths": ["bad.txt"]}) and plain.site.dispatch(plain.run)["a"]
    base = git(item["worktree"], "rev-parse", "HEAD")
    good = commit(item["worktree"], "a.txt", "x\n")
    git(item["worktree"], "reset", "--quiet", "--hard", base)
    bad = commit(item["worktree"], "bad.txt", "x\n")
    git(item["worktree"], "update-ref", "HEAD", good)
    git(item["worktree"], "replace", good, bad)
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert str(plain.attempt.reason).startswith("dirty: ")


def test_refused_work_is_no_base_where_dispatch_is_called_in_its_worktree(plain: Plain):
    plain.open({"forbid_paths": ["bad.txt"]}, max_attempts=1)
    plain.handed_in(bad_txt="x\n")
    plain.lead()
    plain.site.scheduler.retry(plain.run, ["a"])
    plain.site.dispatch(plain.run, within=plain.item["worktree"])

    first, second = plain.site.attempts(plain.run, "a")
    assert (second.base_source, second.base_commit) == ("HEAD", first.base_commit)


def test_refused_work_comes_in_by_no_integration_that_is_begun_in_its_worktree(plain: Plain):
    site = plain.site
    plain.run = site.open_run(config=Config(policy={"forbid_paths": ["bad.txt"]}))
    site.add(plain.run, "a", "b", max_attempts=1)
    items = site.dispatch(plain.run)
    site.deliver(items["b"], "bad.txt")
    site.deliver(items["a"], "a.txt")
    plain.lead()
    site.scheduler.integrate(plain.run, within=items["b"]["worktree"])

    branch = f"orch/{plain.run.name}/integration"
    assert git(site.repository, "ls-tree", "--name-only", branch).split() == ["README.md", "a.txt"]
