"""Git and its leader killed in the same instant, wherever git changes what all worktrees share.

What git leaves then - locks, a working tree half way - is put right by the next `reconcile`, or
by the same command, at once; and never what somebody else has or has changed.
"""

import os
from pathlib import Path

import pytest

from support.commands import run
from support.deaths import INDEX_WRITTEN, KILLED, PREPARED, Death, locks
from support.runs import Site, branches, commit, git


@pytest.fixture
def death(tmp_path: Path) -> Death:
    return Death(tmp_path / "death")


def orch(site: Site, *line: str, exit_code: int = 0):
    done = run(*line, "--json", folder=site.repository, program="orch")
    assert done.code == exit_code, done
    return done.value["data"]


def accepted(site: Site, name: str = "new.txt", content: str = "new\n"):
    """A run with a piece of work that is accepted."""
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], name, content)
    site.scheduler.reconcile(run)
    return run


def is_whole(site: Site) -> None:
    """Nothing is left of a death, and git works."""
    assert locks(site.repository) == []
    git(site.repository, "pack-refs", "--all")
    git(site.repository, "fsck", "--strict")
    assert git(site.repository, "status", "--porcelain") == ""


@pytest.mark.parametrize("again", ["reconcile", "dispatch"])
def test_a_branch_that_was_being_made_is_made(site: Site, death: Death, again: str):
    run = site.open_run()
    site.add(run, "a")

    assert death.at(PREPARED, "prepared*/a/1").of(site.repository, "dispatch") == KILLED
    assert f"refs/heads/orch/{run.name}/t/a/1.lock" in locks(site.repository)
    orch(site, again)

    assert site.states(run) == {"a": "active"}
    is_whole(site)


def test_a_merged_base_that_was_being_kept_is_kept(site: Site, death: Death):
    run = site.open_run()
    site.add(run, "a", "b")
    for item in site.dispatch(run).values():
        site.deliver(item, f"{item['key']}.txt")
    site.scheduler.reconcile(run)
    site.add(run, "c", depends_on=["a", "b"])

    assert death.at(PREPARED, "prepared*refs/orch/base").of(site.repository, "dispatch") == KILLED
    assert any(name.startswith("refs/orch/base") for name in locks(site.repository))
    orch(site, "reconcile")

    assert site.states(run)["c"] == "active"
    is_whole(site)


@pytest.mark.parametrize("again", ["reconcile", "dispatch"])
def test_work_that_was_being_accepted_is_accepted(site: Site, death: Death, again: str):
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "new.txt")

    assert death.at(PREPARED, "prepared*refs/orch/heads").of(site.repository, "reconcile") == KILLED
    assert any(name.startswith("refs/orch/heads") for name in locks(site.repository))
    orch(site, again)

    assert site.states(run) == {"a": "succeeded"}
    is_whole(site)


@pytest.mark.parametrize("again", ["reconcile", "integrate"])
def test_an_integration_whose_branch_was_being_moved_goes_on(site: Site, death: Death, again: str):
    run = accepted(site)

    assert death.at(PREPARED, "prepared*/integration").of(site.repository, "integrate") == KILLED
    assert f"refs/heads/orch/{run.name}/integration.lock" in locks(site.repository)
    orch(site, again)

    orch(site, "integrate")
    assert git(site.repository, "show", f"orch/{run.name}/integration:new.txt") == "new"
    is_whole(site)


@pytest.mark.parametrize("again", ["reconcile", "cleanup"])
def test_a_branch_that_was_being_deleted_is_deleted(site: Site, death: Death, again: str):
    run = accepted(site)
    orch(site, "integrate")
    git(site.repository, "pack-refs", "--all")

    assert death.at(PREPARED, "prepared*/a/1").of(site.repository, "cleanup") == KILLED
    assert "packed-refs.lock" in locks(site.repository)
    orch(site, again)

    orch(site, "cleanup")
    assert branches(site.repository) <= {f"orch/{run.name}/integration", "main"}
    is_whole(site)


@pytest.mark.parametrize("again", ["reconcile", "cleanup"])
def test_a_salvage_that_was_being_kept_is_made_again(site: Site, death: Death, again: str):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    Path(item["worktree"], "left.txt").write_text("precious\n")
    site.fail(item, fatal=True)
    site.scheduler.reconcile(run)

    death.at(PREPARED, "prepared*refs/orch/salvage")
    assert death.of(site.repository, "cleanup", "--force") == KILLED
    assert any(name.startswith("refs/orch/salvage") for name in locks(site.repository))
    orch(site, again)

    orch(site, "cleanup", "--force")
    assert git(site.repository, "show", f"refs/orch/salvage/{item['id']}:left.txt") == "precious"
    is_whole(site)


def test_a_git_that_was_killed_alone_leaves_nothing(site: Site, tmp_path: Path):
    accepted(site)
    death = Death(tmp_path / "death", alone=True).at(PREPARED, "prepared*/integration")

    death.of(site.repository, "integrate")
    orch(site, "integrate")

    is_whole(site)


def test_a_git_that_was_killed_alone_in_a_checkout_leaves_it_as_it_was(
    forwarding: "Forwarding", tmp_path: Path
):
    repository = forwarding.site.repository
    death = Death(tmp_path / "death", alone=True).while_writing(repository, "zz-last.txt")

    assert death.of(repository, "integrate", "--onto", "main") == 11

    is_whole(forwarding.site)
    assert (repository / "changed.txt").read_text() == "before\n"
    forwarding.comes_forward()


