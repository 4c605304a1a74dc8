"""What counts for the user's git counts for `orch`, from wherever its settings come."""

import os
from pathlib import Path

import pytest

from support.commands import Outcome
from support.orch_matrix import Enterprise
from support.runs import git

EXPLICIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def opened(project: Enterprise, folder: Path, **options: str) -> Outcome:
    """A run of the repository that a folder lies in, with one attempt."""
    made = project.orch("run", "init", "--title", "T", "--json", folder=folder, **options)
    if made.code == 0:
        name = made.data["run"]["name"]
        given = {"folder": folder, **options}
        project.orch("task", "add", "--run", name, "--task", "a", "--title", "A", **given)
        dispatched = project.orch("dispatch", "--run", name, "--json", **given)
        assert dispatched.data["items"][0]["state"] == "offered"
        assert project.orch("integrate", "--run", name, "--onto", "main", **given).code == 0
        assert project.orch("doctor", **given).code == 0
        assert project.orch("cancel", "a", "--run", name, **given).code == 0
        assert project.orch("cleanup", "--run", name, **given).code == 0
    return made


def test_where_bare_repositories_must_be_named_others_are_worked_in(project: Enterprise):
    assert opened(project, project.folder, **EXPLICIT).code == 0


def test_a_bare_repository_is_worked_in_from_a_worktree_where_it_must_be_named(
    project: Enterprise, tmp_path: Path
):
    bare, linked = tmp_path / "bare.git", tmp_path / "linked"
    git(tmp_path, "clone", "-q", "--bare", str(project.folder), str(bare))
    git(bare, "worktree", "add", "-q", "-b", "mine", str(linked))

    made = opened(project, linked, **EXPLICIT)

    assert made.data["run"]["repository"] == str(bare)
    refused = opened(project, bare, **EXPLICIT)
    assert refused.error["code"] == "git_failed"
    assert "safe.bareRepository" in refused.error["message"]


def test_a_submodule_is_worked_in_where_bare_repositories_must_be_named(
    project: Enterprise, tmp_path: Path
):
    upper = tmp_path / "upper"
    git(tmp_path, "init", "-q", "--initial-branch=main", str(upper))
    git(upper, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(project.folder), "lower")  # fmt: skip

    assert opened(project, upper / "lower", **EXPLICIT).code == 0


@pytest.mark.parametrize("how", ["counted", "as by `git -c`"])
def test_settings_in_the_environment_count(project: Enterprise, tmp_path: Path, how: str):
    """A filter that only they make known, seen in the files of a new worktree."""
    (project.folder / ".gitattributes").write_text("*.txt filter=loud\n")
    (project.folder / "a.txt").write_text("quiet\n")
    git(project.folder, "add", "--all")
    git(project.folder, "commit", "-q", "-m", "Attributes")
    settings = {
        "counted": {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "filter.loud.smudge",
            "GIT_CONFIG_VALUE_0": "tr a-z A-Z",
        },
        "as by `git -c`": {"GIT_CONFIG_PARAMETERS": "'filter.loud.smudge'='tr a-z A-Z'"},
    }[how]
    project.tasks("a")

    done = project.orch("dispatch", "--json", **settings)

    assert Path(done.data["items"][0]["worktree"], "a.txt").read_text() == "QUIET\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("safe", [True, False])
def test_a_repository_of_somebody_elses_is_worked_in_where_the_environment_allows_it(
    project: Enterprise, safe: bool
):
    for folder, names, files in os.walk(project.folder):
        if ".inbox" in names:
            names.remove(".inbox")
        for name in (".", *names, *files):
            os.chown(os.path.join(folder, name), 12345, 12345)
    value = str(project.folder) if safe else "/elsewhere"
    allowed = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.abbrev",
        "GIT_CONFIG_VALUE_0": "12",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": value,
    }

    made = project.orch("run", "init", "--title", "T", "--json", **allowed)

    assert made.code == (0 if safe else 6)
    if safe:
        name = made.data["run"]["name"]
        project.orch("task", "add", "--run", name, "--task", "a", "--title", "A", **allowed)
        item = project.orch("dispatch", "--run", name, "--json", **allowed).data["items"][0]
        work = ("git", "-C", item["worktree"], "rev-parse", "HEAD")
        line = ("work", "--agent", "w1", "--mailbox", "workers", "--once")
        told = project.run(*line, "--", *work, folder=project.folder, **allowed)
        assert told.code == 0, told.stderr


def test_our_own_settings_add_to_those_of_the_environment(monkeypatch: pytest.MonkeyPatch):
    from inbox_orch.orch.git.commands import output_of, with_settings

    for name, value in EXPLICIT.items():
        monkeypatch.setenv(name, value)
    added = with_settings([("a.b", "ours"), ("safe.bareRepository", "all")])

    assert added == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_1": "a.b",
        "GIT_CONFIG_VALUE_1": "ours",
        "GIT_CONFIG_KEY_2": "safe.bareRepository",
        "GIT_CONFIG_VALUE_2": "all",
    }
    assert output_of("/", "config", "safe.bareRepository") == "explicit"


@pytest.mark.parametrize(
    "body, words",
    [
        ("echo 'agree to the licence first' >&2; exit 69", "agree to the licence first"),
        ("kill -9 $$", "it was ended by SIGKILL"),
        ("exit 3", "it exited with 3"),
    ],
)
def test_a_git_that_cannot_run_is_told_in_its_words(
    project: Enterprise, tmp_path: Path, body: str, words: str
):
    program = tmp_path / "programs" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    fresh = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    project.tasks("a")

    for line in (("run", "init", "--title", "T"), ("dispatch",)):
        ended = project.orch(*line, "--json", **fresh)
        assert (ended.code, ended.error["code"]) == (6, "git_failed")
        assert words in ended.error["message"]
    found = project.orch("doctor", "--json", **fresh)
    assert "git" in found.error["message"]
