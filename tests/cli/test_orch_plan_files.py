"""`plan import` and `plan export` as processes: files, standard input, what is told of problems."""

import shlex
from pathlib import Path

import pytest

from support.commands import run
from support.orch_matrix import Enterprise
from support.runs import make_repository

PLAN = """\
run: {title: From a plan}
tasks:
  - {task: a, title: "yes"}
  - {task: b, title: Second, depends_on: [a], body: "tw\\u00e9\\n\\x1b[31m"}
"""


@pytest.fixture
def project(tmp_path) -> Enterprise:
    enterprise = Enterprise(tmp_path / "project")
    (enterprise.folder / "plan.yaml").write_text(PLAN)
    return enterprise


def test_an_export_imports_again_through_a_pipe(project):
    project.orch("plan", "import", "plan.yaml", "--new-run", "--json")
    text = project.orch("plan", "export")
    again = project.orch("plan", "import", "-", "--new-run", "--json", stdin=text.stdout)

    assert again.data["run_opened"] is True
    name = again.data["run"]["name"]
    assert project.orch("plan", "export", "--run", name).stdout == text.stdout
    as_json = project.orch("plan", "export", "--run", name, "--format", "json")
    third = project.orch("plan", "import", "-", "--new-run", "--json", stdin=as_json.stdout)
    other = project.orch("plan", "export", "--run", third.data["run"]["name"])
    assert other.stdout == text.stdout


def test_an_export_goes_into_a_file_whole(project):
    project.orch("plan", "import", "plan.yaml", "--new-run")
    ended = project.orch("plan", "export", "--output", "out.yaml", "--json")

    assert ended.data["path"] == str(project.folder / "out.yaml")
    assert ended.data["plan"]["tasks"][1]["depends_on"] == ["a"]
    assert (project.folder / "out.yaml").read_bytes() == project.orch("plan", "export").stdout
    refused = project.orch("plan", "export", "--output", str(project.path), "--json")
    assert refused.code == 2


def test_an_export_holds_nothing_that_drives_a_terminal(project):
    project.orch("plan", "import", "plan.yaml", "--new-run")

    assert b"\x1b" not in project.orch("plan", "export").stdout


def test_problems_are_told_by_line_and_nothing_is_added(project):
    project.open_run()
    (project.folder / "plan.yaml").write_text(PLAN.replace("[a]", "[aa, b]"))
    ended = project.orch("plan", "import", "plan.yaml")

    assert ended.code == 2
    told = ended.stderr.decode().splitlines()
    assert told[0] == (
        "plan.yaml:4: tasks[1].depends_on[0]: there is no task `aa` (did you mean `a`?)"
    )
    assert told[1].startswith("plan.yaml:4: tasks[1].depends_on[1]: task `b` cannot wait for")
    assert "plan.yaml has 2 problems" in told[2]
    assert project.orch("status", "--json").data["items"] == []


def test_a_cycle_is_refused_with_its_path(project):
    project.open_run()
    text = "tasks:\n- {task: a, title: A, depends_on: [b]}\n- {task: b, title: B, depends_on: [a]}"
    error = project.orch("plan", "import", "-", "--json", stdin=text.encode()).error

    assert error["code"] == "cycle"
    assert error["details"]["problems"][0]["cycle"] == ["a", "b", "a"]
    assert "that closes a cycle: a -> b -> a" in error["message"]


def test_a_dry_run_of_a_new_run_opens_none(project):
    ended = project.orch("plan", "import", "plan.yaml", "--new-run", "--dry-run", "--json")

    assert (ended.data["run"], ended.data["task_count"]) == (None, 2)
    assert project.orch("run", "list", "--json").data["items"] == []


@pytest.mark.parametrize("options", [
    ("--new-run", "--run", "x"),
    ("--repo", "."),
    ("--worktree-root", "x"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(project, options):
    assert project.orch("plan", "import", "plan.yaml", *options).code == 2


def test_a_plan_that_names_no_run_opens_none(project):
    ended = project.orch("plan", "import", "-", "--new-run", "--json", stdin=b"tasks: []")
    assert "says nothing of a run" in ended.error["message"]


@pytest.mark.parametrize("where", [(), ("--db", "a b.db")], ids=["found", "named"])
def test_a_plan_for_a_new_run_makes_no_database_and_says_what_does(tmp_path: Path, where):
    folder = make_repository(tmp_path / "project")
    (folder / "plan.yaml").write_text(PLAN)
    line = ("plan", "import", "plan.yaml", "--new-run", *where, "--json")

    ended = run(*line, program="orch", folder=folder, XDG_STATE_HOME=str(tmp_path))

    assert (ended.error["code"], list(folder.glob("**/*.db"))) == ("no_database", [])
    told = ended.error["hint"].split("`")[1]
    assert told == shlex.join(("inbox", "init", *where))
    assert run(*shlex.split(told)[1:], folder=folder).code == 0
    again = run(*line, program="orch", folder=folder, XDG_STATE_HOME=str(tmp_path))
    assert again.data["task_count"] == 2
