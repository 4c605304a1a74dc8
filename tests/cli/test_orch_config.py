"""`run init --config`: what a run was opened with holds for its tasks and is shown, but for
secrets."""

import json

import pytest

from support.commands import run
from support.orch_matrix import Enterprise
from support.runs import git

CONFIG = """\
checks: [make test]
max_attempts: 2
limits: {run_seconds: 60}
environment: {TOKEN: s3cret}
secrets: [TOKEN]
"""


@pytest.fixture
def project(tmp_path) -> Enterprise:
    enterprise = Enterprise(tmp_path / "project")
    (enterprise.folder / "run.yaml").write_text(CONFIG)
    return enterprise


def opened(project: Enterprise, *arguments: str, **options):
    return project.orch("run", "init", "--title", "T", "--json", *arguments, **options)


def test_the_config_of_a_run_is_shown_with_its_secrets_masked(project):
    opened(project, "--config", "run.yaml")
    ended = project.orch("run", "show", "--json")

    assert ended.data["config"]["checks"] == ["make test"]
    assert ended.data["config"]["environment"] == {"TOKEN": "***"}
    text = project.orch("run", "show")
    assert "config environment.TOKEN\t***\n" in text.text
    assert b"s3cret" not in ended.stdout + text.stdout


def test_a_task_that_says_nothing_has_the_settings_of_the_run(project):
    opened(project, "--config", "run.yaml")

    def add(key: str, *options: str):
        arguments = ("task", "add", "--task", key, "--title", "A", "--json", *options)
        return project.orch(*arguments).data["task"]

    plain = add("a")
    assert (plain["checks"], plain["max_attempts"]) == (["make test"], 2)
    assert (plain["max_infra_attempts"], plain["limits"]["run_seconds"]) == (3, 60)
    own = add("b", "--check", "true", "--max-attempts", "4", "--timeout", "5")
    assert (own["checks"], own["max_attempts"]) == (["true"], 4)
    assert own["limits"]["run_seconds"] == 5
    assert add("c", "--no-checks")["checks"] == []
    assert add("d", "--no-worktree")["checks"] == []


def test_a_wrong_config_opens_no_run_and_makes_no_database(tmp_path):
    project = Enterprise(tmp_path / "project")
    (project.folder / "run.yaml").write_text("cheks: []\nlfs: maybe\n")
    fresh = str(tmp_path / "fresh" / "bus.db")
    line = ("run", "init", "--title", "T", "--config", "run.yaml", "--db", fresh)
    ended = project.orch(*line)

    assert ended.code == 2
    assert (
        "run.yaml:1: cheks: there is no such key (did you mean `checks`?)" in ended.stderr.decode()
    )
    assert "run.yaml:2: lfs: " in ended.stderr.decode()
    assert not (tmp_path / "fresh").exists()
    problems = project.orch(*line, "--json").error["details"]["problems"]
    assert [problem["line"] for problem in problems] == [1, 2]


def test_the_same_key_with_another_config_is_a_conflict(project):
    arguments = ("--config", "run.yaml", "--key", "k")
    first = opened(project, *arguments)
    again = opened(project, *arguments)
    (project.folder / "run.yaml").write_text(CONFIG.replace("max_attempts: 2", "max_attempts: 4"))
    other = opened(project, *arguments)

    assert again.data["replayed"] is True
    assert again.data["run"] == first.data["run"]
    assert (other.code, other.error["code"]) == (4, "key_conflict")


def test_a_config_can_come_on_standard_input(project):
    ended = opened(project, "--config", "-", stdin=json.dumps({"lfs": "skip"}).encode())

    assert ended.code == 0
    assert project.orch("run", "show", "--json").data["config"]["lfs"] == "skip"


def test_a_repository_without_a_commit_is_refused_before_anything_is_made(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "plan.yaml").write_text("run: {title: T}\ntasks: [{task: a, title: A}]\n")

    for words in (("run", "init", "--title", "T"), ("plan", "import", "plan.yaml", "--new-run")):
        if words[0] == "plan":
            run("init", folder=folder)
        ended = run(*words, "--json", folder=folder, program="orch")
        assert (ended.code, ended.error["code"]) == (2, "usage")
        assert ended.error["message"].startswith("'HEAD' names no commit in ")
        assert ended.error["hint"] == "the repository needs a first commit"
        assert (folder / ".inbox").exists() == (words[0] == "plan")

    assert run("run", "list", "--all", "--json", folder=folder, program="orch").data["items"] == []
    without = run("run", "init", "--title", "T", "--no-repo", folder=folder, program="orch")
    assert without.code == 0


def test_an_empty_home_is_not_the_top_of_the_file_system(tmp_path):
    project = Enterprise(tmp_path / "project")

    ended = opened(project, HOME="", XDG_STATE_HOME="")

    assert (ended.code, ended.error["message"]) == (2, "HOME is empty")
    assert listed(project) == []
    assert opened(project, HOME="", XDG_STATE_HOME=str(tmp_path / "state")).code == 0
    root = ("--worktree-root", str(tmp_path / "trees"))
    assert opened(project, *root, HOME="", XDG_STATE_HOME="").code == 0


def listed(project: Enterprise):
    return project.orch("run", "list", "--all", "--json").data["items"]
