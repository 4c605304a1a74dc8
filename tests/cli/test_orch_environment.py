"""`orch` called from hooks, from other worktrees, without git, without a run, in a pipe."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.commands import command_path, run
from support.orch_matrix import Enterprise
from support.runs import add_task, branches, git, make_repository, worktree_paths


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


# -- hooks -----------------------------------------------------------------------------------


def test_called_from_a_hook_it_leaves_the_commit_its_content(project: Enterprise):
    project.tasks("a")
    hook = project.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\nenv | grep ^GIT_INDEX_FILE= >'{project.state}-variables'\n"
        f"exec '{command_path('orch')}' dispatch --allow-dirty --json"
        f" >'{project.state}-dispatched' 2>&1\n"
    )
    hook.chmod(0o755)
    (project.folder / "new.txt").write_text("new")
    (project.folder / "README.md").write_text("changed")
    git(project.folder, "add", "new.txt")
    git(project.folder, "commit", "-q", "-m", "Mine", "new.txt", "README.md")

    assert "GIT_INDEX_FILE=" in Path(f"{project.state}-variables").read_text(), "that is the case"
    dispatched = Path(f"{project.state}-dispatched").read_text()
    assert '"ok":true' in dispatched
    names = git(project.folder, "show", "--name-only", "--format=", "HEAD").split()
    assert sorted(names) == ["README.md", "new.txt"]
    assert git(project.folder, "status", "--porcelain") == ""
    (worktree,) = worktree_paths(project.folder)
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "ls-files") == "README.md"


def test_the_variables_of_another_repository_lead_nobody_astray(project: Enterprise, tmp_path):
    other = make_repository(tmp_path / "other")
    project.tasks("a")

    done = project.orch(
        "dispatch",
        "--json",
        GIT_DIR=str(other / ".git"),
        GIT_WORK_TREE=str(other),
        GIT_INDEX_FILE=str(other / ".git" / "index"),
        GIT_OBJECT_DIRECTORY="/nowhere",
        GIT_CEILING_DIRECTORIES=str(project.folder),
    )

    assert done.data["items"][0]["state"] == "offered"
    assert branches(other) == set()
    assert len(branches(project.folder)) == 1


# -- places ----------------------------------------------------------------------------------


def test_called_inside_a_linked_worktree_it_means_the_same_run(project: Enterprise, tmp_path):
    project.tasks("a", "b")
    linked = tmp_path / "linked"
    git(project.folder, "worktree", "add", "-q", "-b", "dev", str(linked))

    shown = project.orch("run", "show", "--json", folder=linked).data["run"]
    assert shown["repository"] == str(project.folder)
    opened = project.orch("run", "init", "--title", "T", "--json", folder=linked).data
    assert opened["run"]["repository"] == str(project.folder)
    assert opened["database_created"] is False


def test_a_run_in_a_fresh_project_makes_the_database_and_says_so(tmp_path: Path):
    folder = make_repository(tmp_path / "project")

    def init(*more: str):
        line = ("run", "init", "--title", "T", *more)
        return run(*line, folder=folder, program="orch", XDG_STATE_HOME=str(tmp_path / "state"))

    told = init()
    assert f"made the database {folder}/.inbox/bus.db" in told.stderr.decode()
    assert init("--json").data["database_created"] is False
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "wrong",
    [
        ("--base", "no-such"),
        ("--repo", "/"),
        ("--repo", "/nowhere"),
        ("--repo", ""),
        ("--title", " "),
        ("--no-repo", "--repo", "."),
        ("--worktree-root", "inside"),
        ("--max-parallel", "0"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_makes_no_database(tmp_path: Path, wrong: tuple[str, ...]):
    folder = make_repository(tmp_path / "project")
    line = ("run", "init", "--title", "T", *wrong, "--json")
    ended = run(*line, folder=folder, program="orch", XDG_STATE_HOME=str(tmp_path / "state"))

    assert ended.error["code"] in ("usage", "git_failed")
    assert sorted(p.name for p in folder.iterdir()) == [".git", "README.md"]


def test_without_git_it_says_so(project: Enterprise, tmp_path: Path):
    project.tasks("a")
    empty = tmp_path / "bin"
    empty.mkdir()

    for line in (("run", "init", "--title", "T"), ("dispatch",)):
        error = project.orch(*line, "--json", PATH=str(empty)).error
        assert error["code"] == "git_missing", line
    assert project.orch("status", "--json", PATH=str(empty)).data["counts"] == {"ready": 1}


def test_an_old_git_is_refused_by_name(project: Enterprise, tmp_path: Path):
    old = tmp_path / "bin"
    old.mkdir()
    (old / "git").write_text(
        f'#!/bin/sh\ncase " $* " in *" version "*) echo "git version 2.37.1"; exit;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    (old / "git").chmod(0o755)
    path = f"{old}{os.pathsep}{os.environ['PATH']}"

    error = project.orch("run", "init", "--title", "T", "--json", PATH=path).error
    assert error["code"] == "git_missing"
    assert error["message"] == "git version 2.37.1 is too old: git 2.38 or newer is needed"


# -- which run -------------------------------------------------------------------------------


def test_the_run_comes_from_the_option_the_environment_or_is_the_only_one(project: Enterprise):
    assert project.orch("status", "--json").error["code"] == "not_found"
    first, second = project.open_run(), project.open_run()

    error = project.orch("status", "--json").error
    assert (error["code"], error["details"]["runs"]) == ("usage", [first, second])
    by_variable = project.orch("status", "--json", ORCH_RUN=first).data
    assert by_variable["run"]["name"] == first
    by_option = project.orch("status", "--run", second, "--json", ORCH_RUN=first).data
    assert by_option["run"]["name"] == second
    assert project.orch("status", "--json", ORCH_RUN="").error["code"] == "usage"
    listed = project.orch("run", "list", "--json").data["items"]
    assert [r["name"] for r in listed] == [first, second]


# -- what people see -------------------------------------------------------------------------


def many_states(project: Enterprise) -> None:
    """A run with long names and hostile texts."""
    name = project.open_run()
    with project.scheduler() as scheduler:
        chosen = scheduler.run(name)
        add_task(scheduler, chosen, key_name="k" * 40, title="[red]t[/red] " * 10)
        add_task(scheduler, chosen, key_name="after", title="A", depends_on=["k" * 40])
        scheduler.dispatch(chosen)


def test_status_for_a_pipe_has_full_values_in_columns(project: Enterprise):
    many_states(project)
    lines = [line.split("\t") for line in project.orch("status").text.splitlines()]

    assert [len(line) for line in lines] == [3, 6, 6]
    assert lines[1][:4] == ["k" * 40, "offered", "1", "workers"]
    assert lines[2][5] == "waits for " + "k" * 40


def test_status_for_a_terminal_fits_80_columns_and_reads_no_markup(project: Enterprise):
    many_states(project)
    shown = project.orch("status", FORCE_COLOR="1", NO_COLOR="1", COLUMNS="80").text

    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in shown
    assert "[red]" in shown
    assert "k" * 40 in shown
    assert "offered" in shown
    assert "waiting" in shown


def test_a_reader_that_goes_away_is_no_failure_of_ours(project: Enterprise):
    many_states(project)
    piped = subprocess.run(
        ["sh", "-c", f"'{command_path('orch')}' status | true; exit 0"],
        cwd=project.folder,
        capture_output=True,
    )
    assert piped.stderr == b""
