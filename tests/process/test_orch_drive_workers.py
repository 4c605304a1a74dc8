"""`orch drive --worker`: it starts the workers, and none outlives it."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise, the_run
from support.processes import until
from support.runs import add_task, git
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive

COMMITS = 'set -e; echo "$INBOX_AGENT" > "${PWD##*/}.txt"; git add .; git commit -qm work'


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


def hanging(pids: Path) -> str:
    """A command that writes its process's number into a file of the folder `pids`, and stays."""
    pids.mkdir()
    return f"set -e; echo $$ > '{pids}/part'; mv '{pids}/part' '{pids}/'$$; exec sleep 600"


def begun(pids: Path) -> int:
    """The number of a hanging command's process, once there is one."""
    until(lambda: any(path.name.isdigit() for path in pids.iterdir()))
    return next(int(path.name) for path in pids.iterdir() if path.name.isdigit())


def start(project: Enterprise, *arguments: str) -> "subprocess.Popen[bytes]":
    """A drive that goes on."""
    return subprocess.Popen(
        [command_path("orch"), "drive", *arguments],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def workers_of(project: Enterprise) -> list[int]:
    """The processes of `inbox work` on the project's database."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"work" in words and any(str(project.folder).encode() in word for word in words):
            found.append(int(name))
    return found


def status(project: Enterprise) -> dict[str, Any]:
    """What `orch status` says."""
    found: dict[str, Any] = json.loads(project.orch("status", "--json").stdout)["data"]
    return found


def counts(project: Enterprise) -> dict[str, int]:
    """How many tasks are in which state."""
    found: dict[str, int] = status(project)["counts"]
    return found


def threads(project: Enterprise) -> dict[str, Any]:
    """State and holder of the thread of each task's newest attempt."""
    with project.scheduler() as scheduler:
        rows = scheduler.status(the_run(scheduler)).rows
        return {
            row.standing.task.key: (row.thread.state, row.thread.holder)
            for row in rows
            if row.thread is not None
        }


# -- the work is done ------------------------------------------------------------------------


def test_one_command_does_a_whole_run(project: Enterprise):
    project.tasks("a", "b", "c", "d", "e")

    ended = project.orch("drive", "--worker", COMMITS, "--slots", "3")

    assert (ended.code, ended.stderr) == (0, b"")
    assert counts(project) == {"succeeded": 5}
    assert workers_of(project) == []


LEAVES = 'echo "$INBOX_AGENT" > "${PWD##*/}.txt"'


@pytest.mark.parametrize("home", ["", "/nonexistent"])
def test_a_worker_that_commits_nothing_has_its_work_committed(project: Enterprise, home: str):
    project.tasks("a", "b")

    ended = project.orch("drive", "--worker", LEAVES, HOME=home, USER="", EMAIL="")

    assert ended.code == 0, ended
    assert counts(project) == {"succeeded": 2}
    with project.scheduler() as scheduler:
        shown = scheduler.show_task(the_run(scheduler), "b")
    head = str(shown.standing.task.accepted_head)
    told = git(project.folder, "log", "--format=%an <%ae> %s", head).split("\n")
    assert told[:2] == [f"echo <echo@inbox-orch.invalid> Do {key}" for key in "ba"]
    assert git(project.folder, "ls-tree", "--name-only", head).split() == [
        *("README.md", "a-1.txt", "b-1.txt")
    ]


def test_a_drive_can_be_told_to_leave_what_was_left(project: Enterprise):
    project.tasks("a")

    ended = project.orch("drive", "--worker", LEAVES, "--no-harvest", "--wait", "30", "--json")

    with project.scheduler() as scheduler:
        first = scheduler.show_task(the_run(scheduler), "a").attempts[0]
    assert ended.code != 0
    assert str(first.reason).startswith("dirty: not committed: a-1.txt")


def test_what_was_dispatched_without_it_is_not_harvested_by_a_drive(project: Enterprise):
    project.dispatched()

    project.orch("drive", "--worker", LEAVES, "--until", "change", "--wait", "30")

    with project.scheduler() as scheduler:
        first = scheduler.show_task(the_run(scheduler), "a").attempts[0]
    assert "harvest" not in str(first.details)


def test_each_mailbox_has_its_worker_and_one_serves_the_rest(project: Enterprise):
    project.tasks("a")
    with project.scheduler() as scheduler:
        add_task(scheduler, the_run(scheduler), key_name="b", title="B", mailbox="special")
        add_task(scheduler, the_run(scheduler), key_name="c", title="C", mailbox="third")

    special = f"special=env sh -c '{COMMITS}'"
    ended = project.orch("drive", "--worker", COMMITS, "--worker", special)

    assert ended.code == 0
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        heads = {key: scheduler.show_task(run, key).standing.task.accepted_head for key in "abc"}
    by = {key: git(project.folder, "show", f"{head}:{key}-1.txt") for key, head in heads.items()}
    assert by == {"a": "worker", "b": "env", "c": "worker"}


def test_workers_serve_the_mailbox_that_the_drive_sends_to(project: Enterprise):
    project.tasks("a")

    assert project.orch("drive", "--to", "others", "--worker", COMMITS).code == 0


def test_a_mailbox_that_comes_later_is_served_too(project: Enterprise):
    project.tasks("a")
    adds = "orch task add --task b --title B --to late --depends-on a"
    command = f"set -e; case $PWD in */a-1) {command_path('orch')[:-4]}{adds};; esac; {COMMITS}"

    assert project.orch("drive", "--worker", command).code == 0
    assert counts(project) == {"succeeded": 2}


def test_a_worker_that_dies_is_started_again(project: Enterprise, tmp_path: Path):
    project.tasks("a")
    running = start(project, "--worker", hanging(tmp_path / "pids"))
    command = begun(tmp_path / "pids")
    (worker,) = workers_of(project)

    os.kill(worker, signal.SIGKILL)

    until(lambda: workers_of(project) not in ([], [worker]))
    until(lambda: not is_alive(command))
    running.terminate()
    assert running.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert workers_of(project) == []


# -- its end ---------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_drive_that_is_told_to_end_ends_its_workers_which_hand_back(
    project: Enterprise, tmp_path: Path, number: int
):
    project.tasks("a")
    running = start(project, "--worker", hanging(tmp_path / "pids"))
    command = begun(tmp_path / "pids")

    running.send_signal(number)

    assert running.wait(PATIENCE_SECONDS) == 128 + number
    assert not is_alive(command)
    assert workers_of(project) == []
    assert threads(project) == {"a": ("pending", None)}


