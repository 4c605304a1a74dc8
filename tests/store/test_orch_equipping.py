"""A worker finds what the run's config promises: copied files, a set-up that has run, submodules,
LFS as wished; where that fails, nothing is left."""

import os
import stat
from pathlib import Path

import pytest

from inbox_orch.orch.runs.config import Config, Setup
from support.limits import limited_once_written
from support.runs import Site, branches, commit, git, make_repository, worktree_paths


def equipped(site: Site, **config) -> dict:
    """The attempt of a task in a run with this config."""
    run = site.open_run(config=Config(**config))
    site.add(run, "a")
    return site.dispatch(run, allow_dirty=True)["a"]


def ignored(site: Site, name: str, content: bytes) -> Path:
    """A file of the user's that git ignores."""
    commit(site.repository, ".gitignore", f"{name}\n")
    path = site.repository / name
    path.write_bytes(content)
    return path


# -- copies ----------------------------------------------------------------------------------


def test_a_listed_file_is_there_with_its_bytes_and_mode(site: Site):
    ignored(site, ".env", b"SECRET=\xff\r\n").chmod(0o600)

    item = equipped(site, copy=(".env",))

    copied = Path(item["worktree"], ".env")
    assert copied.read_bytes() == b"SECRET=\xff\r\n"
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
    assert item["details"] is None
    assert git(item["worktree"], "status", "--porcelain") == ""


def test_the_files_come_from_the_main_working_tree_wherever_it_is_called(site: Site):
    ignored(site, ".env", b"main")
    linked = site.folder / "linked"
    git(site.repository, "worktree", "add", "-q", "--detach", str(linked))
    (linked / ".env").write_bytes(b"linked")
    run = site.open_run(repository=linked, config=Config(copy=(".env",)))
    site.add(run, "a")

    item = site.dispatch(run, within=str(linked))["a"]

    assert Path(item["worktree"], ".env").read_bytes() == b"main"


def test_what_is_missing_is_named_to_the_leader_and_no_failure(site: Site):
    item = equipped(site, copy=(".env",))

    assert item["state"] == "offered"
    assert item["details"] == {"not_copied": [{"path": ".env", "reason": "it is not there"}]}


def test_a_copy_that_git_does_not_ignore_is_not_held_against_the_worker(site: Site):
    (site.repository / "local.txt").write_text("local")
    item = equipped(site, copy=("local.txt",))
    assert item["details"] == {"untracked_at_start": ["local.txt"]}
    run = site.scheduler.run(item["run"])

    Path(item["worktree"], "a.txt").write_text("a")
    git(item["worktree"], "add", "a.txt")
    git(item["worktree"], "commit", "-q", "-m", "A")
    site.done(item)
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "succeeded"}


def test_another_untracked_file_is_still_held_against_the_worker(site: Site):
    (site.repository / "local.txt").write_text("local")
    item = equipped(site, copy=("local.txt",))
    run = site.scheduler.run(item["run"])
    Path(item["worktree"], "forgotten.txt").write_text("forgotten")
    site.done(item)
    site.scheduler.reconcile(run)

    (attempt,) = site.attempts(run, "a")
    assert attempt.state == "rejected"
    assert "forgotten.txt" in str(attempt.reason)
    assert "local.txt" not in str(attempt.reason)


# -- set-up ----------------------------------------------------------------------------------


def test_the_set_up_runs_once_in_the_worktree_after_the_copies(site: Site):
    ignored(site, ".env", b"blue")
    log = site.folder / "log"
    script = f"pwd >>'{log}'; cat .env >>'{log}'; printf %s \"$ORCH_TASK $COLOUR\" >>'{log}'"

    item = equipped(site, copy=(".env",), setup=Setup(script), environment={"COLOUR": "red"})

    assert item["state"] == "offered", item["reason"]
    assert log.read_text() == f"{item['worktree']}\nbluea red"


def test_a_set_up_that_fails_leaves_nothing_and_says_why(site: Site):
    setup = Setup("echo first; touch made; mkdir -m 555 closed; echo it breaks >&2; exit 3")

    item = equipped(site, setup=setup)

    assert item["state"] == "provision_failed"
    assert item["reason"] == "The set-up ended with exit status 3: it breaks"
    details = item["details"]
    assert (details["code"], details["exit_status"]) == ("setup_failed", 3)
    assert details["output_tail"] == "first\nit breaks\n"
    assert_nothing_is_left(site, item)
    task = site.task(site.scheduler.run(item["run"]), "a")
    assert (task.state, task.work_failures, task.infra_failures) == ("pending", 0, 1)


