"""What people say of patches that were refused or are asked about: release, approve, give up; and
what adopting and clean-up make of them."""

import os

import pytest

from inbox_orch.orch.leader import patches as deeds
from support.buses import refused
from support.patches import Plain, disagreements
from support.runs import Site, commit, git

TWO = {"max_files": 1}
ASKING = {"ask_paths": ["ci.yml"]}


@pytest.fixture
def plain(site: Site):
    yield Plain(site)
    assert disagreements(site) == []


@pytest.fixture
def refused_one(plain: Plain) -> Plain:
    """Two files where one is allowed, and no further try."""
    plain.open(TWO, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    assert plain.patches()[0].state == "quarantined"
    return plain


def say(plain: Plain, deed, *words: str, by: str = "boss", number: int = 0):
    desk = plain.site.leader(by).desk
    return deed(desk, plain.run, plain.patches()[number].patch, *words)


# -- releasing -------------------------------------------------------------------------------


def test_what_was_refused_cannot_be_adopted(refused_one: Plain):
    with refused("work_rejected"):
        refused_one.site.scheduler.adopt(refused_one.run, "a")

    assert [each.state for each in refused_one.patches()] == ["quarantined"]
    assert refused_one.said() == ["policy denied"]


def test_what_is_released_comes_in_once_as_a_patch_that_replaces_the_refused_one(
    refused_one: Plain,
):
    said = say(refused_one, deeds.release, "max_files", "both belong together")
    assert (said.state, said.denied_by) == ("quarantined", ())
    refused_one.site.scheduler.adopt(refused_one.run, "a")

    first, second = refused_one.patches()
    assert (first.state, second.state) == ("quarantined", "committed")
    assert second.patch.replaces == first.patch.id
    assert refused_one.said(0) == ["policy denied", "waiver given", "waiver used"]
    assert refused_one.state == "succeeded"
    head = str(refused_one.site.task(refused_one.run, "a").accepted_head)
    names = git(refused_one.site.repository, "diff", "--name-only", f"{head}^", head)
    assert names.split() == ["a.txt", "b.txt"]


def test_a_release_counts_for_that_tree_alone(refused_one: Plain):
    say(refused_one, deeds.release, "max_files", "both belong together")
    commit(refused_one.item["worktree"], "c.txt", "three\n")
    with refused("work_rejected"):
        refused_one.site.scheduler.adopt(refused_one.run, "a")

    assert [each.state for each in refused_one.patches()] == ["quarantined"] * 2


def test_every_rule_that_denies_it_has_to_be_released(plain: Plain):
    policy = {"max_files": 1, "forbid_paths": ["b.txt"]}
    plain.open(policy, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    assert say(plain, deeds.release, "max_files", "so").denied_by == ("forbid_paths",)
    with refused("work_rejected"):
        plain.site.scheduler.adopt(plain.run, "a")
    assert say(plain, deeds.release, "forbid_paths", "so").denied_by == ()
    assert say(plain, deeds.release, "forbid_paths", "so").denied_by == ()
    plain.site.scheduler.adopt(plain.run, "a")

    assert plain.state == "succeeded"
    assert plain.said(0).count("waiver given") == 2


def test_a_release_needs_a_rule_that_was_broken_a_reason_and_somebody_else(refused_one: Plain):
    with refused("usage"):
        say(refused_one, deeds.release, "max_lines", "so")
    with refused("usage"):
        say(refused_one, deeds.release, "max_files", " ")
    with refused("policy_denied"):
        say(refused_one, deeds.release, "max_files", "so", by="w1")
    assert refused_one.said() == ["policy denied"]


def test_nobody_releases_what_breaks_the_floor(plain: Plain):
    item = plain.open(max_attempts=1) and plain.site.dispatch(plain.run)["a"]
    os.symlink("/etc/passwd", os.path.join(item["worktree"], "out"))
    plain.site.deliver(item, "a.txt")
    plain.lead()
    with refused("policy_denied"):
        say(plain, deeds.release, "link_outside", "so")
    with refused("work_rejected"):
        plain.site.scheduler.adopt(plain.run, "a")


# -- approving and giving up -----------------------------------------------------------------


def test_a_patch_that_is_asked_about_is_approved_by_its_name(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    with refused("policy_denied"):
        say(plain, deeds.approve, by="w1")
    assert say(plain, deeds.approve).missing == 0
    with refused("invalid_state"):
        say(plain, deeds.approve, by="other")
    plain.lead()

    assert (plain.state, plain.patches()[0].state) == ("succeeded", "committed")


def test_a_patch_that_is_asked_about_is_refused_by_its_name(plain: Plain):
    plain.open(ASKING, max_attempts=1).handed_in(ci_yml="on: push\n")
    plain.lead()
    assert say(plain, deeds.refuse, "not now").state == "quarantined"
    plain.lead()

    assert (plain.state, plain.attempt.reason) == ("failed", "policy: boss refuses it: not now")
    with refused("invalid_state"):
        say(plain, deeds.approve)


def test_what_is_refused_while_its_checks_are_to_be_run_does_not_come_in(plain: Plain):
    plain.open(ASKING, checks=["true"], max_attempts=1).handed_in(ci_yml="on: push\n")
    plain.site.scheduler.reconcile(plain.run, checks=False)
    assert (plain.attempt.state, plain.patches()[0].state) == ("submitted", "queued")
    say(plain, deeds.refuse, "not now")
    plain.lead()

    assert (plain.state, plain.attempt.reason) == ("failed", "policy: boss refuses it: not now")
    assert plain.patches()[0].state == "quarantined"


def test_what_is_asked_about_is_adopted_once_it_is_approved(plain: Plain):
    plain.open(ASKING, checks=["false"], max_attempts=1).handed_in(ci_yml="on: push\n")
    plain.lead()
    with refused("approval_needed"):
        plain.site.scheduler.adopt(plain.run, "a", checks=False)
    say(plain, deeds.approve)
    plain.site.scheduler.adopt(plain.run, "a", checks=False)

    assert (plain.state, plain.patches()[0].state) == ("succeeded", "committed")


def test_what_was_released_is_adopted_once_the_rest_of_it_is_approved(plain: Plain):
    """The release counts for the patch that waits, and for no other one."""
    policy = {"forbid_paths": ["b.txt"], **ASKING}
    plain.open(policy, max_attempts=1).handed_in(b_txt="one\n", ci_yml="on: push\n")
    plain.lead()
    plain.site.clock.advance(1)
    say(plain, deeds.release, "forbid_paths", "so")
    with refused("approval_needed"):
        plain.site.scheduler.adopt(plain.run, "a")
    assert [each.state for each in plain.patches()] == ["quarantined", "queued"]
    with refused("approval_needed"):
        plain.site.scheduler.adopt(plain.run, "a")
    say(plain, deeds.approve, number=1)
    plain.site.scheduler.adopt(plain.run, "a")

    assert [each.state for each in plain.patches()] == ["quarantined", "committed"]
    assert plain.said(0) == ["policy denied", "waiver given", "waiver used"]


def test_what_is_refused_can_be_given_up_and_nothing_of_it_is_lost(refused_one: Plain):
    assert say(refused_one, deeds.drop, "done anew").state == "dropped"
    assert say(refused_one, deeds.drop).state == "dropped"
    with refused("invalid_state"):
        say(refused_one, deeds.release, "max_files", "so")

    patch = refused_one.patches()[0].patch
    git(refused_one.site.repository, "gc", "-q", "--prune=now")
    assert git(refused_one.site.repository, "cat-file", "-t", str(patch.head)) == "commit"


@pytest.mark.parametrize("policy, state", [(None, "committed"), (ASKING, "queued")])
def test_what_is_under_way_or_accepted_is_not_given_up(plain: Plain, policy, state: str):
    plain.open(policy).handed_in(ci_yml="on: push\n")
    plain.lead()
    with refused("invalid_state"):
        say(plain, deeds.drop)
    assert plain.patches()[0].state == state


# -- clean-up --------------------------------------------------------------------------------


def test_a_worktree_goes_once_the_commit_that_was_made_of_its_tree_is_integrated(plain: Plain):
    plain.open({}).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    before = plain.site.scheduler.cleanup(plain.run)
    assert [item.action for item in before.items] == ["kept"]

    plain.site.scheduler.integrate(plain.run)
    onto = f"orch/{plain.run.name}/integration"
    git(plain.site.repository, "checkout", "-q", onto)
    commit(plain.site.repository, "a.txt", "other lines\n")
    done = plain.site.scheduler.cleanup(plain.run)

    assert [item.action for item in done.items] == ["removed"]
    heads = git(plain.site.repository, "for-each-ref", "--format=%(objectname)").split()
    kept = git(plain.site.repository, "rev-list", *heads).split()
    assert str(plain.patches()[0].patch.head) in kept


def test_what_came_after_the_judged_tree_keeps_the_worktree(plain: Plain):
    plain.open({}).handed_in(a_txt="one\n")
    plain.lead()
    plain.site.scheduler.integrate(plain.run)
    commit(plain.item["worktree"], "more.txt", "more\n")

    done = plain.site.scheduler.cleanup(plain.run)
    assert [item.action for item in done.items] == ["kept"]


def test_a_ref_of_ours_proves_of_no_refused_work_that_it_is_elsewhere(refused_one: Plain):
    done = refused_one.site.scheduler.cleanup(refused_one.run)

    assert [item.action for item in done.items] == ["kept"]
    assert {reason.code for reason in done.items[0].reasons} == {"unmerged_work"}


def written_and_given_back(plain: Plain, name: str, content: str) -> None:
    """w1 writes a file and hands the thread back; w2 hands in what lies there."""
    item = plain.site.dispatch(plain.run)["a"]
    w1 = plain.site.office.bus("w1")
    token = str(w1.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token)
    commit(item["worktree"], name, content)
    w1.release(item["thread"], token)
    w2 = plain.site.office.bus("w2")
    token = str(w2.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token)
    w2.done(item["thread"], token, body="done")
    plain.lead()


def test_who_gave_it_back_does_not_approve_it(plain: Plain):
    plain.open(ASKING)
    written_and_given_back(plain, "ci.yml", "on: push\n")
    with refused("policy_denied"):
        say(plain, deeds.approve, by="w1")


def test_who_wrote_what_it_goes_on_from_does_not_approve_it(plain: Plain):
    plain.open(ASKING, max_attempts=1)
    plain.handed_in(ci_yml="on: push\n")
    plain.lead()
    say(plain, deeds.refuse, "no")
    plain.lead()
    plain.site.scheduler.retry(plain.run, ["a"], from_attempt=1)
    item = plain.site.dispatch(plain.run)["a"]
    commit(item["worktree"], "a.txt", "x\n")
    w2 = plain.site.office.bus("w2")
    token = str(w2.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token)
    w2.done(item["thread"], token, body="done")
    plain.lead()
    with refused("policy_denied"):
        say(plain, deeds.approve, by="w1", number=1)


def test_who_never_handed_it_in_does_not_approve_it(plain: Plain):
    plain.open(ASKING, max_attempts=1)
    item = plain.site.dispatch(plain.run)["a"]
    w1 = plain.site.office.bus("w1")
    token = str(w1.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token)
    commit(item["worktree"], "ci.yml", "on: push\n")
    plain.site.scheduler.cancel(plain.run, ["a"])
    with refused("cancelled"):
        w1.release(item["thread"], token)
    plain.lead()
    with refused("approval_needed"):
        plain.site.scheduler.adopt(plain.run, "a")
    with refused("policy_denied"):
        say(plain, deeds.approve, by="w1")


def test_who_gave_it_back_does_not_release_it(plain: Plain):
    plain.open({"forbid_paths": ["bad.txt"]}, max_attempts=1)
    written_and_given_back(plain, "bad.txt", "x\n")
    with refused("policy_denied"):
        say(plain, deeds.release, "forbid_paths", "so", by="w1")
