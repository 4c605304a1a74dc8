"""`conflicts`: who will not merge with whom, before anyone has finished."""

import os
from pathlib import Path

import pytest

from support.engines import looking
from support.runs import Site, commit, git


@pytest.fixture
def run(site: Site):
    """Four attempts that are being worked on."""
    made = site.open_run()
    site.add(made, "a", "b", "c", "d")
    site.items = site.dispatch(made)  # type: ignore[attr-defined]
    return made


def tree(site: Site, key: str) -> Path:
    return Path(site.items[key]["worktree"])  # type: ignore[attr-defined]


def picture(site: Site, run) -> dict[tuple[str, str], tuple[list[str], list[str]]]:
    items = site.scheduler.conflicts(run).as_json()["items"]
    return {
        (i["one"]["key"], "integration" if i["other"] is None else i["other"]["key"]): (
            i["paths"],
            i["overlap"],
        )
        for i in items
    }


def test_two_that_have_committed_what_does_not_merge_are_told_before_they_finish(site, run):
    commit(tree(site, "a"), "same", "a\n")
    commit(tree(site, "b"), "same", "b\n")
    commit(tree(site, "c"), "c.txt", "c\n")

    found = site.scheduler.conflicts(run)

    assert picture(site, run) == {("a", "b"): (["same"], [])}
    assert (found.pairs, found.compared) == (3, 3)  # `d` has nothing yet
    assert {side.name for side in found.sides} == {"a/1", "b/1", "c/1", "d/1"}


def test_of_what_is_not_committed_the_common_names_are_told(site, run):
    (tree(site, "a") / "README.md").write_text("a\n")
    (tree(site, "b") / "README.md").write_text("b\n")
    (tree(site, "b") / "new").write_text("b\n")
    (tree(site, "c") / "new").write_text("c\n")
    (tree(site, "d") / "alone").write_text("d\n")

    assert picture(site, run) == {
        ("a", "b"): ([], ["README.md"]),
        ("b", "c"): ([], ["new"]),
    }
    assert git(tree(site, "b"), "status", "--porcelain") == " M README.md\n?? new"


def test_finished_work_counts_until_it_is_integrated_and_then_with_the_rest(site, run):
    site.deliver(site.items["a"], "same", "a\n")
    site.deliver(site.items["c"], "c.txt", "c\n")
    site.scheduler.reconcile(run)
    commit(tree(site, "b"), "same", "b\n")

    before = picture(site, run)
    site.scheduler.integrate(run)
    after = picture(site, run)

    assert before == {("a", "b"): (["same"], [])}
    assert after == {("b", "integration"): (["same"], [])}


def test_who_builds_on_the_other_is_in_no_conflict_with_it(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.deliver(site.dispatch(run)["a"], "same", "a\n")
    site.scheduler.reconcile(run)
    commit(site.dispatch(run)["b"]["worktree"], "same", "b\n")

    found = site.scheduler.conflicts(run)

    assert (found.items, found.pairs, len(found.sides)) == ((), 0, 2)


def test_looking_leaves_no_object_no_ref_and_no_event(site, run):
    commit(tree(site, "a"), "same", "a\n")
    commit(tree(site, "b"), "same", "b\n")
    site.scheduler.reconcile(run)
    count = "SELECT count(*) FROM event"
    events = looking(site.worker.database).only(count)[0]
    objects = git(site.repository, "count-objects", "-v")
    refs = git(site.repository, "for-each-ref")

    assert picture(site, run)

    assert git(site.repository, "count-objects", "-v") == objects
    assert git(site.repository, "for-each-ref") == refs
    assert looking(site.worker.database).only(count)[0] == events


def test_no_more_pairs_are_compared_than_asked_for_and_the_rest_is_counted(site, run):
    for key in "abcd":
        commit(tree(site, key), "same", f"{key}\n")

    found = site.scheduler.conflicts(run, most_pairs=2)

    assert (found.pairs, found.compared, len(found.items)) == (6, 2, 2)
    assert found.as_json()["truncated"] is True


def test_a_worktree_that_is_on_another_branch_counts_with_what_it_has(site, run):
    git(tree(site, "a"), "switch", "--quiet", "--detach")
    commit(tree(site, "a"), "same", "a\n")
    commit(tree(site, "b"), "same", "b\n")

    assert picture(site, run) == {("a", "b"): (["same"], [])}


def test_a_worktree_that_is_gone_is_left_out(site, run):
    commit(tree(site, "a"), "same", "a\n")
    commit(tree(site, "b"), "same", "b\n")
    os.rename(tree(site, "a"), site.folder / "elsewhere")

    found = site.scheduler.conflicts(run)

    assert {side.name for side in found.sides} == {"b/1", "c/1", "d/1"}
