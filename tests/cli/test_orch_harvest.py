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


def left_in(project: Enterprise, *arguments: str, config: str | None = None) -> dict:
    """An attempt that `dispatch` was called for with these arguments, done, with a file that was
    left; as `attempt show` has it after it was looked at."""
    given = []
    if config is not None:
        (project.folder.parent / "run.yaml").write_text(config)
        given = ["--config", str(project.folder.parent / "run.yaml")]
    assert project.orch("run", "init", "--title", "A run", *given).code == 0
    assert project.orch("task", "add", "--task", "a", "--title", "Do a").code == 0
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
    "arguments, config, state",
    [
        ((), None, "rejected"),
        (("--harvest",), None, "succeeded"),
        ((), "harvest: true\n", "succeeded"),
        (("--no-harvest",), "harvest: true\n", "rejected"),
        ((), "harvest: false\n", "rejected"),
        (("--harvest",), "harvest: false\n", "succeeded"),
    ],
)
def test_whoever_says_it_last_decides(project: Enterprise, arguments, config, state):
    assert left_in(project, *arguments, config=config)["state"] == state


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