def test_a_set_up_that_takes_too_long_is_ended_with_its_whole_group(site: Site, monkeypatch):
    limited_once_written(monkeypatch, site.folder / "pid")
    setup = Setup(f"(echo $$; exec sleep 600) & echo $! >'{site.folder}/pid'; wait", 0.5)

    item = equipped(site, setup=setup)

    assert item["state"] == "provision_failed"
    assert item["reason"].startswith("The set-up was stopped after 0.5 s, its time limit")
    assert not os.path.exists(f"/proc/{(site.folder / 'pid').read_text().strip()}/cwd")
    assert_nothing_is_left(site, item)


def test_the_output_of_a_set_up_is_bounded_and_its_secrets_are_masked(site: Site):
    setup = Setup('yes "$TOKEN" | head -c 3000000; exit 1')

    item = equipped(site, setup=setup, environment={"TOKEN": "hunter2"}, secrets=("TOKEN",))

    details = item["details"]
    assert details["output_bytes"] > 1_000_000
    assert len(details["output_tail"]) <= 4096
    assert "hunter2" not in str(item)
    assert "***" in details["output_tail"]


def test_what_a_set_up_leaves_is_not_held_against_the_worker(site: Site):
    item = equipped(site, setup=Setup("echo locked >some.lock"))

    assert item["details"] == {"untracked_at_start": ["some.lock"]}


def test_gits_variables_do_not_reach_the_set_up(site: Site, monkeypatch):
    monkeypatch.setenv("GIT_DIR", str(site.repository / ".git"))

    item = equipped(site, setup=Setup(f"git rev-parse --show-toplevel >'{site.folder}/top'"))

    assert (site.folder / "top").read_text().strip() == item["worktree"]


def assert_nothing_is_left(site: Site, item: dict) -> None:
    assert branches(site.repository) == set()
    assert worktree_paths(site.repository) == set()
    assert not os.path.lexists(item["worktree"])
    assert site.open_intents(site.scheduler.run(item["run"])) == []


# -- submodules and LFS ----------------------------------------------------------------------


@pytest.fixture
def nested(site: Site, monkeypatch) -> Site:
    """A repository with a submodule that has one of its own."""
    settings = site.folder / "gitconfig"
    settings.write_text('[protocol "file"]\n\tallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    inner = make_repository(site.folder / "inner")
    outer = make_repository(site.folder / "outer")
    for folder, library in ((outer, inner), (site.repository, outer)):
        git(folder, "submodule", "--quiet", "add", str(library), "lib")
        git(folder, "commit", "-q", "-m", "Add a submodule")
    return site


def test_submodules_come_when_the_config_says_so(nested: Site):
    config = (nested.repository / ".git" / "config").read_bytes()

    item = equipped(nested, submodules=True)

    assert item["state"] == "offered", item["reason"]
    assert Path(item["worktree"], "lib", "lib", "README.md").exists()
    assert git(item["worktree"], "status", "--porcelain") == ""
    assert (nested.repository / ".git" / "config").read_bytes() == config


def test_submodules_come_to_a_repository_that_has_not_set_them_up(nested: Site):
    clone = nested.folder / "clone"
    git(nested.folder, "clone", "-q", str(nested.repository), str(clone))
    config = (clone / ".git" / "config").read_bytes()
    run = nested.open_run(repository=clone, config=Config(submodules=True))
    nested.add(run, "a")

    item = nested.dispatch(run)["a"]

    assert Path(item["worktree"], "lib", "lib", "README.md").exists()
    assert (clone / ".git" / "config").read_bytes() == config


def test_a_submodule_that_cannot_be_had_leaves_nothing(nested: Site):
    (nested.folder / "outer").rename(nested.folder / "gone")

    item = equipped(nested, submodules=True)

    assert item["state"] == "provision_failed"
    assert item["reason"].startswith("git submodule failed")
    assert_nothing_is_left(nested, item)


POINTER = b"version https://git-lfs.github.com/spec/v1\n"


@pytest.fixture
def lfs(site: Site) -> Site:
    """A repository with a file in LFS, whose program is not there."""
    commit(site.repository, ".gitattributes", "*.bin filter=lfs\n")
    commit(site.repository, "large.bin", POINTER.decode())
    # Older than the index, so that no `git status` has to ask the program about it.
    os.utime(site.repository / "large.bin", (0, 0))
    git(site.repository, "status")
    git(site.repository, "config", "filter.lfs.smudge", "git-lfs-that-is-missing smudge %f")
    git(site.repository, "config", "filter.lfs.process", "git-lfs-that-is-missing process")
    git(site.repository, "config", "filter.lfs.required", "true")
    return site


def test_files_in_lfs_stay_pointers_when_the_config_says_so(lfs: Site):
    item = equipped(lfs, lfs="skip")

    assert item["state"] == "offered", item["reason"]
    assert Path(item["worktree"], "large.bin").read_bytes() == POINTER


def test_files_in_lfs_that_cannot_be_had_leave_nothing(lfs: Site):
    item = equipped(lfs)

    assert item["state"] == "provision_failed"
    assert "git-lfs-that-is-missing" in item["reason"]
    assert_nothing_is_left(lfs, item)
