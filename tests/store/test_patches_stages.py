"""Blueprints: what each stage has changed is judged as soon as it lies there; what is asked about
is asked once, before the work comes in."""

import pytest

from inbox_orch.orch.views import patches as views
from support.patches import Staged, disagreements
from support.runs import Site, commit, git
from support.stages import action, agent, gates, review


@pytest.fixture
def staged(site: Site):
    yield Staged(site, None)
    assert disagreements(site) == []


def test_what_comes_in_is_one_commit_of_the_tree_that_was_judged(staged: Staged):
    staged.open(agent("write", on_success="more"), agent("more"))
    staged.work(a_txt="one\n")
    staged.work("w2", b_txt="two\n", body="and b")

    repository, head = staged.site.repository, str(staged.attempt.head_commit)
    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "committed"), ("harvest", "committed")]
    assert git(repository, "rev-list", "--parents", "-1", head) == (
        f"{head} {staged.attempt.base_commit}"
    )
    assert git(repository, "log", "-1", "--format=%an|%s|%b", head).startswith("w2|Do a|and b")
    assert staged.changed() == ["a.txt", "b.txt"]
    paths = [
        each.patch.summary.paths for each in views.listed(staged.site.scheduler.desk, staged.run)
    ]
    assert paths == [("a.txt",), ("b.txt",)]


def test_what_the_policy_denies_is_put_back_and_the_next_text_says_why(staged: Staged):
    staged.open(agent("write", on_failure="write", max_visits=3))
    staged.work(a_txt="one\n", no_txt="no\n")

    assert staged.way() == [("write", "failed"), ("write", "live")]
    assert not (staged.worktree / "no.txt").exists()
    assert "policy: " in staged.text() and "no.txt" in staged.text(), staged.text()
    assert "forbid_paths" in staged.text()
    assert staged.patches() == [("harvest", "quarantined")]
    staged.work(a_txt="one\n")
    assert (staged.state, staged.patches()[1]) == ("succeeded", ("harvest", "committed"))
    assert staged.changed() == ["a.txt"]
    git(staged.site.repository, "gc", "-q", "--prune=now")
    refused = views.listed(staged.site.scheduler.desk, staged.run)[0].patch
    assert staged.changed(str(refused.head)) == ["a.txt", "no.txt"]


def test_several_visits_bring_in_no_more_than_one_may(staged: Staged):
    staged.open(agent("write", on_success="more"), agent("more", on_failure="more", max_visits=2))
    staged.work(a_txt="1\n2\n3\n")
    staged.work(b_txt="1\n2\n3\n")

    assert staged.way()[-2:] == [("more", "failed"), ("more", "live")]
    assert staged.patches() == [("harvest", "applied"), ("harvest", "quarantined")]


def test_what_is_asked_about_is_asked_once_at_the_end(staged: Staged):
    staged.open(
        agent("write", on_success="lint"),
        gates("lint", run="true", on_success="more"),
        agent("more"),
    )
    staged.work(ci_yml="on: push\n")
    assert staged.way()[-1] == ("more", "live")
    staged.work(a_txt="one\n")

    assert staged.way()[-1] == ("decision", "live")
    assert staged.patches() == [("harvest", "queued"), ("harvest", "queued")]
    staged.decide("approve")
    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "committed"), ("harvest", "committed")]


def test_what_is_taken_out_again_needs_no_approval(staged: Staged):
    staged.open(agent("write", on_success="more"), agent("more"))
    staged.work(ci_yml="on: push\n", a_txt="one\n")
    (staged.worktree / "ci.yml").unlink()
    staged.work(b_txt="two\n")

    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "dropped"), ("harvest", "committed")]
    assert staged.changed() == ["a.txt", "b.txt"]


def test_a_refusal_goes_the_way_of_a_failure_with_the_reason(staged: Staged):
    staged.open(agent("write", on_failure="write", max_visits=3))
    staged.work(ci_yml="on: push\n", a_txt="one\n")
    staged.decide("refuse", "leave the build alone")

    assert staged.way()[-1] == ("write", "live")
    assert "leave the build alone" in staged.text()
    assert staged.patches() == [("harvest", "quarantined")]
    (staged.worktree / "ci.yml").unlink()
    staged.work(b_txt="two\n")
    assert (staged.state, staged.changed()) == ("succeeded", ["a.txt", "b.txt"])


def test_nobody_approves_what_they_wrote_in_any_of_the_visits(staged: Staged):
    staged.open(agent("write", on_success="more"), agent("more"))
    staged.work("w1", ci_yml="on: push\n")
    staged.work("w2", a_txt="one\n")
    for name in ("w1", "w2"):
        with pytest.raises(Exception, match="cannot approve"):
            staged.decide("approve", by=name)
    staged.decide("approve")
    assert staged.state == "succeeded"


