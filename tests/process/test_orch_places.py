"""`orch` in every kind of repository and from every kind of place: the right repository and
base, or a clear error; and the config of git is what it was."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from support.commands import Project, command_path
from support.orch_matrix import Enterprise
from support.runs import branches, commit, git, make_repository, worktree_paths

POINTER = "version https://git-lfs.github.com/spec/v1\n"
NO_HOOKS = ("-c", f"core.hooksPath={os.devnull}")
FILE_PROTOCOL = ("-c", "protocol.file.allow=always")


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


def dispatched(project: Enterprise, *options: str, **variables: str) -> dict:
    """The attempt of `orch dispatch`, judged: it is on its base and clean, and nothing else in
    the repository has changed."""
    config = config_of(project.folder)
    data = project.orch("dispatch", *options, "--json", **variables).data
    (item,) = data["items"]
    assert item["state"] == "offered"
    assert git(item["worktree"], "rev-parse", "HEAD") == item["base_commit"]
    # The test's own look must not be held up by a hook either.
    assert git(item["worktree"], *NO_HOOKS, "status", "--porcelain") == ""
    assert config_of(project.folder) == config
    return item


def config_of(folder: Path) -> dict[str, bytes]:
    """Every config file of the repository, byte for byte."""
    common = Path(git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    files = [common / "config", common / "config.worktree", common / "info" / "exclude"]
    return {path.name: path.read_bytes() for path in files if path.exists()}


def with_hook(project: Enterprise, name: str, body: str) -> None:
    hook = project.folder / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{body}\n")
    hook.chmod(0o755)


# -- hooks and settings ----------------------------------------------------------------------


@pytest.mark.parametrize("body", ["exit 3", "exec sleep 600"])
@pytest.mark.parametrize("name", ["post-checkout", "post-index-change", "reference-transaction"])
def test_a_hook_that_fails_or_hangs_is_no_affair_of_a_dispatch(
    project: Enterprise, name: str, body: str
):
    project.tasks("a")
    with_hook(project, name, body)

    began = time.monotonic()
    dispatched(project)
    assert time.monotonic() - began < 60


def test_hooks_elsewhere_do_not_run_either(project: Enterprise, tmp_path: Path):
    project.tasks("a")
    with_hook(project, "post-checkout", f"touch '{tmp_path}/ran'; exit 3")
    (project.folder / ".git" / "hooks").rename(tmp_path / "hooks")
    git(project.folder, "config", "core.hooksPath", str(tmp_path / "hooks"))

    item = dispatched(project)

    assert not (tmp_path / "ran").exists()
    # They are the user's, and run for whoever works there.
    subprocess.run(["git", "switch", "-q", "--detach"], cwd=item["worktree"], capture_output=True)
    assert (tmp_path / "ran").exists()


def test_a_file_monitor_is_not_started(project: Enterprise, tmp_path: Path):
    project.tasks("a")
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexec sleep 600\n")
    monitor.chmod(0o755)
    git(project.folder, "config", "core.fsmonitor", str(monitor))

    data = project.orch("dispatch", "--json").data

    assert data["items"][0]["state"] == "offered"
    assert not (tmp_path / "ran").exists()


def test_line_ends_are_as_the_user_has_set_them(project: Enterprise):
    git(project.folder, "config", "core.autocrlf", "true")
    commit(project.folder, "two.txt", "one\ntwo\n")
    project.tasks("a")

    item = dispatched(project)

    assert Path(item["worktree"], "two.txt").read_bytes() == b"one\r\ntwo\r\n"


def test_a_filter_of_a_program_that_is_missing_leaves_nothing(project: Enterprise):
    use_lfs(project)
    project.tasks("a")

    ended = project.orch("dispatch", "--json")

    assert ended.error["code"] == "degraded"
    (item,) = ended.value["data"]["items"]
    assert "git-lfs-that-is-missing" in item["reason"]
    assert branches(project.folder) == set()
    assert worktree_paths(project.folder) == set()


def use_lfs(project: Enterprise) -> None:
    """A file in LFS, without the program."""
    (project.folder / ".gitattributes").write_text("*.bin filter=lfs\n")
    commit(project.folder, "large.bin", POINTER)
    # Older than the index, so that no `git status` has to ask the program about it.
    os.utime(project.folder / "large.bin", (0, 0))
    git(project.folder, "status")
    git(project.folder, "config", "filter.lfs.smudge", "git-lfs-that-is-missing smudge %f")
    git(project.folder, "config", "filter.lfs.process", "git-lfs-that-is-missing process")
    git(project.folder, "config", "filter.lfs.required", "true")


def test_only_the_files_of_a_sparse_checkout_come(project: Enterprise):
    for name in ("here", "there"):
        commit(project.folder, f"{name}/file.txt", name)
    git(project.folder, "sparse-checkout", "set", "here")
    project.tasks("a")

    item = dispatched(project)

    worktree = Path(item["worktree"])
    assert (worktree / "here" / "file.txt").exists()
    assert not (worktree / "there").exists()
    assert git(project.folder, "sparse-checkout", "list") == "here"


def test_the_config_of_one_worktree_stays_its_own(project: Enterprise):
    git(project.folder, "config", "extensions.worktreeConfig", "true")
    git(project.folder, "config", "--worktree", "user.name", "Only here")
    project.tasks("a")

    item = dispatched(project)

    assert git(project.folder, "config", "user.name") == "Only here"
    assert os.path.isdir(item["worktree"])


def test_names_that_differ_only_in_case_get_their_files(project: Enterprise):
    commit(project.folder, "readme.md", "another one\n")
    project.tasks("a")

    item = dispatched(project)

    assert sorted(git(item["worktree"], "ls-files").splitlines()) == ["README.md", "readme.md"]


# -- kinds of repositories -------------------------------------------------------------------


class Existing(Enterprise):
    """A repository that somebody else has made, with a database."""

    def __init__(self, folder: Path) -> None:
        Project.__init__(self, folder)
        self.state = folder.parent / "state"


def test_a_shallow_clone_is_dispatched_from_what_it_has(tmp_path: Path):
    origin = make_repository(tmp_path / "origin")
    commit(origin, "second.txt", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin}", "shallow")
    project = Existing(tmp_path / "shallow")
    project.tasks("a")

    item = dispatched(project)

    assert item["base_commit"] == git(origin, "rev-parse", "HEAD")
    error = project.orch("run", "init", "--title", "T", "--base", "HEAD~1", "--json").error
    assert (error["code"], error["details"]["revision"]) == ("usage", "HEAD~1")


def test_a_bare_repository_is_dispatched_and_says_what_it_cannot_copy(tmp_path: Path):
    origin = make_repository(tmp_path / "origin")
    git(tmp_path, "clone", "-q", "--bare", str(origin), "bare.git")
    project = Existing(tmp_path / "bare.git")
    project.tasks("a")

    item = dispatched(project)

    assert item["base_commit"] == git(origin, "rev-parse", "HEAD")
    assert Path(item["worktree"], "README.md").read_text() == "A project.\n"


def test_a_repository_with_no_commit_is_refused_until_it_has_one(tmp_path: Path):
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init", "-q", "--initial-branch", "main")
    project = Existing(folder)

    error = project.orch("run", "init", "--title", "T", "--json").error
    assert (error["code"], error["hint"]) == ("usage", "the repository needs a first commit")
    assert branches(folder) == set()
    assert project.orch("run", "list", "--all", "--json").data["items"] == []

    commit(folder, "first.txt", "first")
    project.tasks("a")
    dispatched(project)


@pytest.fixture
def with_submodule(project: Enterprise, tmp_path: Path) -> Enterprise:
    """A repository with a submodule that has one of its own."""
    (tmp_path / "gitconfig").write_text('[protocol "file"]\n\tallow = always\n')
    inner, outer = make_repository(tmp_path / "inner"), make_repository(tmp_path / "outer")
    for folder, library in ((outer, inner), (project.folder, outer)):
        git(folder, *FILE_PROTOCOL, "submodule", "--quiet", "add", str(library), "lib")
        git(folder, "commit", "-q", "-m", "Add a submodule")
    return project


def test_a_repository_with_submodules_is_dispatched_without_them(with_submodule: Enterprise):
    with_submodule.tasks("a")

    item = dispatched(with_submodule)

    assert list(Path(item["worktree"], "lib").iterdir()) == []


# -- kinds of places -------------------------------------------------------------------------


def test_the_base_is_what_the_place_of_the_call_means(project: Enterprise, tmp_path: Path):
    git(tmp_path, "clone", "-q", "--bare", str(project.folder), "origin.git")
    git(project.folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(project.folder, "fetch", "-q", "origin")
    git(project.folder, "remote", "set-head", "origin", "main")
    linked = tmp_path / "linked"
    git(project.folder, "worktree", "add", "-q", "-b", "dev", str(linked))
    tip = commit(linked, "dev.txt", "dev")
    project.tasks("a", "b")

    item = dispatched(project, "a", folder=linked)

    facts = (item["base_ref"], item["base_source"], item["base_commit"])
    assert facts == ("HEAD", "HEAD", tip)
    shown = project.orch("dispatch", "--dry-run", "--base", "origin/main", "b", "--json")
    assert shown.error["code"] == "invalid_state"  # it waits for `a`
    opened = project.orch("run", "init", "--title", "T", "--base", "origin/main", "--json").data
    project.orch("task", "add", "--run", opened["run"]["name"], "--task", "c", "--title", "C")
    other = dispatched(project, "--run", opened["run"]["name"], folder=linked)
    facts = (other["base_ref"], other["base_source"], other["base_commit"])
    assert facts == ("origin/main", "run", git(project.folder, "rev-parse", "origin/main"))


@pytest.mark.parametrize("how", [["-a"], ["README.md"], ["-c"]], ids=["all", "paths", "config"])
def test_called_inside_a_commit_hook_the_users_commit_is_what_it_was_to_be(
    project: Enterprise, tmp_path: Path, how: list[str]
):
    project.tasks("a")
    with_hook(
        project,
        "pre-commit",
        f"exec '{command_path('orch')}' dispatch --allow-dirty --json >'{tmp_path}/said' 2>&1",
    )
    base = git(project.folder, "rev-parse", "HEAD")
    (project.folder / "README.md").write_text("changed\n")
    settings = ("-c", "core.abbrev=12") if how == ["-c"] else ()
    what = ["-a"] if how == ["-c"] else how

    git(project.folder, *settings, "commit", "-q", "-m", "Mine", *what)

    assert '"ok":true' in (tmp_path / "said").read_text()
    assert git(project.folder, "show", "HEAD:README.md") == "changed"
    assert git(project.folder, "status", "--porcelain") == ""
    (worktree,) = worktree_paths(project.folder)
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "rev-parse", "HEAD") == base


@pytest.mark.parametrize(
    "variable", ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_PREFIX"]
)
def test_a_variable_of_gits_leads_nobody_astray(project: Enterprise, tmp_path: Path, variable: str):
    other = make_repository(tmp_path / "other")
    project.tasks("a")
    places = {"GIT_WORK_TREE": other, "GIT_INDEX_FILE": other / ".git" / "index"}

    item = dispatched(project, **{variable: str(places.get(variable, other / ".git"))})

    assert item["base_commit"] == git(project.folder, "rev-parse", "HEAD")
    assert branches(other) == set()
    assert git(other, "status", "--porcelain") == ""
