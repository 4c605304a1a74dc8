"""On which commit an attempt starts, and when a dispatch is refused for it."""

import functools
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import choosing
from support.buses import refused
from support.runs import Site, commit, git, only_for, worktree_paths


def head_of(worktree: str | Path) -> str:
    return git(worktree, "rev-parse", "HEAD")


def two_that_conflict(site: Site, run):
    """`a` and `b` write the same file differently; `c` depends on both."""
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    items = site.dispatch(run)
    heads = [site.deliver(items[key], "same.txt", f"{key}\n") for key in ("a", "b")]
    site.scheduler.reconcile(run)
    return heads


def test_without_anything_the_base_is_head_at_the_dispatch(site: Site):
    run = site.open_run()
    site.add(run, "a")
    head = commit(site.repository, "later.txt", "later")

    item = site.dispatch(run)["a"]

    assert (item["base_commit"], item["base_ref"], item["base_source"]) == (head, "HEAD", "HEAD")
    assert head_of(item["worktree"]) == head
    assert git(item["worktree"], "status", "--porcelain") == ""


def test_the_runs_base_is_what_it_was_when_the_run_was_opened(site: Site):
    first = head_of(site.repository)
    run = site.open_run(base="main")
    site.add(run, "a")
    commit(site.repository, "later.txt", "later")

    item = site.dispatch(run)["a"]

    assert (item["base_commit"], item["base_ref"], item["base_source"]) == (first, "main", "run")


def test_an_option_goes_before_the_runs_base(site: Site):
    first = head_of(site.repository)
    git(site.repository, "tag", "v1")
    commit(site.repository, "later.txt", "later")
    run = site.open_run(base="main")
    site.add(run, "a")

    item = site.dispatch(run, base="v1")["a"]

    assert (item["base_commit"], item["base_ref"], item["base_source"]) == (first, "v1", "option")


@pytest.mark.parametrize("base", ["no-such-branch", "", "--all", "HEAD:README.md", "HEAD\x01"])
def test_a_base_that_names_no_commit_is_a_wrong_call(site: Site, base: str):
    run = site.open_run()
    site.add(run, "a")

    with refused("usage"):
        site.dispatch(run, base=base)
    with refused("usage"):
        site.open_run(base=base)
    assert site.states(run) == {"a": "ready"}


def test_head_is_that_of_the_worktree_in_which_it_was_said(site: Site):
    linked = site.folder / "linked"
    git(site.repository, "worktree", "add", "-q", "-b", "dev", str(linked))
    dev = commit(linked, "dev.txt", "dev")

    run = site.open_run(repository=linked, base="HEAD")
    site.add(run, "a", "b")

    assert run.repository == str(site.repository)
    assert run.base_commit == dev
    assert site.dispatch(run, "a", base="HEAD", within=str(linked))["a"]["base_commit"] == dev
    elsewhere = site.dispatch(run, "b", base="HEAD", within="/")["b"]
    assert elsewhere["base_commit"] == head_of(site.repository)