def test_workers_of_a_drive_that_is_killed_end_and_hand_back(project: Enterprise, tmp_path: Path):
    project.tasks("a")
    running = start(project, "--worker", hanging(tmp_path / "pids"))
    command = begun(tmp_path / "pids")

    running.kill()
    running.wait()

    until(lambda: not is_alive(command) and not workers_of(project))
    assert threads(project) == {"a": ("pending", None)}
    assert project.orch("drive", "--worker", COMMITS).code == 0


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--worker", "no-such-agent -p"), "the worker's command 'no-such-agent' is not found"),
        (("--worker", "A=1 ./x"), "the worker's command '1' is not found"),
        (("--worker", ""), "--worker is empty"),
        (("--worker", "  "), "a worker needs a command"),
        (("--worker", "reviewers="), "a worker needs a command"),
        (("--worker", "sh -c 'x"), "cannot be read"),
        (("--slots", "2"), "--slots is for the workers that --worker starts"),
        (("--worker", "true", "--slots", "65"), "64"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_sent(
    project: Enterprise, arguments: tuple[str, ...], said: str
):
    project.tasks("a")

    refused = project.orch("drive", *arguments, "--json")

    assert (refused.code, json.loads(refused.stdout)["error"]["code"]) == (2, "usage")
    assert said in json.loads(refused.stdout)["error"]["message"]
    assert threads(project) == {}
