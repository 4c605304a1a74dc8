"""Clean-up keeps whatever it is not sure of, and leaves nothing behind of what it is sure of."""

import errno
import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import get_args

import pytest

from inbox_orch.orch.attempts import judge
from inbox_orch.orch.attempts.judge import AT_WORK
from inbox_orch.orch.cleanup import clean, inspect
from inbox_orch.orch.cleanup.reasons import ERRORS
from inbox_orch.orch.git import removal, salvage
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.schemas.cleanup import ReasonCode
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.engines import Kind
from support.predicaments import Scene, picture, process_inside, rejected
from support.runs import (
    Site,
    branches,
    commit,
    git,
    only_for,
    refs_beside_base,
    run_init,
    worktree_paths,
)


@pytest.fixture
def scene(site: Site):
    made = Scene(site)
    yield made
    made.close()


def codes(item) -> list[str]:
    return [reason.code for reason in item.reasons]


def refs(site: Site, below: str) -> list[str]:
    return git(site.repository, "for-each-ref", "--format=%(refname)", below).split()


def ended(scene: Scene) -> None:
    scene.site.fail(scene.item, fatal=True)
    scene.site.scheduler.reconcile(scene.run)


# -- what it refuses -------------------------------------------------------------------------


def test_from_inside_of_a_worktree_it_does_not_remove_that(scene: Scene):
    scene.delivered()
    (scene.worktree / "deep").mkdir()

    (item,) = scene.site.scheduler.cleanup(
        scene.run, force=True, within=str(scene.worktree / "deep")
    ).items

    assert (item.action, codes(item)) == ("kept", ["own_directory"])
    assert scene.worktree.is_dir()


def test_processes_inside_are_named(scene: Scene):
    process_inside(scene)

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.reasons[0].items == (str(scene.processes[0].pid),)


def test_git_in_a_removed_worktree_meets_no_other_repository(scene: Scene):
    scene.delivered()
    scene.site.scheduler.cleanup(scene.run)

    scene.worktree.mkdir()
    assert "not a git repository" in git_error(scene.worktree)


