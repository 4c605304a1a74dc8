"""Asking for what workers leave to be committed, and being told of it, on the command line."""

import json
from pathlib import Path

import pytest

from support.orch_matrix import Enterprise, the_run
from support.terminals import show


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


def left_in(
    project: Enterprise, *arguments: str, config: str | None = None, task: tuple[str, ...] = ()
) -> dict:
    """An attempt that `dispatch` was called for with these arguments, at a task that was added
    with those of `task`, done, with a file that was left; as `attempt show` has it after it was
    looked at."""
    given = []
    if config is not None:
        (project.folder.parent / "run.yaml").write_text(config)
        given = ["--config", str(project.folder.parent / "run.yaml")]
    assert project.orch("run", "init", "--title", "A run", *given).code == 0
    assert project.orch("task", "add", "--task", "a", "--title", "Do a", *task).code == 0
    done = project.orch("dispatch", "--json", *arguments)
    (item,) = done.value["data"]["items"]
    Path(item["worktree"], "new.txt").write_text("new\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.done(item["thread"], token, body="I wrote it.")
    assert project.orch("reconcile").code == 0
    shown: dict = project.orch("attempt", "show", "a", "--json").value["data"]["attempt"]
    return shown


@pytest.mark.parametrize(
    "arguments, config, task, state",
    [
        ((), None, (), "rejected"),
        (("--harvest",), None, (), "succeeded"),
        ((), "harvest: true\n", (), "succeeded"),
        (("--no-harvest",), "harvest: true\n", (), "rejected"),
        ((), "harvest: false\n", (), "rejected"),
        (("--harvest",), "harvest: false\n", (), "succeeded"),
        ((), None, ("--harvest",), "succeeded"),
        ((), "harvest: true\n", ("--no-harvest",), "rejected"),
        (("--no-harvest",), None, ("--harvest",), "rejected"),
    ],
)
def test_whoever_says_it_last_decides(project: Enterprise, arguments, config, task, state):
    assert left_in(project, *arguments, config=config, task=task)["state"] == state


def test_a_task_says_it_in_its_json_and_in_a_plan(project: Enterprise):
    project.tasks("a", "b", "c")
    assert project.orch("task", "edit", "b", "--no-harvest").stdout == b"b\tharvest\n"
    assert project.orch("task", "edit", "c", "--harvest").code == 0

    items = project.orch("status", "--json").value["data"]["items"]
    assert [item.get("harvest") for item in items] == [None, False, True]
    assert "harvest" not in items[0], "a task that does not say it is as before there was that"
    plan = project.folder.parent / "plan.yaml"
    plan.write_bytes(project.orch("plan", "export").stdout)
    assert plan.read_text().count("harvest: ") == 2
    again = project.orch("plan", "import", str(plan), "--new-run", "--json")
    name = again.value["data"]["run"]["name"]
    assert project.orch("plan", "export", "--run", name).stdout == plan.read_bytes()


def test_without_a_worktree_there_is_nothing_to_harvest(project: Enterprise):
    project.tasks("a")
    line = ("task", "add", "--task", "b", "--title", "B", "--no-worktree")

    refused = project.orch(*line, "--harvest")
    assert (refused.code, b"leave --harvest out" in refused.stderr) == (2, True)
    assert project.orch(*line).code == 0
    assert project.orch("task", "edit", "b", "--harvest").code == 2


@pytest.mark.parametrize("said, state", [((), "failed"), (("--harvest",), "succeeded")])
def test_a_drive_with_workers_leaves_it_to_the_task(project: Enterprise, said, state):
    assert project.orch("run", "init", "--title", "A run").code == 0
    for key, own in (("a", ("--no-harvest",)), ("b", ())):
        line = ("task", "add", "--task", key, "--title", key, "--max-attempts", "1")
        assert project.orch(*line, *own).code == 0

    project.orch("drive", "--worker", "echo 1 > new.txt", *said)

    items = project.orch("status", "--json").value["data"]["items"]
    assert [item["standing"] for item in items] == [state, "succeeded"]


def test_without_it_no_word_of_it_is_anywhere(project: Enterprise):
    attempt = left_in(project)

    assert set(attempt["details"]) == {"dirty_paths", "change_summary"}
    shown = [
        project.orch(*line)
        for line in (
            ("run", "show", "--json"),
            ("attempt", "show", "a"),
            ("report",),
            ("report", "--html"),
            ("plan", "export"),
        )
    ]
    assert [b"harvest" in done.stdout.lower() for done in shown] == [False] * 5


def test_what_was_done_is_told_in_one_line(project: Enterprise):
    attempt = left_in(project, "--harvest")
    commit = attempt["head_commit"]

    assert attempt["details"]["harvested"] == {"commit": commit, "files": 1}
    line = f"1 file that the worker had left uncommitted, as {commit}"
    shown = project.orch("attempt", "show", "a").stdout.decode().splitlines()
    assert f"harvested\t{line}" in shown
    told = project.orch("report").stdout.decode().splitlines()
    assert f"harvested a/1\t{line}" in told
    assert "<th>Harvested</th>" in project.orch("report", "--html").stdout.decode()


@pytest.mark.parametrize("line", [("attempt", "show", "a"), ("report",)])
def test_on_a_terminal_too(project: Enterprise, line):
    left_in(project, "--harvest")

    screen = show(*line, folder=project.folder, program="orch")

    assert "harvested" in screen.plain
    assert "1 file that the worker had left uncommitted" in " ".join(screen.plain.split())


def test_a_config_with_it_is_shown_and_goes_on_in_a_plan(project: Enterprise):
    left_in(project, config="harvest: true\n")

    shown = project.orch("run", "show", "--json").value["data"]["config"]
    assert shown["harvest"] is True
    plan = project.orch("plan", "export").stdout
    (project.folder.parent / "plan.yaml").write_bytes(plan)
    line = ("plan", "import", str(project.folder.parent / "plan.yaml"), "--new-run", "--json")
    again = project.orch(*line).value["data"]["run"]["name"]
    shown = project.orch("run", "show", "--run", again, "--json").value["data"]["config"]
    assert shown["harvest"] is True


def test_a_key_stands_for_what_was_asked_for(project: Enterprise):
    project.tasks("a")
    assert project.orch("dispatch", "--key", "k", "--harvest").code == 0

    again = project.orch("dispatch", "--key", "k", "--harvest", "--json")
    assert again.value["data"]["replayed"] is True
    other = project.orch("dispatch", "--key", "k", "--no-harvest", "--json")
    assert other.value["error"]["code"] == "key_conflict"


def test_what_was_dispatched_before_an_upgrade_is_judged_as_it_was(project: Enterprise):
    item = project.dispatched()

    with project.scheduler() as scheduler:
        (attempt,) = scheduler.show_task(the_run(scheduler), "a").attempts
    assert attempt.details is None
    assert json.dumps(item["details"]) == "null"
