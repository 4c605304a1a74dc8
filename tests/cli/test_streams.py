"""Standard streams that are closed, full, left by their reader, or not blocking."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.commands import Project, command_path, silence
from support.timing import PATIENCE_SECONDS

SEND = ("send", "--to", "workers", "--subject", "s", "--agent", "leader")


def subjects(project: Project) -> list[str]:
    return [item["subject"] for item in project.json("list").data["items"]]


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_closed_stdout_is_told_on_stderr_and_the_command_was_done(project: Project, as_json):
    ended = project.run(*SEND, *(["--json"] if as_json else []), closed=(1,))

    assert ended.code == 1
    assert b"standard output is closed" in ended.stderr
    assert b"the same call again is safe" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert subjects(project) == ["s"]


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "text"])
def test_a_full_device_is_told_on_stderr_and_the_command_was_done(project: Project, as_json):
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [command_path(), *SEND, *(["--json"] if as_json else [])],
            cwd=project.folder,
            stdout=full,
            stderr=subprocess.PIPE,
        )

    assert ended.returncode == 1
    assert b"No space left on device" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert subjects(project) == ["s"]


def test_the_cursor_stays_when_what_was_fetched_could_not_be_written(project: Project):
    project.send()
    fetch = ("fetch", "--agent", "w1", "--mailbox", "workers")

    assert project.json(*fetch, closed=(1,)).code == 1

    assert len(project.json(*fetch).data["items"]) == 1
    assert project.json(*fetch).data["items"] == []


def test_an_error_keeps_its_exit_code_when_it_cannot_be_written(project: Project):
    stale = project.taken_over()

    ended = project.json("done", *stale.arguments, closed=(1,))

    assert ended.code == 7
    assert b"the token is not the current one" in ended.stderr


def test_every_stream_closed_still_does_the_work(project: Project):
    assert project.run(*SEND, closed=(0, 1, 2)).code == 1
    assert subjects(project) == ["s"]


def test_closed_stdin_is_no_empty_body(project: Project):
    ended = project.json(*SEND, "--body-file", "-", closed=(0,))

    assert ended.error["code"] == "usage"
    assert "standard input is closed" in ended.error["message"]
    assert subjects(project) == []


def test_no_command_waits_for_input(project: Project):
    """A prompt would hang. All other commands: `test_command_keeps_the_contract`."""
    with silence() as stdin:
        assert project.run(*SEND, stdin=stdin).code == 0


LONG_OUTPUTS = {
    "list": ("list",),
    "list_json": ("list", "--json"),
    "show": ("show", "THREAD", "--full"),
    "watch": ("watch", "--after", "0", "--wait", "30"),
    "export": ("export",),
    "schema": ("schema",),
    "help": ("--help",),
}


@pytest.mark.parametrize("arguments", LONG_OUTPUTS.values(), ids=LONG_OUTPUTS.keys())
def test_a_reader_that_goes_away_ends_it_quietly(project: Project, arguments):
    thread = project.send(body="line\n" * 100_000)
    arguments = [thread if argument == "THREAD" else argument for argument in arguments]
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ended = subprocess.run(
            [command_path(), *arguments],
            cwd=project.folder,
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_SECONDS,
        )
    finally:
        os.close(write_end)

    assert ended.returncode == 141
    assert ended.stderr == b""


def test_head_takes_its_line_and_the_rest_ends_quietly(project: Project):
    thread = project.send(body="line\n" * 100_000)
    script = '"$@" | head -1; echo ${PIPESTATUS[0]}'
    ended = subprocess.run(
        ["bash", "-c", script, "bash", command_path(), "show", thread, "--full"],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert ended.stdout.splitlines() == [f"thread\t{thread}", "141"]
    assert ended.stderr == ""


def test_a_pipe_that_was_left_non_blocking_is_waited_for(project: Project):
    """A parent may share a pipe that it has set to O_NONBLOCK; a full one is no failure."""
    thread = project.send(body="z" * 1_000_000)
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with subprocess.Popen(
        [command_path(), "show", thread, "--full", "--json"],
        cwd=project.folder,
        stdout=write_end,
    ) as process:
        os.close(write_end)
        with open(read_end, "rb") as reader:
            value = json.load(reader)
        assert process.wait() == 0

    assert len(value["data"]["messages"][0]["body"]) == 1_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/PID/stat")
def test_stdin_that_is_left_non_blocking_is_waited_for(project: Project):
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with subprocess.Popen(
        [command_path(), *SEND, "--body-file", "-", "--json"],
        cwd=project.folder,
        stdin=read_end,
        stdout=subprocess.PIPE,
    ) as process:
        os.close(read_end)
        until_asleep(process.pid)
        os.write(write_end, b"first ")
        os.write(write_end, b"second")
        os.close(write_end)
        assert process.stdout is not None
        value = json.load(process.stdout)

    assert value["data"]["message"]["body"] == "first second"


def until_asleep(process: int) -> None:
    """Wait until a process waits, or has ended."""
    asleep = 0
    while asleep < 20:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        asleep = asleep + 1 if state in "SZ" else 0
        time.sleep(0.005)


def test_notices_do_not_mix_with_the_value(project: Project):
    """Everything on standard output is the value, whatever stderr says."""
    project.send()
    ended = project.json("fetch", "--agent", "w1", "--mailbox", "workers")

    assert json.loads(ended.stdout)["ok"]
    assert ended.stderr == b""