def git_error(folder: Path) -> str:
    done = subprocess.run(["git", "status"], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr


def test_an_ended_attempt_whose_worker_was_not_told_is_kept(scene: Scene):
    """Cancelled, and the time of grace is over; but the lease lives."""
    scene.site.claim(scene.item, lease_seconds=3600)
    scene.site.office.bus("leader").cancel(scene.item["thread"])
    scene.site.scheduler.reconcile(scene.run)
    scene.site.clock.advance(120)
    scene.site.scheduler.reconcile(scene.run)
    assert scene.site.attempts(scene.run, "a")[0].state == "cancelled"

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert (item.action, codes(item)) == ("kept", ["live_lease"])

    scene.site.clock.advance(3600)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    assert item.action == "removed"


def test_who_works_there_and_until_when_is_told(scene: Scene):
    scene.site.claim(scene.item, lease_seconds=300)
    until = rfc3339(scene.site.clock.wall_ms + 300_000)

    (running,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    scene.site.scheduler.cancel(scene.run, ["a"])
    scene.site.clock.advance(61)
    scene.site.scheduler.reconcile(scene.run)
    (cancelled,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    for item, code in ((running, "live_attempt"), (cancelled, "live_lease")):
        assert (item.action, codes(item)) == ("kept", [code])
        assert f"w1 has its lease until {until}" in item.reasons[0].message


def test_salvage_of_more_than_a_gibibyte_is_refused(scene: Scene):
    ended(scene)
    with open(scene.worktree / "huge.bin", "wb") as file:
        file.truncate(salvage.MAX_BYTES + 1)

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.action == "kept"
    assert codes(item)[0] == "salvage_too_large"


def test_a_check_that_fails_counts_against_it(scene: Scene):
    scene.delivered()
    admin = Path(git(scene.worktree, "rev-parse", "--absolute-git-dir"))
    (admin / "index").write_bytes(b"damaged")

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert (item.action, codes(item)) == ("kept", ["unreadable"])


def test_the_main_working_tree_is_never_touched(engine: Kind, scene: Scene):
    scene.delivered()
    sql = "UPDATE attempt SET worktree_path = ?"
    engine.by_hand(scene.site.office.address, sql, (str(scene.repository),))

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert (item.action, codes(item)) == ("kept", ["main_worktree"])
    assert (scene.repository / "README.md").exists()


def test_a_branch_that_orch_has_not_made_is_never_deleted(engine: Kind, scene: Scene):
    scene.delivered()
    git(scene.repository, "branch", "users", scene.item["branch"])
    engine.by_hand(scene.site.office.address, "UPDATE attempt SET branch = 'users'")

    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert (item.action, codes(item)[0]) == ("kept", "foreign_branch")
    assert branches(scene.repository, "users") == {"users"}


def test_a_worktree_that_changes_under_its_eyes_is_kept(scene: Scene, monkeypatch):
    scene.write("first.txt")
    ended(scene)
    real = salvage.snapshot

    def snapshot(*arguments):
        commit_id = real(*arguments)
        scene.write("first.txt")
        (scene.worktree / "first.txt").write_text("changed since\n")
        return commit_id

    monkeypatch.setattr(salvage, "snapshot", snapshot)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.action == "kept"
    assert codes(item)[-1] == "changing"
    assert scene.site.open_intents(scene.run) == []
    assert refs(scene.site, "refs/orch/salvage") == []
    monkeypatch.undo()
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    assert git(scene.repository, "show", f"{item.salvage}:first.txt") == "changed since"


@pytest.mark.parametrize("step", ["snapshot", "move_worktree"])
def test_what_fails_before_the_worktree_is_gone_changes_nothing(
    scene: Scene, monkeypatch, step: str
):
    scene.write("left.txt")
    ended(scene)
    before = picture(scene.site, scene.run)

    def fail(*_):
        raise InboxOrchError("disk_full", "no space left")

    monkeypatch.setattr(salvage if step == "snapshot" else removal, step, fail)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert (item.action, codes(item)[-1]) == ("kept", "failed")
    assert scene.site.open_intents(scene.run) == []
    assert picture(scene.site, scene.run) == before


# -- worktrees that are missing --------------------------------------------------------------


def many(site: Site, count: int) -> tuple:
    run = site.open_run()
    keys = [f"t{number}" for number in range(count)]
    site.add(run, *keys)
    items = site.dispatch(run)
    for key in keys:
        site.deliver(items[key], f"{key}.txt")
    site.scheduler.reconcile(run)
    for key in keys:
        git(site.repository, "merge", "--quiet", items[key]["branch"])
    return run, items


def test_more_than_three_missing_at_once_are_a_disk_that_is_gone(site: Site):
    run, _ = many(site, 5)
    before = picture(site, run)
    aside = site.folder / "aside"
    (site.worktrees / run.name).rename(aside)

    for options in ({}, {"force": True}, {"dry_run": True}, {"task_names": ["t1"], "force": True}):
        with refused("unsafe_removal") as failure:
            site.scheduler.cleanup(run, **options)
        assert len(failure.value.details["worktrees"]) == 5

    aside.rename(site.worktrees / run.name)
    assert picture(site, run) == before
    assert {i.action for i in site.scheduler.cleanup(run).items} == {"removed"}


def test_a_sibling_that_was_moved_away_works_again_when_it_is_back(site: Site):
    run, items = many(site, 2)
    sibling = Path(items["t1"]["worktree"])
    git(site.repository, "worktree", "add", "--quiet", "--detach", str(site.folder / "mine"))
    moved = [(sibling, site.folder / "one"), (site.folder / "mine", site.folder / "two")]
    for path, elsewhere in moved:
        path.rename(elsewhere)

    actions = {i.key: (i.action, codes(i)) for i in site.scheduler.cleanup(run).items}

    assert actions == {"t0": ("removed", []), "t1": ("kept", ["missing"])}
    for path, elsewhere in moved:
        elsewhere.rename(path)
        assert git(path, "status", "--porcelain") == ""
        assert git(path, "reflog") != ""


def test_one_that_was_deleted_and_pruned_by_hand_is_closed(scene: Scene):
    scene.delivered()
    shutil.rmtree(scene.worktree)
    git(scene.repository, "worktree", "unlock", str(scene.worktree))
    git(scene.repository, "worktree", "prune")

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert (item.action, item.trash) == ("removed", None)
    assert branches(scene.repository) == set()
    assert scene.site.scheduler.cleanup(scene.run).items == ()


def test_the_branch_of_one_that_was_deleted_stays_while_it_is_not_merged(scene: Scene):
    scene.deliver()
    git(scene.repository, "worktree", "remove", "--force", "--force", str(scene.worktree))

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert item.action == "removed"
    assert branches(scene.repository) == {scene.item["branch"]}


def test_an_attempt_that_never_had_a_worktree_is_closed(site: Site):
    run = site.open_run()
    site.add(run, "a")
    place = site.worktrees / run.name / "a-1"
    place.mkdir(parents=True)
    (place / "mine.txt").write_text("mine")
    assert site.scheduler.dispatch(run).degraded

    (item,) = site.scheduler.cleanup(run, force=True).items

    assert (item.action, codes(item)) == ("kept", ["foreign_worktree"])
    assert (place / "mine.txt").read_text() == "mine"
    shutil.rmtree(place)
    (item,) = site.scheduler.cleanup(run, force=True).items
    assert item.action == "removed"


# -- what goes, and what stays ---------------------------------------------------------------


def test_many_finished_tasks_leave_one_worktree_and_a_second_run_does_nothing(site: Site):
    run, _ = many(site, 50 if os.environ.get("INBOX_ORCH_LONG") else 20)

    assert {i.action for i in site.scheduler.cleanup(run).items} == {"removed"}

    assert worktree_paths(site.repository) == set()
    assert branches(site.repository) == set()
    assert refs_beside_base(site, run) == set()
    before = picture(site, run)
    assert site.scheduler.cleanup(run, force=True).items == ()
    assert picture(site, run) == before
    git(site.repository, "fsck", "--strict")


def test_the_accepted_commit_stays_while_only_its_content_is_merged(scene: Scene):
    """Later attempts build on the commit itself."""
    scene.deliver()
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")
    scene.site.add(scene.run, "b", depends_on=["a"])

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert [d.ref for d in item.deleted_refs] == [f"refs/heads/{scene.item['branch']}"]
    git(scene.repository, "gc", "--quiet", "--prune=now")
    assert scene.site.dispatch(scene.run, "b")["b"]["state"] == "offered"


@pytest.mark.parametrize("names", [(), ("a",)])
def test_a_branch_that_git_could_not_delete_is_told_and_goes_with_a_later_clean_up(
    scene: Scene, names
):
    scene.delivered()
    lock = scene.repository / ".git" / "packed-refs.lock"
    lock.touch()
    branch = f"refs/heads/{scene.item['branch']}"

    done = scene.site.scheduler.cleanup(scene.run, task_names=names)
    (item,) = done.items
    assert (item.action, codes(item)) == ("kept", ["failed"])
    assert branch in item.reasons[0].message
    assert item.trash is not None
    assert done.degraded == bool(names)
    (again,) = scene.site.scheduler.cleanup(scene.run).items
    assert (again.action, codes(again)) == ("kept", ["failed"])
    lock.unlink()
    (rest,) = scene.site.scheduler.cleanup(scene.run, task_names=names).items

    assert rest.action == "removed"
    assert branch in [deletion.ref for deletion in rest.deleted_refs]
    assert branches(scene.repository) == set()
    assert scene.site.scheduler.cleanup(scene.run).items == ()


def test_a_branch_that_is_checked_out_elsewhere_stays(scene: Scene):
    scene.delivered()
    git(scene.worktree, "checkout", "--quiet", "--detach")
    mine = scene.site.folder / "mine"
    git(scene.repository, "worktree", "add", "--quiet", str(mine), scene.item["branch"])

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert item.action == "removed"
    assert branches(scene.repository) == {scene.item["branch"]}
    assert git(mine, "status", "--porcelain") == ""


def test_a_branch_that_is_another_name_goes_without_the_one_that_it_leads_to(scene: Scene):
    scene.delivered()
    own = f"refs/heads/{scene.item['branch']}"
    git(scene.repository, "branch", "feature", own)
    git(scene.worktree, "checkout", "--quiet", "--detach")
    git(scene.repository, "symbolic-ref", own, "refs/heads/feature")

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert item.action == "removed"
    assert branches(scene.repository) == set()
    assert branches(scene.repository, "feature") == {"feature"}


def test_a_branch_with_another_name_stays(scene: Scene):
    """A symbolic ref of the user's would lead nowhere without it."""
    scene.commit("work.txt")
    rejected(scene)
    own = f"refs/heads/{scene.item['branch']}"
    git(scene.repository, "symbolic-ref", "refs/heads/review", own)
    git(scene.repository, "symbolic-ref", "refs/heads/again", "refs/heads/review")
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert (item.action, item.salvage) == ("removed", None)
    assert branches(scene.repository) == {scene.item["branch"]}
    assert git(scene.repository, "show", "again:work.txt") == scene.something("work.txt").strip()


def test_a_branch_that_gets_another_name_at_the_last_moment_stays(scene: Scene, monkeypatch):
    scene.delivered()
    own = f"refs/heads/{scene.item['branch']}"
    real = removal.move_worktree

    def move(*arguments):
        git(scene.repository, "symbolic-ref", "refs/heads/review", own)
        real(*arguments)

    monkeypatch.setattr(removal, "move_worktree", move)
    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert item.action == "removed"
    assert branches(scene.repository) == {scene.item["branch"]}


def test_of_the_commits_that_are_salvaged_the_last_one_keeps_the_others(scene: Scene):
    first, *_, last = [scene.commit(f"{number}.txt") for number in range(5)]
    rejected(scene)
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert git(scene.repository, "log", "-1", "--format=%P", str(item.salvage)) == last
    git(scene.repository, "merge-base", "--is-ancestor", first, str(item.salvage))


def test_a_branch_of_which_only_the_content_is_merged_stays_where_nothing_is_salvaged(
    scene: Scene,
):
    scene.commit("work.txt")
    rejected(scene)
    scene.merge("--squash")
    git(scene.repository, "commit", "--quiet", "--message", "Squashed")
    git(scene.repository, "worktree", "remove", "--force", "--force", str(scene.worktree))

    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert (item.action, item.salvage) == ("removed", None)
    assert branches(scene.repository) == {scene.item["branch"]}


def test_a_branch_stays_when_its_target_has_gone_back(scene: Scene, monkeypatch):
    scene.delivered()
    real = removal.move_worktree

    def move(*arguments):
        git(scene.repository, "reset", "--quiet", "--hard", "HEAD~1")
        real(*arguments)

    monkeypatch.setattr(removal, "move_worktree", move)
    (item,) = scene.site.scheduler.cleanup(scene.run).items

    assert item.deleted_refs == ()
    assert branches(scene.repository) == {scene.item["branch"]}


def test_a_branch_stays_that_somebody_has_moved_meanwhile(scene: Scene, monkeypatch):
    scene.delivered()
    real, moved = removal.move_admin, []

    def move(*arguments):
        real(*arguments)
        tree = git(scene.repository, "rev-parse", "HEAD^{tree}")
        moved.append(git(scene.repository, "commit-tree", tree, "-p", "HEAD", "-m", "By hand"))
        git(scene.repository, "update-ref", f"refs/heads/{scene.item['branch']}", moved[0])

    monkeypatch.setattr(removal, "move_admin", move)
    (item,) = scene.site.scheduler.cleanup(scene.run).items

    branch = f"refs/heads/{scene.item['branch']}"
    assert branch not in [deletion.ref for deletion in item.deleted_refs]
    assert git(scene.repository, "rev-parse", branch) == moved[0]


def test_what_was_integrated_may_go(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)

    (item,) = site.scheduler.cleanup(run).items

    assert item.action == "removed"
    assert item.merged_into == f"refs/heads/orch/{run.name}/integration"
    assert branches(site.repository) == {f"orch/{run.name}/integration"}


def test_an_attempt_at_somebodys_own_work_keeps_the_commits_of_the_first(site: Site):
    """The second attempt begins where the first ended, and adds nothing."""
    run = site.open_run()
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    first = commit(item["worktree"], "first.txt", "first\n")
    site.fail(item)
    site.scheduler.reconcile(run)
    second = site.dispatch(run, "b", base=first)["b"]
    site.fail(second, fatal=True)
    site.scheduler.reconcile(run)

    site.scheduler.cleanup(run, force=True)
    git(site.repository, "gc", "--quiet", "--prune=now")

    assert git(site.repository, "cat-file", "-t", first) == "commit"
    assert item["branch"] in branches(site.repository)


def test_what_is_in_the_trash_goes_after_seven_days(scene: Scene):
    scene.delivered()
    built = scene.worktree / "node_modules" / "deep"
    built.mkdir(parents=True)
    built.parent.chmod(0o555)
    (item,) = scene.site.scheduler.cleanup(scene.run).items
    admin = scene.repository / ".git" / "inbox-orch-trash" / item.attempt.id
    other = scene.site.worktrees / ".trash" / "somebodys"
    other.mkdir()

    scene.site.clock.advance(7 * 24 * 3600 - 1)
    assert scene.site.scheduler.cleanup(scene.run).emptied == ()
    assert Path(item.trash).is_dir()
    assert admin.is_dir()

    scene.site.clock.advance(2)
    assert scene.site.scheduler.cleanup(scene.run).emptied == (item.attempt.id,)
    assert not Path(item.trash).parent.exists()
    assert not admin.exists()
    assert other.is_dir()


# -- naming tasks ----------------------------------------------------------------------------


def test_of_named_tasks_all_go_or_none(site: Site):
    run, items = many(site, 2)
    Path(items["t1"]["worktree"], "left.txt").write_text("left\n")
    before = picture(site, run)

    with refused("dirty_repository") as failure:
        site.scheduler.cleanup(run, task_names=["t0", "t1"])

    assert picture(site, run) == before
    told = {i["key"]: (i["action"], i["reasons"]) for i in failure.value.details["items"]}
    assert told["t0"] == ("would_remove", [])
    assert told["t1"][1][0]["items"] == ["left.txt"]
    assert "--force" in str(failure.value.hint)
    done = site.scheduler.cleanup(run, task_names=["t0", "t1"], force=True)
    assert [i.action for i in done.items] == ["removed", "removed"]


@pytest.mark.parametrize(
    "make, code",
    [
        (Scene.deliver, "unmerged_work"),
        (lambda scene: scene.site.claim(scene.item), "live_attempt"),
        (lambda scene: (scene.delivered(), scene.write("x.txt")), "dirty_repository"),
        (lambda scene: (scene.delivered(), (scene.worktree / ".git").unlink()), "unsafe_removal"),
    ],
)
def test_the_error_says_what_kind_of_reason_it_is(scene: Scene, make, code: str):
    make(scene)

    with refused(code) as failure:
        scene.site.scheduler.cleanup(scene.run, task_names=["a"])
    assert failure.value.exit_code == 9

    with refused(code):
        scene.site.scheduler.cleanup(scene.run, task_names=["a"], dry_run=True)


def test_a_task_that_has_nothing_to_remove_is_no_refusal(scene: Scene):
    scene.site.add(scene.run, "new")

    assert scene.site.scheduler.cleanup(scene.run, task_names=["new"]).items == ()


def test_what_is_refused_at_the_last_moment_is_told_with_what_was_done(scene: Scene, monkeypatch):
    scene.delivered()

    def fail(*_):
        raise InboxOrchError("disk_full", "no space left")

    monkeypatch.setattr(removal, "move_worktree", fail)

    done = scene.site.scheduler.cleanup(scene.run, task_names=["a"])

    assert done.degraded


# -- who else removes ------------------------------------------------------------------------


def test_reconciling_never_removes_a_worktree(scene: Scene):
    scene.delivered()
    scene.site.clock.advance(30 * 24 * 3600)

    scene.site.scheduler.reconcile(scene.run)

    assert scene.worktree.is_dir()
    assert branches(scene.repository) == {scene.item["branch"]}


def test_another_attempt_leaves_the_first_one_as_it_was(scene: Scene):
    tip = scene.commit("first.txt")
    scene.write("not-committed.txt")
    scene.site.fail(scene.item)
    scene.site.scheduler.reconcile(scene.run)
    scene.site.clock.advance(600)

    second = scene.site.dispatch(scene.run)["a"]

    assert (second["number"], second["state"]) == (2, "offered")
    assert git(scene.repository, "rev-parse", scene.item["branch"]) == tip
    assert (scene.worktree / "not-committed.txt").exists()


def test_a_damaged_worktree_is_left_alone_by_reconciling(scene: Scene):
    scene.write("precious.txt")
    (scene.worktree / ".git").unlink()
    scene.site.done(scene.item)

    scene.site.scheduler.reconcile(scene.run)

    assert (scene.worktree / "precious.txt").exists()
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    assert (item.action, codes(item)) == ("kept", ["foreign_worktree"])
    assert (scene.worktree / "precious.txt").exists()


def test_the_reasons_in_the_models_are_those_of_the_table():
    assert set(get_args(ReasonCode)) == set(ERRORS)


def test_files_that_were_handed_out_are_in_the_way_only_once_they_are_changed(site: Site):
    commit(site.repository, ".gitignore", "*.env\n")
    (site.repository / "local.env").write_text("secret\n")
    run = site.open_run(config=Config(copy=("local.env",)))
    site.add(run, "a", "b")
    items = site.dispatch(run)
    assert Path(items["a"]["worktree"], "local.env").read_text() == "secret\n"
    Path(items["b"]["worktree"], "local.env").write_text("edited\n")
    for item in items.values():
        site.fail(item, fatal=True)
    site.scheduler.reconcile(run)

    cleaned = {item.key: (item.action, codes(item)) for item in site.scheduler.cleanup(run).items}

    assert cleaned == {"a": ("removed", []), "b": ("kept", ["ignored_changed"])}


def test_ending_a_run_or_its_tasks_removes_nothing(scene: Scene):
    scene.write("left.txt")
    scheduler = scene.site.scheduler
    scheduler.cancel(scene.run, ["a"])
    scene.site.clock.advance(120)
    scheduler.reconcile(scene.run)
    scheduler.retry(scene.run, ["a"])
    scheduler.close_run(scene.run)
    scheduler.reconcile(scene.run)

    assert (scene.worktree / "left.txt").exists()
    assert scene.item["branch"] in branches(scene.repository)


def test_a_run_without_a_repository_has_nothing_to_clean_up(site: Site, tmp_path: Path):
    answer = run_init(site.scheduler, title="No repository", repository=None)
    run = site.scheduler.run(answer.data["run"]["name"])

    assert site.scheduler.cleanup(run).items == ()
    with refused("not_found"):
        site.scheduler.cleanup(run, task_names=["nobody"])


# -- what goes wrong at the worst moment -----------------------------------------------------


def test_a_worktree_in_the_trash_is_removed_though_its_folder_cannot_be_synced(
    scene: Scene, monkeypatch
):
    """Renamed is renamed: what was salvaged must be kept from then on."""
    ended(scene)
    (scene.worktree / "notes.txt").write_text("only here")

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(removal.os, "fsync", fail)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.action == "removed"
    assert git(scene.site.repository, "show", f"{item.salvage}:notes.txt") == "only here"
    assert refs(scene.site, "refs/orch/salvage/") == [salvage.ref_of(item.attempt.id)]
    assert scene.site.attempts(scene.run, "a")[0].removed_at is not None
    assert scene.site.open_intents(scene.run) == []


def test_work_that_is_in_a_branch_with_odd_bytes_is_removed(scene: Scene):
    site = scene.site
    scene.delivered()
    git(site.repository, "checkout", "--quiet", "-b", "caf\udce9")
    git(site.repository, "merge", "--quiet", "--ff-only", scene.item["branch"])

    cleaned = site.scheduler.cleanup(scene.run)

    assert [item.action for item in cleaned.items] == ["removed"]
    assert branches(site.repository) == set()
    json.dumps(cleaned.as_json(), ensure_ascii=False).encode()


def test_a_full_temporary_folder_is_named_and_removes_nothing(scene: Scene, monkeypatch):
    ended(scene)
    (scene.worktree / "notes.txt").write_text("only here")

    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.action == "kept"
    assert any("no space left" in reason.message for reason in item.reasons)
    assert (scene.worktree / "notes.txt").read_text() == "only here"
    assert scene.site.open_intents(scene.run) == []


def test_a_removal_that_cannot_be_finished_now_keeps_nothing_else_from_it(
    scene: Scene, monkeypatch
):
    site = scene.site
    ended(scene)

    def fail(*arguments, **options):
        raise InboxOrchError("io_error", "the disk does not answer")

    monkeypatch.setattr(removal, "move_admin", fail)
    with refused("io_error"):
        site.scheduler.cleanup(scene.run, force=True)
    assert not scene.worktree.exists()

    site.add(scene.run, "b")
    site.deliver(site.dispatch(scene.run, "b")["b"], "b.txt")
    site.scheduler.reconcile(scene.run)
    assert site.states(scene.run)["b"] == "succeeded"
    assert len(site.open_intents(scene.run)) == 1

    monkeypatch.undo()
    assert site.scheduler.reconcile(scene.run).finished_intents == 1
    assert site.attempts(scene.run, "a")[0].removed_at is not None


def before_it_begins(monkeypatch, scene: Scene, happening) -> None:
    """Let something happen after the first look, and before the removal is written down."""
    scheduler = scene.site.scheduler
    begin = functools.partial(clean._begin_removal, scheduler.desk)

    def happen_first(run, attempt, plan):
        happening(attempt)
        return begin(run, attempt, plan)

    only_for(monkeypatch, scheduler, clean, "_begin_removal", happen_first)


def test_a_process_that_enters_after_the_first_look_keeps_the_worktree(scene: Scene, monkeypatch):
    scene.delivered()

    def enter(attempt):
        scene.processes.append(subprocess.Popen(["sleep", "600"], cwd=scene.worktree))

    before_it_begins(monkeypatch, scene, enter)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items

    assert item.action == "kept"
    assert codes(item)[-1] == "process_inside"
    assert scene.worktree.is_dir()
    assert scene.site.open_intents(scene.run) == []


def test_no_removal_begins_of_what_somebody_has_begun_to_adopt(scene: Scene, monkeypatch):
    scene.delivered()
    other = scene.site.leader()

    def adopt(attempt):
        with other.database.transaction() as tx:
            judge.open_verification(other.desk, tx, attempt, {})

    before_it_begins(monkeypatch, scene, adopt)
    (item,) = scene.site.scheduler.cleanup(scene.run, force=True).items
    AT_WORK.discard(item.attempt.id)

    assert (item.action, codes(item)[-1]) == ("kept", "unfinished")
    with scene.site.scheduler.database.snapshot() as snapshot:
        begun = snapshot.all("SELECT count(*) FROM intent WHERE kind = 'cleanup'")
        assert begun[0][0] == 0


def test_what_another_clean_up_has_taken_away_meanwhile_is_no_item(scene: Scene, monkeypatch):
    scene.delivered()
    slow = scene.site.leader()
    look, cleaned = functools.partial(inspect.require_mounted, slow.desk), []

    def look_and_be_late(*arguments):
        look(*arguments)
        cleaned.append(scene.site.scheduler.cleanup(scene.run))

    only_for(monkeypatch, slow, inspect, "require_mounted", look_and_be_late)

    assert slow.cleanup(scene.run).items == ()
    assert [item.action for item in cleaned[0].items] == ["removed"]
