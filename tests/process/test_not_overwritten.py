"""What no command may write over, and what a worker's command must not inherit."""

import os
import shutil
import stat
import subprocess

import pytest

from support.commands import Project
from support.workers import Worker, show


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def refused(project, *arguments):
    ended = project.json(*arguments)
    assert ended.code == 2, ended
    assert ended.value["error"]["code"] == "usage"


def artifact_of(project):
    path = project.folder / "x"
    path.write_text("hi")
    with project.bus("leader") as bus:
        return bus.send(to="q", subject="s", attach=[str(path)]).thread.id


@pytest.mark.parametrize("name", ["bus.db", "bus.db-wal", "bus.db-journal", "gate", "bells/x"])
def test_an_artifact_is_never_written_over_the_database(project, name):
    thread = artifact_of(project)
    target = project.folder / ".inbox" / name
    refused(project, "show", thread, "--artifact", "x", "--output", str(target))
    with project.bus("leader") as bus:
        assert bus.show(thread).thread.state == "pending"


def test_an_artifact_is_never_written_over_another_projects_database(project, tmp_path):
    other = Project(tmp_path / "other")
    theirs = artifact_of(other)
    refused(project, "show", artifact_of(project), "--artifact", "x", "--output", str(other.path))
    with other.bus("leader") as bus:
        assert bus.show(theirs).thread.state == "pending"


def test_a_link_to_the_database_is_seen_through(project):
    thread = artifact_of(project)
    link = project.folder / "link"
    link.symlink_to(project.path)
    refused(project, "show", thread, "--artifact", "x", "--output", str(link))


def test_a_backup_replaces_no_pipe_and_no_other_projects_database(project, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refused(project, "backup", "--force", str(pipe))
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    other = Project(tmp_path / "other")
    artifact_of(other)
    refused(project, "backup", "--force", str(other.path))
    with other.bus("leader") as bus:
        assert len(bus.list().items) == 1


def test_a_commands_git_works_in_its_worktree_whatever_the_worker_inherited(project, tmp_path):
    for name in ("other", "work"):
        subprocess.run(["git", "init", "--quiet", str(tmp_path / name)], check=True)
    with project.bus("leader") as bus:
        thread = bus.send(
            to="workers", subject="s", payload=f'{{"worktree": "{tmp_path / "work"}"}}'
        ).thread.id
    hook = {
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_INDEX_FILE": str(tmp_path / "other" / ".git" / "index"),
        "GIT_AUTHOR_NAME": "Kept",
    }
    script = 'git rev-parse --show-toplevel; echo "$GIT_AUTHOR_NAME"'
    with Worker(project, "--once", command=("sh", "-c", script), environment=hook) as worker:
        worker.hear("finished")
    top, author = (show(project, thread).messages[-1].body or "").split()
    assert (os.path.realpath(top), author) == (os.path.realpath(tmp_path / "work"), "Kept")


def test_a_worktree_whose_repository_is_away_gets_no_database_of_its_own(tmp_path):
    main, linked = tmp_path / "main", tmp_path / "linked"
    project = Project(main)
    for command in (
        ("init", "--quiet"),
        ("commit", "--quiet", "--allow-empty", "--message", "one"),
        ("worktree", "add", "--quiet", str(linked), "-b", "linked"),
    ):
        subprocess.run(["git", *command], cwd=main, check=True, capture_output=True)
    shutil.move(main, tmp_path / "away")
    project.folder = linked
    for verb in ("init", "where", "list"):
        ended = project.json(verb)
        assert (ended.code, ended.value["error"]["code"]) == (6, "no_database"), ended
    assert not (linked / ".inbox").exists()
