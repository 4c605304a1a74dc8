"""The refs of snapshots prove nothing to clean-up: what only they have is lone work, and is kept as
ever. They go when all that they have is in a branch that stays."""

from pathlib import Path

import pytest

from inbox_orch.orch.git import snapshots, worktrees
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.runs.desk import place_of
from support.runs import Site, commit, git


@pytest.fixture
def run(site: Site):
    return site.open_run()


def dispatched(site: Site, run):
    site.add(run, "a")
    return site.dispatch(run)["a"]


def snapped(site: Site, item) -> snapshots.Snapshot:
    """A snapshot of what its worktree has now."""
    ref = snapshots.ref_of(item["id"])
    repository = Repository(str(site.repository))
    return snapshots.snapshot(repository, item["worktree"], [], ref, "A stage ended", None)


def refs_of(site: Site, item) -> list[str]:
    listed = git(site.repository, "for-each-ref", "--format=%(refname)", "refs/orch/attempts")
    return [ref for ref in listed.split("\n") if ref.endswith(item["id"])]


def ended(site: Site, run, item) -> None:
    site.fail(item, fatal=True)
    site.scheduler.reconcile(run)


def test_a_commit_that_else_only_a_snapshot_has_is_not_merged(site: Site, run):
    item = dispatched(site, run)
    commit(item["worktree"], "own.txt", "own\n")
    snapped(site, item)
    ended(site, run, item)

    (kept,) = site.scheduler.cleanup(run).items

    assert (kept.action, [r.code for r in kept.reasons]) == ("kept", ["unmerged_work"])
    assert Path(item["worktree"]).is_dir()


def test_a_merged_base_that_else_only_a_snapshot_has_is_not_elsewhere(site: Site, run):
    site.add(run, "a", "b")
    for item in site.dispatch(run).values():
        site.deliver(item, f"{item['key']}.txt")
    site.scheduler.reconcile(run)
    site.add(run, "c", depends_on=["a", "b"], max_attempts=1)
    item = site.dispatch(run)["c"]
    snapped(site, item)
    ended(site, run, item)

    items = {each.attempt.id: each for each in site.scheduler.cleanup(run).items}

    kept = items[item["id"]]
    assert (kept.action, [r.code for r in kept.reasons]) == ("kept", ["unmerged_work"])


def test_a_commit_that_was_taken_back_is_salvaged_although_a_snapshot_has_it(site: Site, run):
    item = dispatched(site, run)
    lone = commit(item["worktree"], "own.txt", "own\n")
    snapped(site, item)
    git(item["worktree"], "reset", "--quiet", "--hard", "HEAD~1")
    ended(site, run, item)

    site.scheduler.cleanup(run, force=True)

    salvage = f"refs/orch/salvage/{item['id']}"
    git(site.repository, "merge-base", "--is-ancestor", lone, salvage)
    assert refs_of(site, item) == [f"refs/orch/attempts/{item['id']}"]


def test_the_ref_goes_when_all_of_it_is_in_a_branch_that_stays(site: Site, run):
    item = dispatched(site, run)
    snapped(site, item)
    commit(item["worktree"], "own.txt", "own\n")
    snapped(site, item)
    site.done(item)
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)

    (gone,) = site.scheduler.cleanup(run).items

    assert gone.action == "removed"
    assert refs_of(site, item) == []
    assert f"refs/orch/attempts/{item['id']}" in [d.ref for d in gone.deleted_refs]


def test_the_ref_stays_with_what_is_nowhere_else(site: Site, run):
    item = dispatched(site, run)
    Path(item["worktree"], "tried.txt").write_text("tried\n")
    kept = snapped(site, item)
    Path(item["worktree"], "tried.txt").unlink()
    commit(item["worktree"], "own.txt", "own\n")
    site.done(item)
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)

    (gone,) = site.scheduler.cleanup(run).items

    assert gone.action == "removed"
    assert refs_of(site, item) == [f"refs/orch/attempts/{item['id']}"]
    assert git(site.repository, "show", f"{kept.commit}:tried.txt") == "tried"
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_staged_file_alone_keeps_the_ref(site: Site, run):
    item = dispatched(site, run)
    Path(item["worktree"], "README.md").write_text("staged\n")
    git(item["worktree"], "add", "README.md")
    Path(item["worktree"], "README.md").write_text(
        git(item["worktree"], "show", "HEAD:README.md") + "\n"
    )
    snapped(site, item)
    git(item["worktree"], "reset", "--quiet", "--hard")
    commit(item["worktree"], "own.txt", "own\n")
    site.done(item)
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)

    site.scheduler.cleanup(run)

    assert refs_of(site, item) == [f"refs/orch/attempts/{item['id']}"]


def test_a_snapshot_is_made_and_gone_back_to_in_the_attempts_lock(site: Site, run):
    item = dispatched(site, run)
    kept = snapped(site, item)
    commit(item["worktree"], "own.txt", "own\n")
    (attempt,) = site.attempts(run, "a")
    repository = Repository(str(site.repository))
    with worktrees.alone(repository, place_of(site.scheduler.desk, attempt)) as hold:
        before = snapshots.restore(repository, item["worktree"], hold, kept.commit, [])

    assert git(site.repository, "rev-parse", item["branch"]) == item["base_commit"]
    assert git(site.repository, "show", f"{before}:own.txt") == "own"
