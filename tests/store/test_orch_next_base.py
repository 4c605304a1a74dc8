"""Where a task is told to start: at the work of an earlier attempt, or where its work did not
merge."""

import pytest

from inbox_orch.orch.attempts import choosing
from support.buses import refused
from support.runs import Site, commit, git


@pytest.fixture
def run(site: Site):
    return site.open_run()


def told_to_start_at(site: Site, key: str, commit_id: str, source: str = "integration") -> None:
    with site.scheduler.database.transaction() as tx:
        tx.run(
            "UPDATE task SET next_base = ?, next_base_source = ? WHERE key = ?",
            (commit_id, source, key),
        )


def side_commit(site: Site, name: str, content: str = "text\n") -> str:
    """A commit on a branch beside `main`, which stays where it is."""
    git(site.repository, "switch", "--quiet", "--create", f"side-{name}", "main")
    made = commit(site.repository, name, content)
    git(site.repository, "switch", "--quiet", "main")
    return made


@pytest.mark.parametrize("source", ["integration", "attempt"])
def test_a_task_starts_where_it_is_told_to(site: Site, run, source: str):
    site.add(run, "a")
    start = side_commit(site, "start.txt")
    told_to_start_at(site, "a", start, source)

    item = site.dispatch(run)["a"]

    assert (item["base_commit"], item["base_source"]) == (start, source)
    assert git(item["worktree"], "rev-parse", "HEAD") == start


def test_what_the_task_depends_on_is_merged_in_where_it_is_not_there_yet(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    start = side_commit(site, "start.txt")
    told_to_start_at(site, "b", start)

    item = site.dispatch(run)["b"]

    assert item["base_source"] == "merge"
    for ancestor in (head, start):
        git(site.repository, "merge-base", "--is-ancestor", ancestor, item["base_commit"])
    assert git(site.repository, "rev-parse", f"refs/orch/base/{item['id']}") == item["base_commit"]


def test_a_start_that_contains_what_the_task_depends_on_is_taken_as_it_is(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    git(site.repository, "switch", "--quiet", "--create", "side", head)
    start = commit(site.repository, "more.txt", "more")
    told_to_start_at(site, "b", start)

    assert site.dispatch(run)["b"]["base_commit"] == start


def test_a_start_that_conflicts_with_a_dependency_is_a_conflict_until_it_changes(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.deliver(site.dispatch(run)["a"], "same.txt", "one\n")
    site.scheduler.reconcile(run)
    told_to_start_at(site, "b", side_commit(site, "same.txt", "two\n"))

    assert site.dispatch(run) == {}
    assert site.standing(run, "b").conflict_paths == ("same.txt",)
    told_to_start_at(site, "b", side_commit(site, "other.txt"))
    assert site.states(run)["b"] == "ready"


def test_an_option_goes_before_it_and_must_have_the_dependencies_only(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    told_to_start_at(site, "b", side_commit(site, "start.txt"))

    with refused("dep_not_in_base"):
        site.dispatch(run, base="main")
    item = site.dispatch(run, base=head)["b"]

    assert (item["base_commit"], item["base_source"]) == (head, "option")


def test_a_start_that_changes_while_attempts_are_chosen_is_chosen_anew(
    site: Site, run, monkeypatch
):
    site.add(run, "a")
    told_to_start_at(site, "a", side_commit(site, "first.txt"))
    later = side_commit(site, "later.txt")
    chosen, choose = [], choosing.choose

    def choose_and_be_overtaken(self, *args, **options):
        found = choose(self, *args, **options)
        if not chosen:
            told_to_start_at(site, "a", later)
        chosen.append(found)
        return found

    monkeypatch.setattr(choosing, "choose", choose_and_be_overtaken)

    assert site.dispatch(run)["a"]["base_commit"] == later
    assert len(chosen) == 2


def test_it_is_forgotten_once_an_attempt_has_been_accepted(site: Site, run):
    site.add(run, "a")
    told_to_start_at(site, "a", side_commit(site, "start.txt"))
    site.deliver(site.dispatch(run)["a"], "a.txt")

    site.scheduler.reconcile(run)

    task = site.task(run, "a")
    assert (task.state, task.next_base, task.next_base_source) == ("succeeded", None, None)


def test_it_holds_for_every_attempt_until_then(site: Site, run):
    site.add(run, "a")
    start = side_commit(site, "start.txt")
    told_to_start_at(site, "a", start)
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)
    site.clock.advance(3)

    assert site.dispatch(run)["a"]["base_commit"] == start