# -- a working tree of the user's ------------------------------------------------------------


class Forwarding:
    """`integrate --onto main`, with main checked out; the work changes, adds, removes files."""

    def __init__(self, site: Site) -> None:
        self.site = site
        commit(site.repository, "changed.txt", "before\n")
        commit(site.repository, "gone.txt", "before\n")
        commit(site.repository, "swap", "a file\n")
        run = site.open_run()
        site.add(run, "a")
        item = site.dispatch(run)["a"]
        work = Path(item["worktree"])
        (work / "changed.txt").write_text("after\n")
        (work / "gone.txt").unlink()
        (work / "swap").unlink()
        (work / "swap").mkdir()
        (work / "swap" / "inside").write_text("a folder\n")
        (work / "link").symlink_to("changed.txt")
        (work / "zz-last.txt").write_text("after\n")
        site.deliver(item, "program", "#!/bin/sh\n")
        site.scheduler.reconcile(run)

    def killed(self, death: Death) -> None:
        assert death.of(self.site.repository, "integrate", "--onto", "main") == KILLED

    def comes_forward(self) -> None:
        """As if nothing had been."""
        done = orch(self.site, "integrate", "--onto", "main")
        assert done["onto"]["state"] in ("fast_forwarded", "up_to_date")
        assert (self.site.repository / "changed.txt").read_text() == "after\n"
        assert (self.site.repository / "swap" / "inside").is_file()
        assert not (self.site.repository / "gone.txt").exists()
        is_whole(self.site)


@pytest.fixture
def forwarding(site: Site) -> Forwarding:
    return Forwarding(site)


def half_forwarded(forwarding: Forwarding, death: Death) -> None:
    """Killed when all files but the last are there."""
    repository = forwarding.site.repository
    forwarding.killed(death.while_writing(repository, "zz-last.txt"))
    assert "index.lock" in locks(repository)
    assert (repository / "changed.txt").read_text() == "after\n"


@pytest.mark.parametrize("aged", [False, True])
def test_a_checkout_that_is_half_forwarded_is_put_back(
    forwarding: Forwarding, death: Death, aged: bool
):
    half_forwarded(forwarding, death)
    repository = forwarding.site.repository
    if aged:
        os.utime(repository / ".git" / "index.lock", (0, 0))

    orch(forwarding.site, "reconcile")

    assert (repository / "changed.txt").read_text() == "before\n"
    is_whole(forwarding.site)
    forwarding.comes_forward()


def test_a_checkout_that_is_half_forwarded_comes_forward_by_the_same_command(
    forwarding: Forwarding, death: Death
):
    half_forwarded(forwarding, death)

    forwarding.comes_forward()


def test_a_checkout_whose_lock_somebody_has_removed_is_put_back_all_the_same(
    forwarding: Forwarding, death: Death
):
    half_forwarded(forwarding, death)
    (forwarding.site.repository / ".git" / "index.lock").unlink()

    forwarding.comes_forward()


@pytest.mark.parametrize("name", ["changed.txt", "inside", "program"])
def test_a_checkout_is_put_back_wherever_git_was_killed_in_it(
    forwarding: Forwarding, death: Death, name: str
):
    """`inside` is of a folder that comes in the place of a file."""
    forwarding.killed(death.while_writing(forwarding.site.repository, name))
    orch(forwarding.site, "reconcile")

    is_whole(forwarding.site)
    forwarding.comes_forward()


@pytest.mark.parametrize("hook, words", [(INDEX_WRITTEN, ""), (PREPARED, "prepared*heads/main")])
def test_a_checkout_that_only_its_branch_is_missing_for_is_finished(
    forwarding: Forwarding, death: Death, hook: str, words: str
):
    forwarding.killed(death.at(hook, words))
    orch(forwarding.site, "reconcile")

    is_whole(forwarding.site)
    forwarding.comes_forward()


def test_what_somebody_changed_in_a_half_forwarded_checkout_stays(
    forwarding: Forwarding, death: Death
):
    half_forwarded(forwarding, death)
    repository = forwarding.site.repository
    (repository / "changed.txt").write_text("mine\n")
    (repository / "link").unlink()
    (repository / "link").write_text("mine, too\n")

    orch(forwarding.site, "reconcile")

    assert (repository / "changed.txt").read_text() == "mine\n"
    assert (repository / "link").read_text() == "mine, too\n"
    assert git(repository, "status", "--porcelain").split() == ["M", "changed.txt", "??", "link"]
    assert locks(repository) == []


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock", "index.lock"])
def test_a_lock_of_somebody_elses_leaves_the_checkout_as_it_was(forwarding: Forwarding, name: str):
    lock = forwarding.site.repository / ".git" / name
    lock.touch()

    done = orch(forwarding.site, "integrate", "--onto", "main", exit_code=11)

    assert done["onto"]["state"] == "refused"
    assert name in done["onto"]["reason"]
    assert lock.exists()
    assert git(forwarding.site.repository, "status", "--porcelain") == ""
    lock.unlink()
    forwarding.comes_forward()


def test_a_file_that_keeps_a_checkout_from_coming_forward_stays(forwarding: Forwarding):
    """Also when it is the very file that would have come."""
    (forwarding.site.repository / "zz-last.txt").write_text("after\n")

    orch(forwarding.site, "integrate", "--onto", "main", exit_code=11)

    assert (forwarding.site.repository / "zz-last.txt").read_text() == "after\n"
    assert (forwarding.site.repository / "changed.txt").read_text() == "before\n"
    assert locks(forwarding.site.repository) == []
