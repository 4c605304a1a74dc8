"""Bringing accepted work together on a branch of the run, and what does not merge."""

import contextlib
import functools
import json
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import provision
from inbox_orch.orch.git import integrating as git_integrating
from inbox_orch.orch.git import worktrees
from inbox_orch.orch.integration import branch, integrate
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.shared.store.gate import Gate
from support.buses import refused
from support.engines import looking
from support.runs import Site, commit, git, only_for
from support.timing import PATIENCE_SECONDS


def accept(site: Site, run, **files: dict[str, str]) -> dict[str, str]:
    """Dispatch the ready tasks named, deliver a file each (`key={name: content}`), and accept the
    work; the heads by key."""
    items = site.dispatch(run, *files)
    heads = {}
    for key, content in files.items():
        for name, text in content.items():
            heads[key] = commit(items[key]["worktree"], name, text)
        site.done(items[key])
    site.scheduler.reconcile(run)
    assert {site.standing(run, key).state for key in files} == {"succeeded"}
    return heads


def write_by_hand(site: Site, statement: str) -> None:
    """Write into the database by hand."""
    with site.worker.database.transaction() as tx:
        tx.run(statement)


def states_of(done) -> dict[str, str]:
    return {item["key"]: item["state"] for item in done.as_json()["items"]}


def tip_of(site: Site, run) -> str:
    return git(site.repository, "rev-parse", f"refs/heads/{branch_of(run)}")


def names_in(site: Site, commit_id: str) -> set[str]:
    return set(git(site.repository, "ls-tree", "-r", "--name-only", commit_id).split("\n"))


@pytest.fixture
def pair(site: Site):
    """Two tasks whose accepted work changes one file each in its own way, and one that fits."""
    run = site.open_run()
    site.add(run, "a", "b", "c")
    heads = accept(site, run, a={"same": "a\n"}, b={"same": "b\n"}, c={"c.txt": "c\n"})
    return run, heads


# -- merging ---------------------------------------------------------------------------------


def test_accepted_work_comes_together_in_the_order_of_the_dependencies(site: Site):
    run = site.open_run()
    site.add(run, "last")
    site.add(run, "first", "second")
    site.scheduler.add_dependency(run, "last", "first")
    heads = accept(site, run, first={"1.txt": "1\n"}, second={"2.txt": "2\n"})
    heads |= accept(site, run, last={"3.txt": "3\n"})
    before = git(site.repository, "rev-parse", "HEAD")

    done = site.scheduler.integrate(run)

    assert states_of(done) == {"first": "merged", "second": "merged", "last": "merged"}
    order = [item["key"] for item in done.as_json()["items"]]
    assert order.index("first") < order.index("last")
    tip = tip_of(site, run)
    assert done.tip == tip
    assert names_in(site, tip) == {"README.md", "1.txt", "2.txt", "3.txt"}
    merges = git(site.repository, "log", "--first-parent", "--format=%s|%an|%cn", tip).split("\n")
    assert sorted(merges[:3]) == [
        "Integrate first: Do first|inbox-orch|inbox-orch",
        "Integrate last: Do last|inbox-orch|inbox-orch",
        "Integrate second: Do second|inbox-orch|inbox-orch",
    ]
    for head in heads.values():
        git(site.repository, "merge-base", "--is-ancestor", head, tip)
    assert git(site.repository, "rev-parse", "HEAD") == before
    assert git(site.repository, "status", "--porcelain") == ""
    git(site.repository, "fsck", "--strict")


