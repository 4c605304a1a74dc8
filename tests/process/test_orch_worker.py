"""`orch worker`, and drives that start the workers that a config describes for roles."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.processes import until
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive

SH = shutil.which("sh")
WRITES = "set -e; echo done > done.txt; git add done.txt; git commit -qm Done"
APPROVES = """printf '{"verdict": "approve", "summary": "fine"}'"""
BLUEPRINT = """\
version: 1
id: pair
stages:
  - {id: write, type: agent, role: builder, goal: Write it., on_success: review, on_failure: fail}
  - {id: review, type: agent, role: critic, reviews: true, writes: false, goal: Look at it.,
     on_success: done, on_failure: fail}
"""


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository, and a config that says what the workers of two roles run."""
    found = Enterprise(tmp_path / "project")
    roles = {
        "builder": {"command": ["sh", "-c", WRITES]},
        "critic": {"mailbox": "critics", "command": ["sh", "-c", APPROVES]},
        "nobody": {"mailbox": "others"},
    }
    config = {"roles": roles, "finds": []}
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    (tmp_path / "pair.yaml").write_text(BLUEPRINT)
    return found


@pytest.fixture(autouse=True)
def night(project: Enterprise, tmp_path: Path) -> str:
    """The name of that run."""
    return opened(project, "night", tmp_path)


def opened(project: Enterprise, title: str, folder: Path) -> str:
    """The name of a new run with the config and the blueprint of this folder, and one task."""
    config, drawn = str(folder / "run.yaml"), str(folder / "pair.yaml")
    init = project.orch("run", "init", "--title", title, "--config", config)
    name = init.stdout.decode().split("\t")[0]
    task = ("--run", name, "--task", "a", "--title", "Do a", "--blueprint", drawn)
    assert project.orch("task", "add", *task).code == 0
    return name


def begin(project: Enterprise, *arguments: str) -> "subprocess.Popen[bytes]":
    """A command that goes on."""
    return subprocess.Popen(
        [command_path("orch"), *arguments],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_it_serves_each_role_with_its_command_until_the_run_is_over(
    project: Enterprise, night: str
):
    worker = begin(project, "worker")

    led = project.orch("drive", "--wait", str(PATIENCE_SECONDS))
    said, complaints = worker.communicate(timeout=PATIENCE_SECONDS)

    assert led.code == 0, led
    assert (worker.returncode, complaints) == (0, b"")
    assert said.decode().splitlines() == [
        f"builder\t{night}-builder\t-- {SH} -c '{WRITES}'",
        f"critic\tcritics\t-- {SH} -c {_quoted(APPROVES)}",
        f"outcome\t{night}\tsucceeded",
    ]
    shown = json.loads(project.orch("attempt", "show", "a/1", "--json").stdout)["data"]
    assert [visit["mailbox"] for visit in shown["visits"]][-2:] == [f"{night}-builder", "critics"]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\"'\"'") + "'"


def test_as_json_lines_the_last_is_the_outcome(project: Enterprise):
    ended = project.orch("worker", "--role", "critic", "--wait", "0.2", "--json")

    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.code == 8
    assert [(line["type"], line.get("role")) for line in lines] == [
        ("serving", "critic"),
        ("outcome", None),
    ]
    assert lines[1]["error"]["code"] == "timeout"


def test_a_drive_with_workers_starts_those_of_the_roles_too(project: Enterprise):
    led = project.orch("drive", "--worker", "false", "--wait", str(PATIENCE_SECONDS))

    assert led.code == 0, led


def test_told_to_end_it_ends_its_workers_and_they_hand_back_what_they_hold(
    project: Enterprise, tmp_path: Path
):
    begun = tmp_path / "begun"
    hangs = f"echo $$ > '{begun}.part'; mv '{begun}.part' '{begun}'; exec sleep 600"
    config = {"roles": {"builder": {"command": ["sh", "-c", hangs]}}, "finds": []}
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    other = opened(project, "other", tmp_path)
    project.orch("drive", other, "--wait", "0")
    worker = begin(project, "worker", other)
    until(begun.exists)
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE_SECONDS)

    assert worker.returncode == 128 + signal.SIGTERM
    assert not is_alive(int(begun.read_text()))
    with project.scheduler() as scheduler:
        (row,) = scheduler.status(scheduler.run(other)).rows
    assert row.thread is not None
    assert (row.thread.state, row.thread.holder) == ("pending", None)


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (("--role", "nobdy"), 3, "has builder, critic, nobody"),
        (("--role", "nobody"), 2, "does not say what the workers of role nobody run"),
    ],
)
def test_a_role_that_cannot_be_served_is_named(project: Enterprise, arguments, code, said):
    refused = project.orch("worker", *arguments)

    assert refused.code == code
    assert said in refused.stderr.decode()


def test_a_role_that_no_stage_has_is_said_to_have_no_work(project: Enterprise, tmp_path: Path):
    config = {"roles": {"other": {"command": ["true"]}}, "finds": []}
    (tmp_path / "run.yaml").write_text(json.dumps(config))
    name = opened(project, "idle", tmp_path)

    ended = project.orch("worker", name, "--wait", "0.05")

    assert ended.code == 8
    assert (
        f"no stage of run {name} has the role other: it has no work there" in ended.stderr.decode()
    )