def test_to_accept_work_as_it_is_does_not_approve_of_it(staged: Staged):
    staged.open(agent("write", on_success="look"), gates("look", run="false", on_failure="pause"))
    staged.work(ci_yml="on: push\n")
    staged.decide("accept")

    assert (staged.state, staged.way()[-1]) == ("blocked", ("decision", "live"))
    staged.decide("approve")
    assert staged.state == "succeeded"
    assert "accepted by boss" in str(staged.attempt.details)


def test_what_somebody_changes_while_it_is_decided_is_judged_too(staged: Staged):
    staged.open(agent("write", approval="after"))
    staged.work(a_txt="one\n")
    (staged.worktree / "no.txt").write_text("no\n")
    staged.decide("approve")
    staged.decide("approve")

    assert staged.attempt.state == "rejected"
    assert "no.txt" in str(staged.attempt.reason)
    assert staged.patches()[-1] == ("harvest", "quarantined")


def test_what_gates_write_and_keep_is_a_patch_of_its_own(staged: Staged):
    form = {"name": "form", "run": "echo formed >>a.txt", "writes": "keep"}
    staged.open(agent("write", on_success="form"), gates("form"), gates=(form,))
    staged.work(a_txt="one\n")

    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "committed"), ("gate", "committed")]
    head = str(staged.attempt.head_commit)
    assert git(staged.site.repository, "show", f"{head}:a.txt") == "one\nformed"


def test_what_gates_write_and_may_not_is_put_back(staged: Staged):
    form = {"name": "form", "run": "test -s a.txt && echo no >no.txt; true", "writes": "keep"}
    staged.open(
        agent("write", on_success="form"),
        gates("form", on_failure="mend"),
        agent("mend"),
        gates=(form,),
    )
    staged.work(a_txt="one\n")

    assert staged.way()[-2:] == [("form", "failed"), ("mend", "live")]
    assert staged.patches() == [("harvest", "applied"), ("gate", "quarantined")]
    assert not (staged.worktree / "no.txt").exists()
    assert "policy: `forbid_paths` of the run: no.txt may not" in staged.text()


def test_what_an_action_applies_is_judged(staged: Staged):
    staged.open(
        agent("write", writes=False, on_success="apply"),
        action("apply", "apply_patch", on_failure="write"),
    )
    edits = [{"path": "no.txt", "content": "no\n"}]
    staged.work(payload={"edits": edits})
    assert staged.way()[-2][1] == "failed"
    assert not (staged.worktree / "no.txt").exists()
    assert staged.patches()[-1][1] == "quarantined"


def test_a_stage_is_held_to_a_policy_of_its_own_change(staged: Staged):
    own = {"policy": {"allow_paths": ["docs/"]}}
    staged.open(
        agent("write", on_success="docs"),
        agent("docs", on_failure="docs", max_visits=2, **own),
    )
    staged.work(a_txt="one\n")
    staged.work(b_txt="two\n")

    assert staged.way()[-2:] == [("docs", "failed"), ("docs", "live")]
    assert "stage docs" in staged.text()


def test_a_released_patch_comes_in_when_it_is_handed_in_again(staged: Staged):
    from inbox_orch.orch.leader import patches as deeds

    staged.open(agent("write", on_failure="write", max_visits=3))
    staged.work(a_txt="1\n2\n3\n4\n5\n")
    refused = views.listed(staged.site.scheduler.desk, staged.run)[0].patch
    desk = staged.site.leader("boss").desk
    deeds.release(desk, staged.run, refused, "max_lines", "a table")
    staged.work(a_txt="1\n2\n3\n4\n5\n")

    assert staged.state == "succeeded"
    assert staged.patches() == [("harvest", "quarantined"), ("harvest", "committed")]


def test_a_review_sees_only_what_may_come_in(staged: Staged):
    staged.open(
        agent("write", on_success="look", on_failure="write", max_visits=3),
        review("look"),
    )
    staged.work(no_txt="no\n", a_txt="one\n")
    assert staged.way()[-1] == ("write", "live")


def test_a_run_from_before_keeps_its_rules(staged: Staged):
    staged.open(agent("write"), policy=None)
    with staged.site.scheduler.database.transaction() as tx:
        tx.run("UPDATE run SET patches = 0")
    staged.run = staged.site.scheduler.run(staged.run.name)
    staged.work(ci_yml="on: push\n")

    head = str(staged.attempt.head_commit)
    assert (staged.state, staged.patches()) == ("succeeded", [])
    assert git(staged.worktree, "rev-parse", "HEAD") == head


def test_commits_that_a_worker_made_itself_are_not_in_what_comes_in(staged: Staged):
    staged.open(agent("write"))
    head = commit(staged.worktree, "a.txt", "key\n")
    commit(staged.worktree, "a.txt", "no key\n")
    staged.work()

    accepted = str(staged.attempt.head_commit)
    assert staged.state == "succeeded"
    assert head not in git(staged.site.repository, "rev-list", accepted).split()
    chain = git(staged.site.repository, "rev-list", f"refs/orch/attempts/{staged.attempt.id}")
    assert head in chain.split()
