"""Which repository a run acts on: a backup that was put back is the same one, a copy is not."""

import shutil
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site, branches, git


@pytest.fixture
def run(site: Site):
    made = site.open_run(base="main")
    site.add(made, "a")
    return made


def put_back(site: Site) -> None:
    """The git directory comes back from a copy, with another inode."""
    git_directory = site.repository / ".git"
    shutil.copytree(git_directory, site.folder / "backup", symlinks=True)
    git_directory.rename(site.folder / "lost")
    (site.folder / "backup").rename(git_directory)


def test_a_repository_that_was_put_back_from_a_copy_goes_on(site: Site, run):
    put_back(site)

    assert site.dispatch(run)["a"]["state"] == "offered"


def test_a_repository_that_was_put_back_from_a_bundle_goes_on(site: Site, run):
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    git(site.repository, "bundle", "create", "--quiet", str(site.folder / "all.bundle"), "--all")
    (site.repository / ".git").rename(site.folder / "lost")
    git(site.folder, "clone", "-q", "--mirror", "all.bundle", str(site.repository / ".git"))
    git(site.repository / ".git", "config", "core.bare", "false")

    assert [i["state"] for i in site.scheduler.integrate(run).as_json()["items"]] == ["merged"]


@pytest.mark.parametrize("base", [None, "main"])
def test_a_repository_is_known_again_after_a_clean_up_that_left_no_branch(
    site: Site, base: str | None
):
    run = site.open_run(base=base)
    site.add(run, "a", "b")
    site.deliver(site.dispatch(run, "a")["a"], "a.txt")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run, onto="main")
    site.scheduler.cleanup(run)
    for name in branches(site.repository):
        git(site.repository, "branch", "--quiet", "-D", name)

    put_back(site)

    assert site.dispatch(run, "b")["b"]["state"] == "offered"


def test_salvage_of_a_closed_run_is_restored_from_a_repository_that_was_put_back(site: Site, run):
    item = site.dispatch(run)["a"]
    Path(item["worktree"], "only-here.txt").write_text("only here\n")
    site.scheduler.cancel(run, ["a"])
    site.scheduler.reconcile(run)
    site.scheduler.close_run(run)
    site.scheduler.cleanup(site.scheduler.run(run.id), force=True)
    for name in branches(site.repository):
        git(site.repository, "branch", "--quiet", "-D", name)

    put_back(site)

    found, listed = site.scheduler.attempt_named("a", run.name)
    restored = site.folder / "restored"
    site.scheduler.attempt_restore(found, listed, into=str(restored))
    assert (restored / "only-here.txt").read_text() == "only here\n"


def test_a_clone_in_its_place_is_not_the_repository(site: Site, run):
    site.dispatch(run)
    (site.repository / ".git").rename(site.folder / "lost")
    git(site.folder, "clone", "-q", "--bare", str(site.folder / "lost"), "new")
    for name in branches(site.folder / "new"):
        git(site.folder / "new", "branch", "-q", "-D", name)
    (site.folder / "new").rename(site.repository / ".git")

    with pytest.raises(InboxOrchError, match="is not the repository"):
        site.scheduler.integrate(run)


def test_a_moved_repository_goes_on_through_the_link_that_is_named(site: Site, run):
    new = site.folder / "new"
    site.repository.rename(new)
    bus = Bus.open(str(new / ".inbox" / "bus.db"))
    moved = Scheduler(bus, None)
    with pytest.raises(InboxOrchError) as failure:
        moved.dispatch(run)
    assert failure.value.hint is not None
    assert f"ln -s NEW {site.repository}" in failure.value.hint

    site.repository.symlink_to(new)

    assert [item["state"] for item in moved.dispatch(run).items] == ["offered"]
    bus.close()


def copied(site: Site) -> Path:
    """The project with its database at another place."""
    site.close()
    return Path(shutil.copytree(site.repository, site.folder / "copy", symlinks=True))


@pytest.mark.parametrize("base", [None, "main"])
def test_a_copy_of_project_and_database_leaves_the_original_alone(site: Site, base: str | None):
    run = site.open_run(base=base)
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    before = branches(site.repository)
    copy = copied(site)
    bus = Bus.open(str(copy / ".inbox" / "bus.db"))
    scheduler = Scheduler(bus, None)

    for act in (
        lambda: scheduler.dispatch(run),
        lambda: scheduler.cleanup(run, force=True),
        lambda: scheduler.integrate(run),
        lambda: scheduler.conflicts(run),
    ):
        with pytest.raises(InboxOrchError, match="a copy") as failure:
            act()
        assert str(site.repository) in str(failure.value.hint)
    scheduler.reconcile(run)
    bus.close()

    assert branches(site.repository) == before
    assert Path(item["worktree"]).is_dir()


def test_a_copy_of_a_bare_repository_with_its_database_is_one_too(site: Site):
    bare = site.folder / "bare.git"
    git(site.folder, "clone", "-q", "--bare", str(site.repository), str(bare))
    run = site.open_run(bare)
    site.add(run, "a")
    copy = site.folder / "copy.git"
    site.close()
    shutil.copytree(bare, copy)
    shutil.copytree(site.repository / ".inbox", copy / ".inbox")
    bus = Bus.open(str(copy / ".inbox" / "bus.db"))

    with pytest.raises(InboxOrchError, match="a copy"):
        Scheduler(bus, None).dispatch(run)

    bus.close()