def test_one_dependency_gives_its_accepted_head(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")

    item = site.dispatch(run)["b"]

    assert (item["base_commit"], item["base_source"]) == (head, "task")
    assert Path(item["worktree"], "a.txt").exists()


def test_several_dependencies_are_merged_in_memory_and_kept(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    items = site.dispatch(run)
    heads = {site.deliver(items[key], f"{key}.txt") for key in ("a", "b")}
    before = head_of(site.repository)

    item = site.dispatch(run)["c"]

    assert item["base_source"] == "merge"
    parents = git(site.repository, "log", "-1", "--format=%P", item["base_commit"]).split()
    assert set(parents) == heads
    assert {p.name for p in Path(item["worktree"]).iterdir()} >= {"a.txt", "b.txt"}
    kept = git(site.repository, "rev-parse", f"refs/orch/base/{item['id']}")
    assert kept == item["base_commit"]
    author = git(site.repository, "log", "-1", "--format=%an %cn", item["base_commit"])
    assert author == "inbox-orch inbox-orch"
    assert head_of(site.repository) == before
    assert git(site.repository, "status", "--porcelain") == ""


def test_a_dependency_that_contains_the_other_needs_no_merge(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.add(run, "c", depends_on=["a", "b"])
    site.deliver(site.dispatch(run)["a"], "a.txt")
    head = site.deliver(site.dispatch(run)["b"], "b.txt")

    item = site.dispatch(run)["c"]

    assert (item["base_commit"], item["base_source"]) == (head, "task")


def test_code_dependencies_reach_through_tasks_without_a_worktree(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "review", depends_on=["a"], worktree=False)
    site.add(run, "c", depends_on=["review"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.done(site.dispatch(run)["review"])

    assert site.dispatch(run)["c"]["base_commit"] == head


def test_code_dependencies_count_over_any_edge(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.scheduler.add_dependency(run, "b", "a", "finished")
    head = site.deliver(site.dispatch(run)["a"], "a.txt")

    assert site.dispatch(run)["b"]["base_commit"] == head


def test_a_conflict_is_found_by_dispatch_and_shown_by_ready_and_status(site: Site):
    run = site.open_run()
    two_that_conflict(site, run)

    done = site.scheduler.dispatch(run)

    assert done.items == ()
    assert [(c["key"], c["paths"]) for c in done.conflicts] == [("c", ["same.txt"])]
    standing = site.standing(run, "c")
    assert (standing.state, standing.conflict_paths) == ("base_conflict", ("same.txt",))
    ready = site.scheduler.ready(run)
    assert ready.items == ()
    assert [s.task.key for s in ready.base_conflicts] == ["c"]
    assert site.scheduler.dispatch(run).conflicts == done.conflicts
    assert site.scheduler.status(run).outcome == "stuck"
    with refused("base_conflict"):
        site.dispatch(run, "c")


def test_a_base_merged_by_hand_overcomes_the_conflict(site: Site):
    run = site.open_run()
    heads = two_that_conflict(site, run)
    site.scheduler.dispatch(run)
    git(site.repository, "checkout", "-q", heads[0])
    git(site.repository, "merge", "-q", "-s", "ours", "-m", "By hand", heads[1])
    by_hand = head_of(site.repository)
    git(site.repository, "checkout", "-q", "main")

    item = site.dispatch(run, "c", base=by_hand)["c"]

    assert (item["state"], item["base_commit"]) == ("offered", by_hand)


def test_a_conflict_is_void_when_the_heads_change(site: Site):
    run = site.open_run()
    two_that_conflict(site, run)
    site.scheduler.dispatch(run)
    assert site.states(run)["c"] == "base_conflict"

    with site.scheduler.database.transaction() as tx:
        tx.run("UPDATE task SET accepted_head = ? WHERE key = 'b'", (head_of(site.repository),))

    assert site.states(run)["c"] == "ready"
    assert site.dispatch(run)["c"]["state"] == "offered"


def test_a_dry_run_stores_no_conflict_and_nothing_else(site: Site):
    run = site.open_run()
    two_that_conflict(site, run)
    site.add(run, "free")
    events = site.scheduler.status(run).next_cursor

    done = site.scheduler.dispatch(run, dry_run=True)

    assert [item["key"] for item in done.items] == ["free"]
    assert [item["state"] for item in done.items] == ["planned"]
    assert [c["key"] for c in done.conflicts] == ["c"]
    status = site.scheduler.status(run)
    assert status.next_cursor == events
    assert site.states(run)["c"] == "ready"


def test_a_conflict_leaves_its_slot_to_the_next_task(site: Site):
    run = site.open_run(max_parallel=2)
    two_that_conflict(site, run)
    site.add(run, "d", "e", priority=-1)

    assert set(site.dispatch(run)) == {"d", "e"}


def test_an_option_that_lacks_a_dependencys_work_is_refused(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    with refused("dep_not_in_base") as failure:
        site.dispatch(run, base="main")

    assert failure.value.details["missing"] == [head]
    assert site.dispatch(run, base=head)["b"]["state"] == "offered"


def test_a_base_of_unrelated_histories_is_refused_and_the_others_are_dispatched(site: Site):
    git(site.repository, "checkout", "-q", "--orphan", "other")
    other = commit(site.repository, "README.md", "Another beginning.\n")
    git(site.repository, "checkout", "-q", "main")
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    site.deliver(site.dispatch(run, "a")["a"], "a.txt")
    site.deliver(site.dispatch(run, "b", base=other)["b"], "b.txt")
    site.add(run, "d")

    assert set(site.dispatch(run)) == {"d"}

    with refused("git_failed") as failure:
        site.dispatch(run)
    assert failure.value.details["reason"] == "unrelated"


# -- what is not committed -------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, "status.showUntrackedFiles=no"])
def test_strict_mode_refuses_what_no_worker_would_see(site: Site, config: str | None):
    if config:
        git(site.repository, "config", *config.split("="))
    run = site.open_run()
    site.add(run, "a")
    (site.repository / "new.txt").write_text("untracked")
    (site.repository / "README.md").write_text("changed")

    with refused("dirty_repository") as failure:
        site.dispatch(run)

    assert sorted(failure.value.details["paths"]) == ["README.md", "new.txt"]
    assert failure.value.exit_code == 9
    assert site.states(run) == {"a": "ready"}


def test_allow_dirty_goes_without_the_changes_and_records_them(site: Site):
    run = site.open_run()
    site.add(run, "a")
    (site.repository / "new.txt").write_text("untracked")

    item = site.dispatch(run, allow_dirty=True)["a"]

    assert item["dirty_paths"] == ["new.txt"]
    assert not Path(item["worktree"], "new.txt").exists()


def test_an_explicit_base_needs_no_clean_repository_and_records_it(site: Site):
    run = site.open_run()
    site.add(run, "a")
    (site.repository / "new.txt").write_text("untracked")

    assert site.dispatch(run, base="main")["a"]["dirty_paths"] == ["new.txt"]


def test_a_dirty_path_that_is_not_utf8_is_told_escaped(site: Site):
    run = site.open_run()
    site.add(run, "a")
    Path(site.repository, b"caf\xe9.txt".decode("utf-8", "surrogateescape")).write_text("x")

    with refused("dirty_repository") as failure:
        site.dispatch(run)

    assert failure.value.details["paths"] == ["caf\\xe9.txt"]
    assert site.dispatch(run, allow_dirty=True)["a"]["dirty_paths"] == ["caf\\xe9.txt"]


def test_a_conflict_in_a_path_that_is_not_utf8_is_stored(site: Site):
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    items = site.dispatch(run)
    for key in ("a", "b"):
        site.deliver(items[key], name, f"{key}\n")

    site.scheduler.dispatch(run)

    assert site.standing(run, "c").conflict_paths == ("caf\\xe9.txt",)


def test_a_dirty_submodule_counts_as_dirty(site: Site):
    library = site.folder / "library"
    git(site.folder, "init", "-q", str(library))
    commit(library, "lib.txt", "lib")
    git(
        site.repository,
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib"),
    )
    git(site.repository, "commit", "-q", "-m", "Add a submodule")
    run = site.open_run()
    site.add(run, "a")
    (site.repository / "lib" / "lib.txt").write_text("changed")

    with refused("dirty_repository"):
        site.dispatch(run)


def test_a_worktree_of_a_repository_with_submodules_is_made_clean(site: Site):
    library = site.folder / "library"
    git(site.folder, "init", "-q", str(library))
    commit(library, "lib.txt", "lib")
    git(
        site.repository,
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib"),
    )
    git(site.repository, "commit", "-q", "-m", "Add a submodule")
    git(site.repository, "config", "submodule.recurse", "true")
    run = site.open_run()
    site.add(run, "a")

    item = site.dispatch(run)["a"]

    assert item["state"] == "offered", item["reason"]
    assert git(item["worktree"], "status", "--porcelain") == ""


def test_nothing_of_ours_makes_the_repository_dirty(site: Site):
    git(site.repository, "config", "branch.autoSetupMerge", "always")
    config = (site.repository / ".git" / "config").read_bytes()
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]

    assert git(site.repository, "status", "--porcelain", "--untracked-files=all") == ""
    assert (site.repository / ".git" / "config").read_bytes() == config
    assert worktree_paths(site.repository) == {item["worktree"]}


def test_head_and_dirtiness_are_those_of_the_working_tree_that_the_call_was_made_in(site: Site):
    run = site.open_run()
    site.add(run, "a")
    linked = site.repository.parent / "linked"
    git(site.repository, "worktree", "add", "--quiet", str(linked), "-b", "linked")
    head = commit(linked, "mine.txt", "mine")
    (linked / "unfinished.txt").write_text("x")

    with refused("dirty_repository") as failure:
        site.scheduler.dispatch(run, within=str(linked))
    assert failure.value.details["paths"] == ["unfinished.txt"]

    (linked / "unfinished.txt").unlink()
    (item,) = site.scheduler.dispatch(run, within=str(linked)).items
    assert (item["base_commit"], item["base_source"]) == (head, "HEAD")


def test_no_conflict_is_stored_of_a_task_that_was_cancelled_meanwhile(site: Site, monkeypatch):
    run = site.open_run()
    two_that_conflict(site, run)
    slow = site.leader()
    store = functools.partial(choosing._store_conflict, slow.desk)

    def store_late(*arguments):
        site.scheduler.cancel(run, ["c"])
        store(*arguments)

    only_for(monkeypatch, slow, choosing, "_store_conflict", store_late)
    slow.dispatch(run)

    with site.scheduler.database.snapshot() as snapshot:
        assert snapshot.one("SELECT count(*) FROM base_conflict")[0] == 0
    assert site.states(run)["c"] == "cancelled"