def test_what_is_in_already_is_not_merged_again(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    accept(site, run, a={"a.txt": "a\n"})
    first = site.scheduler.integrate(run)
    accept(site, run, b={"b.txt": "b\n"})

    second = site.scheduler.integrate(run)
    third = site.scheduler.integrate(run)

    assert states_of(second) == {"b": "merged"}
    assert (second.plan.before, second.plan.already) == (first.tip, 1)
    assert (states_of(third), third.tip, third.plan.already) == ({}, second.tip, 2)
    assert git(site.repository, "rev-list", "--count", "--merges", str(third.tip)) == "2"


def test_with_nothing_accepted_no_branch_is_made(site: Site):
    run = site.open_run()
    site.add(run, "a")

    done = site.scheduler.integrate(run)

    assert (states_of(done), done.tip, done.plan.before) == ({}, None, None)
    assert git(site.repository, "for-each-ref", "refs/heads/orch") == ""
    assert site.open_intents(run) == []


def test_a_dry_run_tells_the_same_and_changes_nothing(site: Site, pair):
    run, _ = pair
    site.scheduler.reconcile(run)
    refs = git(site.repository, "for-each-ref")
    events = looking(site.worker.database).only("SELECT count(*) FROM event")[0]

    told = site.scheduler.integrate(run, onto="main", dry_run=True)

    assert git(site.repository, "for-each-ref") == refs
    after = looking(site.worker.database).only("SELECT count(*) FROM event")[0]
    assert after == events
    done = site.scheduler.integrate(run, onto="main")
    assert (told.tip, told.plan) == (done.tip, done.plan)
    assert told.onto == done.onto


def test_the_run_s_base_is_where_merging_begins(site: Site):
    base = git(site.repository, "rev-parse", "HEAD")
    run = site.open_run(base="main")
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    commit(site.repository, "later.txt", "later\n")

    done = site.scheduler.integrate(run)

    assert done.plan.start == base
    assert "later.txt" not in names_in(site, str(done.tip))


# -- conflicts -------------------------------------------------------------------------------


def test_a_conflict_goes_back_to_its_task_and_the_others_go_on(site: Site, pair):
    run, heads = pair

    done = site.scheduler.integrate(run)

    assert states_of(done) == {"a": "merged", "b": "conflict", "c": "merged"}
    assert names_in(site, str(done.tip)) == {"README.md", "same", "c.txt"}
    old, new = site.attempts(run, "b")
    assert json.loads(str(old.conflict)) == {"onto": done.tip, "paths": ["same"]}
    assert (old.state, new.state) == ("succeeded", "offered")
    assert (new.base_commit, new.base_source) == (done.tip, "integration")
    assert new.mailbox == old.mailbox
    item = next(i for i in done.as_json()["items"] if i["key"] == "b")
    assert (item["paths"], item["offered"]) == (["same"], new.id)
    text = site.worker.messages(str(new.thread_id))[0].body
    assert text is not None
    assert "conflict in: same" in text
    assert f"git merge {heads['b']}" in text
    assert str(old.branch) in text
    assert site.standing(run, "b").state == "active"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_conflict_is_told_until_it_is_resolved_or_called_off(site: Site, pair, dry_run: bool):
    run, _ = pair
    (offered,) = site.scheduler.integrate(run).dispatched

    again = site.scheduler.integrate(run, dry_run=dry_run)
    assert states_of(again) == {"b": "conflict"}
    (item,) = again.as_json()["items"]
    assert (item["number"], item["paths"], item["offered"]) == (1, ["same"], offered["id"])
    assert (again.moved, again.dispatched, again.tip) == (False, (), again.plan.before)

    site.fail(offered)
    site.scheduler.reconcile(run)
    (item,) = site.scheduler.integrate(run, dry_run=dry_run).as_json()["items"]
    assert (item["state"], item["offered"]) == ("conflict", None)

    site.scheduler.cancel(run, ["b"])
    assert states_of(site.scheduler.integrate(run, dry_run=dry_run)) == {}


def test_a_conflict_that_was_resolved_is_told_no_more_when_its_task_is_done_anew(site: Site, pair):
    run, _ = pair
    (item,) = site.scheduler.integrate(run).dispatched
    commit(item["worktree"], "same", "a and b, without a merge\n")
    site.done(item)
    site.scheduler.reconcile(run)
    assert states_of(site.scheduler.integrate(run)) == {"b": "merged"}

    site.scheduler.retry(run, ["b"], force=True)
    assert states_of(site.scheduler.integrate(run)) == {}


def test_a_conflict_whose_resolution_has_not_come_in_is_told_still(site: Site, pair):
    run, _ = pair
    site.add(run, "b2", depends_on=["b"])
    item = site.dispatch(run, "b2")["b2"]
    site.deliver(item, "b2.txt", "2\n")
    site.scheduler.reconcile(run)
    (item,) = site.scheduler.integrate(run).dispatched
    commit(item["worktree"], "same", "a and b, without a merge\n")
    site.done(item)
    site.scheduler.reconcile(run)

    site.scheduler.retry(run, ["b"], force=True)
    again = site.scheduler.integrate(run)
    assert states_of(again) == {"b": "conflict", "b2": "held_back"}


def test_a_conflict_that_has_come_in_by_hand_is_told_no_more(site: Site, pair):
    run, heads = pair
    done = site.scheduler.integrate(run)
    tree = site.folder / "by-hand"
    git(site.repository, "worktree", "add", "--quiet", str(tree), branch_of(run))
    git(tree, "merge", "--quiet", "--strategy-option", "ours", heads["b"])
    assert git(tree, "rev-parse", "HEAD") != done.tip

    assert states_of(site.scheduler.integrate(run)) == {}


def test_the_resolved_work_comes_in_next_time(site: Site, pair):
    run, heads = pair
    (item,) = site.scheduler.integrate(run).dispatched
    git(item["worktree"], "merge", heads["b"], status=1)
    head = commit(item["worktree"], "same", "a and b\n")
    site.done(item)
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    assert states_of(done) == {"b": "merged"}
    assert git(site.repository, "show", f"{done.tip}:same") == "a and b"
    git(site.repository, "merge-base", "--is-ancestor", heads["b"], str(done.tip))
    git(site.repository, "merge-base", "--is-ancestor", head, str(done.tip))
    assert site.task(run, "b").next_base is None
    assert site.scheduler.doctor(verify=True).problems == 0
    git(site.repository, "fsck", "--strict")


def test_what_builds_on_conflicting_work_is_held_back_and_no_other_worker_is_asked(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "b2", "b3", depends_on=["b"])
    site.add(run, "after-b3", depends_on=["b3"])
    site.add(run, "waits", depends_on=["b"], worktree=False)
    accept(site, run, a={"same": "a\n"}, b={"same": "b\n"})
    accept(site, run, b2={"b2.txt": "2\n"}, b3={"b3.txt": "3\n"})
    accept(site, run, **{"after-b3": {"b4.txt": "4\n"}})
    assert site.standing(run, "waits").state == "ready"

    first = site.scheduler.integrate(run)
    again = site.scheduler.integrate(run)

    held = {"b2": "held_back", "b3": "held_back", "after-b3": "held_back"}
    assert states_of(first) == {"a": "merged", "b": "conflict", **held}
    assert states_of(again) == {"b": "conflict", **held}
    because = {i["key"]: tuple(i["because"]) for i in again.as_json()["items"]}
    assert because == {"b": (), **dict.fromkeys(held, ("b",))}
    assert [len(site.attempts(run, key)) for key in ("b", "b2", "b3", "after-b3")] == [2, 1, 1, 1]
    assert (site.standing(run, "waits").state, site.standing(run, "waits").because) == (
        "waiting",
        ("b",),
    )

    item = provision.handed_out(site.scheduler.desk, run, site.attempts(run, "b")[1])
    git(item["worktree"], "merge", str(site.attempts(run, "b")[0].head_commit), status=1)
    commit(item["worktree"], "same", "both\n")
    site.done(item)
    site.scheduler.reconcile(run)
    last = site.scheduler.integrate(run)

    assert set(states_of(last).values()) == {"merged"}
    assert names_in(site, str(last.tip)) >= {"same", "b2.txt", "b3.txt", "b4.txt"}
    git(site.repository, "fsck", "--strict")


def test_a_conflict_that_was_resolved_for_a_base_is_not_asked_for_again(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    site.add(run, "d", depends_on=["b"])
    heads = accept(site, run, a={"same": "a\n"}, b={"same": "b\n"})
    heads |= accept(site, run, d={"d.txt": "d\n"})
    by_hand = site.folder / "by-hand"
    git(site.repository, "worktree", "add", "--quiet", "--detach", str(by_hand), heads["a"])
    git(by_hand, "merge", heads["b"], status=1)
    base = commit(by_hand, "same", "both\n")
    item = site.dispatch(run, "c", base=base)["c"]
    site.deliver(item, "c.txt")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    assert states_of(done) == dict.fromkeys("abcd", "merged")
    assert done.dispatched == ()
    tip = str(done.tip)
    assert git(site.repository, "show", f"{tip}:same") == "both"
    assert names_in(site, tip) >= {"c.txt", "d.txt"}
    for head in heads.values():
        git(site.repository, "merge-base", "--is-ancestor", head, tip)


def test_work_done_anew_makes_what_was_built_on_the_old_one_conflict_by_itself(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["b"])
    accept(site, run, a={"same": "a\n"}, b={"same": "b\n"})
    accept(site, run, c={"c.txt": "c\n"})
    (item,) = site.scheduler.integrate(run).dispatched
    site.deliver(item, "same", "something else\n")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    assert states_of(done) == {"b": "merged", "c": "conflict"}


def test_a_paused_run_opens_no_attempt_for_a_conflict(site: Site, pair):
    run, _ = pair
    write_by_hand(site, "UPDATE run SET state = 'paused'")

    done = site.scheduler.integrate(site.scheduler.run(run.name))

    assert (done.dispatched, done.undispatched) == ((), None)
    assert site.task(run, "b").state == "pending"
    write_by_hand(site, "UPDATE run SET state = 'open'")
    item = site.dispatch(site.scheduler.run(run.name), "b")["b"]
    assert (item["base_commit"], item["base_source"]) == (done.tip, "integration")


def test_a_conflict_waits_for_a_free_slot_and_then_starts_from_the_newest_tip(site: Site):
    run = site.open_run(max_parallel=3)
    site.add(run, "a", "b", "c")
    accept(site, run, a={"same": "a\n"}, b={"same": "b\n"}, c={"c.txt": "c\n"})
    site.add(run, "d", "e", "f")
    items = site.dispatch(run, "d", "e", "f")

    first = site.scheduler.integrate(run)
    assert (states_of(first)["b"], first.dispatched) == ("conflict", ())
    site.deliver(items["d"], "d.txt")
    site.scheduler.reconcile(run)
    second = site.scheduler.integrate(run)

    assert first.tip != second.tip
    item = site.dispatch(run, "b")["b"]
    assert (item["base_commit"], item["base_source"]) == (second.tip, "integration")


def test_a_conflict_in_a_closed_run_is_recorded_and_reopens_nothing(site: Site, pair):
    run, _ = pair
    write_by_hand(site, "UPDATE run SET state = 'closed', closed_at = 1")

    done = site.scheduler.integrate(site.scheduler.run(run.name))

    assert states_of(done) == {"a": "merged", "b": "conflict", "c": "merged"}
    assert site.task(run, "b").state == "succeeded"
    assert json.loads(str(site.attempts(run, "b")[0].conflict))["paths"] == ["same"]


def test_a_wait_tells_of_a_conflict(site: Site, pair):
    run, _ = pair
    site.scheduler.mark_told(site.scheduler.wait(run, wait_seconds=0))

    site.scheduler.integrate(run)

    told = [(e.kind, e.data["paths"]) for e in site.scheduler.wait(run, wait_seconds=0).changes]
    assert told == [("attempt_conflict", ["same"])]


# -- kinds of conflicts ----------------------------------------------------------------------


def change(kind: str, tree: Path, side: int) -> None:
    """One of two changes that do not merge."""
    if kind == "binary":
        (tree / "both").write_bytes(bytes([0, 1, 2, side]) * 100)
    elif kind == "deleted_or_changed":
        (tree / "README.md").write_text("changed\n") if side else (tree / "README.md").unlink()
    elif kind == "renamed":
        git(tree, "mv", "README.md", f"renamed-{side}")
    elif kind == "folder_or_file":
        if side:
            (tree / "both").mkdir()
            (tree / "both" / "inner").write_text("inner\n")
        else:
            (tree / "both").write_text("file\n")
    elif kind == "link_or_file":
        if side:
            (tree / "both").symlink_to("README.md")
        else:
            (tree / "both").write_text("file\n")
    elif kind == "odd_names":
        (tree / "tab\tnew\nline \udcff é").write_text(f"{side}\n")
    elif kind == "submodule":
        identity = f"{side + 1}" * 40
        git(tree, "update-index", "--add", "--cacheinfo", f"160000,{identity},both")
        (tree / "both").mkdir()
        declared = '[submodule "both"]\n\tpath = both\n\turl = ../both\n'
        (tree / ".gitmodules").write_text(declared)
        git(tree, "add", ".gitmodules")


@pytest.mark.parametrize(
    "kind, paths",
    [
        ("binary", {"both"}),
        ("deleted_or_changed", {"README.md"}),
        ("renamed", {"README.md", "renamed-0", "renamed-1"}),
        ("folder_or_file", {"both~"}),
        ("link_or_file", {"both~"}),
        ("odd_names", {"tab\tnew\nline \\xff é"}),
        ("submodule", {"both"}),
    ],
)
def test_the_paths_of_every_kind_of_conflict_are_told(site: Site, kind: str, paths: set[str]):
    run = site.open_run()
    site.add(run, "a", "b", allow_empty=True)
    for side, item in enumerate(site.dispatch(run).values()):
        tree = Path(item["worktree"])
        change(kind, tree, side)
        if kind != "submodule":
            git(tree, "add", "--all")
        git(tree, "commit", "--quiet", "--message", kind)
        site.done(item)
    site.scheduler.reconcile(run)
    assert set(site.states(run).values()) == {"succeeded"}

    done = site.scheduler.integrate(run)

    assert states_of(done) == {"a": "merged", "b": "conflict"}
    told = next(i for i in done.as_json()["items"] if i["key"] == "b")["paths"]
    assert {p for p in paths if not any(t.startswith(p) for t in told)} == set()
    assert json.dumps(told).encode()
    git(site.repository, "fsck", "--strict")


def test_changes_that_do_not_meet_merge_modes_and_renames_included(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    items = site.dispatch(run)
    tree = Path(items["a"]["worktree"])
    (tree / "README.md").chmod(0o755)
    git(tree, "commit", "--quiet", "--all", "--message", "Mode")
    tree = Path(items["b"]["worktree"])
    git(tree, "mv", "README.md", "moved.md")
    git(tree, "commit", "--quiet", "--all", "--message", "Rename")
    for item in items.values():
        site.done(item)
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    assert set(states_of(done).values()) == {"merged"}
    listed = git(site.repository, "ls-tree", str(done.tip)).split()
    assert (listed[0], listed[3]) == ("100755", "moved.md")


def test_unrelated_and_crossing_histories_merge(site: Site):
    run = site.open_run()
    site.add(run, "a", "b", "c")
    items = site.dispatch(run)
    trees = {key: item["worktree"] for key, item in items.items()}
    heads = {key: commit(trees[key], f"{key}.txt", f"{key}\n") for key in ("a", "b")}
    git(trees["a"], "merge", "--quiet", "--no-edit", heads["b"])
    git(trees["b"], "merge", "--quiet", "--no-edit", heads["a"])
    commit(trees["a"], "a.txt", "more\n")
    git(trees["c"], "checkout", "--quiet", "--orphan", "apart")
    git(trees["c"], "rm", "--quiet", "-r", "-f", ".")
    commit(trees["c"], "c.txt", "c\n")
    git(trees["c"], "merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "main")
    for item in items.values():
        site.done(item)
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    assert set(states_of(done).values()) == {"merged"}
    assert names_in(site, str(done.tip)) == {"README.md", "a.txt", "b.txt", "c.txt"}
    assert git(site.repository, "show", f"{done.tip}:a.txt") == "more"


def test_a_repository_with_sha256_is_integrated(site: Site, tmp_path: Path):
    other = tmp_path / "sha256"
    other.mkdir()
    git(other, "init", "--quiet", "--initial-branch", "main", "--object-format", "sha256")
    commit(other, "README.md", "text\n")
    run = site.open_run(other)
    site.add(run, "a", "b")
    accept(site, run, a={"same": "a\n"}, b={"same": "b\n"})

    done = site.scheduler.integrate(run, onto="main")

    assert states_of(done) == {"a": "merged", "b": "conflict"}
    assert len(str(done.tip)) == 64
    assert git(other, "rev-parse", "main") == done.tip
    git(other, "fsck", "--strict")


def test_the_branch_of_the_integration_is_not_moved_under_somebody_who_works_on_it(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    accept(site, run, a={"a.txt": "a\n"})
    site.scheduler.integrate(run)
    tree = site.folder / "look"
    git(site.repository, "worktree", "add", "--quiet", str(tree), branch_of(run))
    accept(site, run, b={"b.txt": "b\n"})

    (tree / "a.txt").write_text("changed\n")
    with refused("dirty_repository"):
        site.scheduler.integrate(run)
    assert (tree / "a.txt").read_text() == "changed\n"
    assert site.open_intents(run) == []

    (tree / "a.txt").write_text("a\n")
    done = site.scheduler.integrate(run)
    assert (tree / "b.txt").read_text() == "b\n"
    assert git(tree, "rev-parse", "HEAD") == done.tip
    assert git(tree, "status", "--porcelain") == ""


# -- what goes wrong at the worst moment -----------------------------------------------------


def begun_by_one_that_is_gone(site: Site, run, tip: str, conflicts=()) -> None:
    facts = {"step": "move", "branch": branch_of(run), "before": None, "tip": tip}
    gone = site.scheduler.database.owner()._replace(process=4194303, started=1)
    with site.scheduler.database.transaction() as tx:
        journal_rows.open_integration(
            tx,
            run_id=run.id,
            data={**facts, "merged": [], "conflicts": conflicts},
            owner=gone,
            now_ms=tx.now.wall_ms,
        )


def test_what_finds_the_repository_locked_leaves_nothing_begun(site: Site, repository_lock):
    run = site.open_run()
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    with repository_lock(), refused("busy"):
        site.scheduler.integrate(run)

    assert site.open_intents(run) == []
    site.scheduler.integrate(run)
    assert names_in(site, tip_of(site, run)) == {"README.md", "a.txt"}
    assert integrated(site) == 1


def test_what_cannot_be_finished_yet_is_taken_over_by_nobody(site: Site, repository_lock):
    """Whoever took it over and lives on, but does nothing, would keep it from all others."""
    run = site.open_run()
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    site.scheduler.integrate(run)
    begun_by_one_that_is_gone(site, run, tip_of(site, run))
    with repository_lock():
        assert site.scheduler.reconcile(run).finished_intents == 0

    assert site.scheduler.reconcile(run).finished_intents == 1
    assert site.open_intents(run) == []


@pytest.fixture
def repository_lock(site: Site, monkeypatch):
    """While entered, another process changes what all worktrees share, and nobody waits long."""

    @contextlib.contextmanager
    def held():
        gate = Gate(str(site.repository / ".git" / "inbox-orch.lock"))
        gate.acquire(PATIENCE_SECONDS)
        monkeypatch.setattr(worktrees, "LOCK_SECONDS", 0.1)
        try:
            yield
        finally:
            monkeypatch.setattr(worktrees, "LOCK_SECONDS", PATIENCE_SECONDS)
            gate.release()

    return held


def test_a_merge_that_was_never_moved_to_and_is_collected_by_now_is_forgotten(site: Site):
    run = site.open_run()
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    site.scheduler.integrate(run)
    tip = tip_of(site, run)
    attempt = site.attempts(run, "a")[0]
    begun_by_one_that_is_gone(site, run, "f" * 40, [[attempt.id, ["a.txt"]]])

    assert site.scheduler.reconcile(run).finished_intents == 1

    assert tip_of(site, run) == tip
    assert (site.task(run, "a").state, site.attempts(run, "a")[0].conflict) == ("succeeded", None)
    assert site.open_intents(run) == []


def test_a_signal_after_the_branch_has_moved_does_not_hide_what_was_done(site: Site, monkeypatch):
    run = site.open_run()
    site.add(run, "a")
    (head,) = accept(site, run, a={"a.txt": "a\n"}).values()
    move = git_integrating.move_branch

    def move_and_be_told_to_end(*arguments, **options):
        move(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(git_integrating, "move_branch", move_and_be_told_to_end)
    with pytest.raises(KeyboardInterrupt):
        site.scheduler.integrate(run)

    assert git(site.repository, "merge-base", "--is-ancestor", head, tip_of(site, run)) == ""
    assert integrated(site) == 1
    assert site.open_intents(run) == []


def integrated(site: Site) -> int:
    """How often work was told to have come in."""
    with site.scheduler.database.snapshot() as snapshot:
        rows = snapshot.all("SELECT count(*) FROM event WHERE kind = 'attempt_integrated'")
        return int(rows[0][0])


def test_what_another_leader_has_confirmed_is_told_once(site: Site, monkeypatch):
    run = site.open_run()
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    scheduler, other = site.scheduler, site.leader()
    move = branch.moved

    def move_and_be_taken_for_dead(*arguments):
        moved = move(*arguments)
        (intent,) = site.open_intents(run)
        gone = intent.owner._replace(process=4194303, started=1)
        with scheduler.database.transaction() as tx:
            journal_rows.take_over_intent(tx, intent.number, intent.owner, gone)
        assert other.reconcile(run).finished_intents == 1
        return moved

    monkeypatch.setattr(branch, "moved", move_and_be_taken_for_dead)
    scheduler.integrate(run)

    assert integrated(site) == 1
    assert site.open_intents(run) == []


def test_work_that_is_taken_back_before_the_branch_moves_is_not_brought_in(site: Site, monkeypatch):
    run = site.open_run()
    site.add(run, "a", "b")
    accept(site, run, a={"a.txt": "a\n"}, b={"b.txt": "b\n"})
    begin, other = functools.partial(integrate._begin, site.scheduler.desk), site.leader()

    def begin_late(*arguments):
        monkeypatch.undo()
        other.retry(run, ["a"], force=True)
        return begin(*arguments)

    only_for(monkeypatch, site.scheduler, integrate, "_begin", begin_late)
    done = site.scheduler.integrate(run)

    assert states_of(done) == {"b": "merged"}
    assert names_in(site, tip_of(site, run)) == {"README.md", "b.txt"}


def test_a_branch_that_somebody_moves_meanwhile_is_merged_anew(site: Site, monkeypatch):
    run = site.open_run()
    site.add(run, "a")
    accept(site, run, a={"a.txt": "a\n"})
    begin = functools.partial(integrate._begin, site.scheduler.desk)
    by_hand = commit(site.repository, "by-hand.txt", "by hand\n")
    git(site.repository, "reset", "--quiet", "--hard", "HEAD~1")

    def begin_late(*arguments):
        monkeypatch.undo()
        git(site.repository, "branch", branch_of(run), by_hand)
        return begin(*arguments)

    only_for(monkeypatch, site.scheduler, integrate, "_begin", begin_late)
    site.scheduler.integrate(run)

    assert names_in(site, tip_of(site, run)) == {"README.md", "a.txt", "by-hand.txt"}
    assert site.open_intents(run) == []


def test_a_conflict_of_work_that_was_taken_back_gives_nothing_back(site: Site, pair):
    """Whoever finishes what a killed leader has begun finds the task decided otherwise."""
    run, _ = pair
    site.scheduler.integrate(run)
    attempt = site.attempts(run, "a")[0]
    site.scheduler.retry(run, ["a"], force=True)
    begun_by_one_that_is_gone(site, run, tip_of(site, run), [[attempt.id, ["same"]]])

    site.scheduler.reconcile(run)

    assert site.attempts(run, "a")[0].conflict is None
    assert site.task(run, "a").next_base is None
    assert site.open_intents(run) == []
