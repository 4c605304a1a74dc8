"""A disk that cannot be written for a moment: refused by name, nothing half done, and all goes on
afterwards. Where the database is in use it can be read meanwhile."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.buses import refused
from support.commands import HeldThread, Project, command_path
from support.disks import small_disk
from support.timing import PATIENCE_SECONDS

WRITING = {
    "send": ("send", "--agent", "s", "--to", "workers", "--subject", "s", "--body", "b"),
    "claim": ("claim", "--agent", "w2", "--mailbox", "workers"),
    "fetch": ("fetch", "--agent", "w2", "--mailbox", "workers"),
    "reply": ("reply", "{thread}", "--agent", "s", "--body", "b"),
    "renew": ("renew", "{thread}", "--token", "{token}"),
    "update": ("update", "{thread}", "--token", "{token}", "--body", "b"),
    "done": ("done", "{thread}", "--token", "{token}", "--body", "b"),
    "fail": ("fail", "{thread}", "--token", "{token}", "--body", "b"),
    "release": ("release", "{thread}", "--token", "{token}"),
    "cancel": ("cancel", "{thread}", "--agent", "s"),
    "prune": ("prune", "--older-than", "0"),
}
READING = {
    "list": ("list",),
    "show": ("show", "{thread}"),
    "peek": ("fetch", "--agent", "w2", "--mailbox", "workers", "--peek"),
    "stats": ("stats",),
    "doctor": ("doctor", "--verify"),
    "watch": ("watch", "--after", "0", "--wait", "0"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Any]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
def project(disk: Any) -> Project:
    return Project(disk.path / "project")


def test_commands_that_write_are_refused_and_change_nothing(project, disk):
    held = project.claim()
    project.send()
    commands = {name: filled(WRITING[name], held) for name in WRITING}
    before = project.contents()

    with disk.read_only():
        codes = {name: project.json(*commands[name]).error["code"] for name in commands}
    assert codes == dict.fromkeys(WRITING, "read_only")
    assert project.contents() == before

    assert project.json(*commands["done"]).code == 0


def test_a_database_in_use_can_be_read_meanwhile(project, disk):
    held = project.claim()
    project.send()

    with project.bus("w1"), disk.read_only():
        codes = {name: project.run(*filled(READING[name], held)).code for name in READING}
    assert codes == dict.fromkeys(READING, 0)


def filled(command: tuple[str, ...], held: HeldThread) -> list[str]:
    """The command for this thread."""
    return [word.format(**held._asdict()) for word in command]


def test_a_bus_that_was_open_before_writes_again_afterwards(project, disk):
    with project.bus("s") as bus:
        with disk.read_only(), refused("read_only"):
            bus.send(to="workers", subject="s", body="lost")
        bus.send(to="workers", subject="s", body="kept")
        assert [m.body for m, _ in bus.fetch(mailboxes=["workers"]).items] == []

    with project.bus("w") as bus:
        assert [m.body for m, _ in bus.fetch(mailboxes=["workers"]).items] == ["kept"]


def test_a_worker_waits_until_the_result_can_be_written(project, disk, tmp_path):
    thread = project.send()
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    worker = subprocess.Popen(
        [
            *(command_path(), "work", "--agent", "w1", "--mailbox", "workers", "--once"),
            *("--lease", "60", "--", "sh", "-c", f"read line < '{tmp_path}/go'; echo it"),
        ],
        cwd=project.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stderr is not None
        assert any(line.startswith("started") for line in worker.stdout)
        with disk.read_only():
            os.write(go, b"\n")
            assert any("trying again" in line for line in worker.stderr)
        assert worker.wait(PATIENCE_SECONDS) == 0
    os.close(go)

    assert project.json("show", thread).data["thread"]["state"] == "done"
