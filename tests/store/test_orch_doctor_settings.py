"""`orch doctor` warns of what in a repository matters for worktrees, and of a bad git."""

import os
import shutil
from pathlib import Path

import pytest

from support.runs import Site, commit, git, make_repository


def warnings(site: Site, name: str) -> tuple[str, ...]:
    """What a check warns of."""
    (check,) = [c for c in site.scheduler.doctor().checks if c.name == name]
    assert check.status == ("warning" if check.items else "ok")
    return check.items


@pytest.fixture
def opened(site: Site) -> Site:
    """A site with a run."""
    site.open_run()
    return site


def test_a_plain_repository_gives_no_warning(opened: Site):
    assert warnings(opened, "settings") == ()


def test_hooks_elsewhere_are_reported(opened: Site):
    git(opened.repository, "config", "core.hooksPath", ".husky")

    (warning,) = warnings(opened, "settings")
    assert f"{opened.repository}: core.hooksPath is .husky" in warning


def test_a_filter_whose_program_is_missing_is_reported(opened: Site):
    git(opened.repository, "config", "filter.lfs.process", "no-such-git-lfs filter-process")
    git(opened.repository, "config", "filter.lfs.required", "true")

    (warning,) = warnings(opened, "settings")
    assert "filter lfs needs no-such-git-lfs, which is not on PATH" in warning
    assert "lfs: skip" in warning


def test_a_filter_whose_program_is_there_or_not_required_is_not(opened: Site):
    git(opened.repository, "config", "filter.a.smudge", "cat")
    git(opened.repository, "config", "filter.a.required", "true")
    git(opened.repository, "config", "filter.b.smudge", "no-such-program")

    assert warnings(opened, "settings") == ()


def test_submodules_are_reported(opened: Site):
    library = make_repository(opened.folder / "library")
    allow = ("-c", "protocol.file.allow=always")
    git(opened.repository, *allow, "submodule", "--quiet", "add", str(library), "lib")

    (warning,) = warnings(opened, "settings")
    assert "submodules: true" in warning


def test_submodules_of_a_bare_repository_are_reported_too(site: Site):
    commit(site.repository, ".gitmodules", "")
    git(site.folder, "clone", "-q", "--bare", str(site.repository), "bare.git")
    site.open_run(repository=site.folder / "bare.git")

    assert len(warnings(site, "settings")) == 1


@pytest.mark.parametrize("name, content", [("HEAD", "0" * 40 + "\n"), ("locked", "initializing")])
def test_a_worktree_that_somebodys_git_left_half_made_is_named(
    opened: Site, name: str, content: str
):
    git(opened.repository, "worktree", "add", "-q", "--detach", str(opened.folder / "mine"))
    assert warnings(opened, "half-made worktrees") == ()
    entry = opened.repository / ".git" / "worktrees" / "mine"

    (entry / name).write_text(content)

    assert warnings(opened, "half-made worktrees") == (str(entry),)


@pytest.mark.parametrize("version, status", [("2.51.0", "warning"), ("2.51.1", "ok")])
def test_a_git_that_is_known_to_be_bad_is_reported(
    opened: Site, monkeypatch, version: str, status: str
):
    folder = opened.folder / "bin"
    folder.mkdir()
    Path(folder, "git").write_text(
        f"""#!/bin/sh
case " $* " in *" version "*) echo "git version {version}"; exit ;; esac
exec {shutil.which("git")} "$@"
"""
    )
    Path(folder, "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    (check,) = [c for c in opened.scheduler.doctor().checks if c.name == "git"]
    assert (check.status, version in check.text) == (status, True)


def test_old_locks_of_git_are_reported_and_stay(opened: Site):
    common = opened.repository / ".git"
    (common / "HEAD.lock").touch()
    lock = common / "refs" / "heads" / "main.lock"
    lock.touch()
    assert warnings(opened, "git's locks") == ()

    os.utime(lock, (0, 0))

    assert warnings(opened, "git's locks") == (str(lock),)
    assert lock.exists()
