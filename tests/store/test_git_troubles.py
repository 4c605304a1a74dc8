"""What git fails for is named by what the system told git, when that is no fault of the work."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

import pytest

from inbox_orch.orch.git import commands
from inbox_orch.orch.git.commands import git
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.git.stale import forget_lock
from support.buses import refused
from support.disks import small_disk
from support.runs import Site


def say(folder: Path, words: str) -> None:
    """Make a git whose `status` says so and fails."""
    program = folder / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" status "*) echo "error: {words}" >&2; exit 128;; esac\n'
        f'exec "{shutil.which("git")}" "$@"\n'
    )
    program.chmod(0o700)


@pytest.mark.parametrize(
    "number, code",
    [
        (errno.ENOSPC, "disk_full"),
        (errno.EDQUOT, "disk_full"),
        (errno.EROFS, "read_only"),
        (errno.EACCES, "git_failed"),
    ],
)
def test_a_shortage_that_git_meets_has_its_own_name(tmp_path, monkeypatch, number, code):
    say(tmp_path, os.strerror(number))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    with refused(code) as failure:
        git(str(tmp_path), "status")

    assert os.strerror(number) in failure.value.message
    assert failure.value.details["status"] == 128


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "KILL"])
def test_a_git_that_is_ended_from_outside_is_no_verdict_on_the_work(
    site: Site, tmp_path, monkeypatch, name
):
    """By Ctrl-C in a terminal, say, where it belongs to the same group as we do."""
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    program = tmp_path / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" status "*) kill -{name} $$;; esac\n'
        f'exec "{shutil.which("git")}" "$@"\n'
    )
    program.chmod(0o700)

    with monkeypatch.context() as outside:
        outside.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        with refused("git_failed") as failure:
            site.scheduler.reconcile(run)
    assert f"it was ended by SIG{name}" in failure.value.message
    assert site.attempts(run, "a")[-1].state == "submitted"

    site.scheduler.reconcile(run)
    assert site.attempts(run, "a")[-1].state == "succeeded"


def test_where_git_does_not_say_why_the_disk_is_asked(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        git(str(disk.path), "init", "--quiet")
        known = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
        git(str(disk.path), *known, "commit", "--quiet", "--allow-empty", "--message", "one")

        with disk.read_only():
            with refused("read_only"):
                git(str(disk.path), "update-ref", "refs/heads/folder/name", "HEAD")
            with refused("git_failed"):
                git(str(disk.path), "rev-parse", "--verify", "no-such-name", reads=True)

        git(str(disk.path), "update-ref", "refs/heads/folder/name", "HEAD")


def test_where_git_does_not_say_that_the_disk_is_full_it_is_asked(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        git(str(disk.path), "init", "--quiet")
        known = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
        git(str(disk.path), *known, "commit", "--quiet", "--allow-empty", "--message", "one")

        filling = disk.path / "filling"
        with disk.full(), open(filling, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x")
            with refused("disk_full"):
                git(str(disk.path), "update-ref", "refs/heads/folder/name", "HEAD")
            with refused("git_failed"):
                git(str(disk.path), "rev-parse", "--verify", "no-such-name", reads=True)
        filling.unlink()

        git(str(disk.path), "update-ref", "refs/heads/folder/name", "HEAD")


@pytest.mark.parametrize("age_seconds", [0, 3600])
def test_a_lock_that_a_git_has_left_on_a_ref_of_ours_goes_when_it_is_old(site: Site, age_seconds):
    repository = Repository(str(site.repository))
    head = repository.commit_of("HEAD")
    lock = Path(repository.common_directory, "refs/orch/heads/one.lock")
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (lock.stat().st_mtime - age_seconds,) * 2)

    with refused("git_failed") if age_seconds == 0 else contextlib.nullcontext():
        repository.keep("refs/orch/heads/one", head)

    assert repository.ref_commit("refs/orch/heads/one") == (head if age_seconds else None)
    assert lock.exists() == (age_seconds == 0)


def test_a_lock_on_somebody_elses_ref_stays(site: Site):
    with pytest.raises(AssertionError):
        forget_lock(str(site.repository / ".git"), "refs/heads/main")


def test_work_is_not_rejected_because_the_disk_cannot_be_written(site: Site, tmp_path, monkeypatch):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "file")

    with monkeypatch.context() as meanwhile:
        say(tmp_path, os.strerror(errno.EROFS))
        meanwhile.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        with refused("read_only"):
            site.scheduler.reconcile(run)
    assert site.states(run)["a"] != "failed"

    site.scheduler.reconcile(run)
    assert site.states(run)["a"] == "succeeded"


def test_a_repository_that_git_will_not_look_at_is_told_in_its_words(site: Site, monkeypatch):
    run = site.open_run()
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "file")

    with monkeypatch.context() as meanwhile:
        # As after `chown`: git asks of this variable in its own tests (t0033-safe-directory.sh).
        meanwhile.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        kept = {*commands.KEPT_VARIABLES, "GIT_TEST_ASSUME_DIFFERENT_OWNER"}
        meanwhile.setattr(commands, "KEPT_VARIABLES", kept)
        for asked in (
            lambda: site.leader().dispatch(run),
            lambda: site.leader().dispatch(run, base="main"),
            lambda: site.leader().reconcile(run),
            lambda: site.leader().integrate(run),
            lambda: site.leader().integrate(run, onto="main"),
        ):
            with refused("git_failed") as caught:
                asked()
            assert "dubious ownership" in caught.value.message
        found = {check.name: check for check in site.leader().doctor().checks}
        assert (found["repositories"].status, found["repositories"].total) == ("problem", 1)

    assert site.states(run) == {"a": "active", "b": "ready"}
    site.scheduler.reconcile(run)
    assert site.states(run)["a"] == "succeeded"
    (cleaned,) = site.scheduler.cleanup(run).items
    assert cleaned.action == "kept"


def test_a_repository_whose_files_do_not_lead_back_to_it_is_refused(site: Site):
    files = site.folder / "files"
    files.mkdir()
    apart = site.folder / "apart.git"
    git(str(site.folder), "clone", "-q", "--separate-git-dir", str(apart), str(site.repository),
        str(site.folder / "tree"))  # fmt: skip
    git(str(apart), "config", "core.worktree", str(files))

    with refused("usage"):
        Repository.at(str(apart))
    git(str(apart), "config", "--unset", "core.worktree")
    assert Repository.at(str(site.folder / "tree")).common_directory == str(apart)
