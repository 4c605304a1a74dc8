"""SIGINT and SIGTERM at any point: 130 or 143, at most one JSON value, no traceback.

The interpreter's own start-up, before a line of this program runs, is left out: there SIGINT is
Python's KeyboardInterrupt and SIGTERM its death. That it is over is read from the kernel: the
mask of caught signals in /proc/PID/status has SIGTERM once our handlers are in place, and
Python itself never catches SIGTERM.
"""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inbox_orch.shared.errors import EXIT_CODES
from support.commands import Project, command_path
from support.lengths import LONG
from support.timing import PATIENCE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/PID/status")

ROUNDS = 60 if LONG else 30
SEND = ("send", "--to", "workers", "--subject", "s", "--agent", "leader", "--json")
WAIT = ("fetch", "--agent", "w1", "--wait", "60", "--json")
WATCH = ("watch", "--after", "0", "--wait", "60")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


def start(project: Project, *arguments: str) -> "subprocess.Popen[bytes]":
    """A command whose handlers are in place."""
    process = subprocess.Popen(
        [command_path(), *arguments],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and not catches_sigterm(process.pid):
        time.sleep(0.0005)
    return process


def catches_sigterm(process: int) -> bool:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return False
    masks = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")]
    return bool(masks and masks[0] >> (signal.SIGTERM - 1) & 1)


def duration(project: Project, *arguments: str) -> float:
    """Seconds from the handlers to the end, undisturbed."""
    process = start(project, *arguments)
    began = time.monotonic()
    process.communicate(timeout=PATIENCE_SECONDS)
    return time.monotonic() - began


def check(process: "subprocess.Popen[bytes]", number: signal.Signals) -> tuple[int, bytes]:
    """One value at most, and an exit code that goes with it."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert b"Traceback" not in err, err.decode()
    assert process.returncode in (0, CODES[number]), (process.returncode, out, err)
    if out:
        value = json.loads(out)
        assert value["ok"] or EXIT_CODES[value["error"]["code"]] == CODES[number]
    if process.returncode == 0:
        assert out
    return process.returncode, out


@pytest.mark.parametrize("number", list(CODES), ids=lambda number: number.name)
def test_a_signal_at_a_random_point_leaves_all_or_nothing(project: Project, number):
    whole = max(duration(project, *SEND) for _ in range(3))
    dice = random.Random(number)
    acknowledged = {item["id"] for item in project.json("list").data["items"]}
    codes = []
    for _ in range(ROUNDS):
        process = start(project, *SEND)
        time.sleep(dice.uniform(0, whole))
        process.send_signal(number)
        code, out = check(process, number)
        codes.append(code)
        if out and json.loads(out)["ok"]:
            acknowledged.add(json.loads(out)["data"]["thread"]["id"])

    assert CODES[number] in codes, "no signal came in time"
    stored = {item["id"] for item in project.json("list", "--limit", "1000").data["items"]}
    assert acknowledged <= stored
    assert project.json(*SEND[:-1]).data["thread"]["state"] == "pending"


@pytest.mark.parametrize("number", list(CODES), ids=lambda number: number.name)
def test_a_signal_ends_a_wait_and_leaves_no_bell(project: Project, number):
    """One that was being hung up just then is cleared away by the next who rings."""
    bells = project.folder / ".inbox" / "bells"
    for _ in range(5):
        process = start(project, *WAIT)
        while not any(path.is_fifo() for path in bells.rglob("*")):
            time.sleep(0.001)
        process.send_signal(number)
        code, out = check(process, number)
        assert code == CODES[number]
        assert json.loads(out)["error"]["code"] == ("interrupted" if code == 130 else "terminated")
        assert project.json("send", "--to", "w1", "--subject", "s", "--agent", "leader").code == 0
        assert [path for path in bells.rglob("*") if path.is_fifo()] == []
        assert project.json(*WAIT[:3]).data["items"]


IN_A_FINALIZER = """
import os, signal, sys, time
from inbox_orch.inbox.__main__ import main
from inbox_orch.shared.store.sqlite.bells import Bells

number = int(sys.argv.pop())

class Signalling:
    def __del__(self):
        os.kill(os.getpid(), number)

def be_slow():
    until = time.monotonic() + 0.1
    while time.monotonic() < until:
        pass

class Slow:
    def __del__(self):
        be_slow()

def slow_at_first(*arguments, as_it_was=signal.setitimer):
    signal.setitimer = as_it_was
    as_it_was(*arguments)
    be_slow()

def sleep(bells, seconds, as_it_was=Bells.sleep):
    Signalling()
    Slow()
    return as_it_was(bells, seconds)

Bells.sleep = sleep
signal.setitimer = slow_at_first
main()
"""


@pytest.mark.parametrize("number", list(CODES), ids=lambda number: number.name)
def test_a_signal_in_a_finalizer_is_answered_like_any_other(project: Project, number):
    """Python raises nothing there, nor where it tells of that; and the next attempt meets a
    finalizer, too."""
    command = [sys.executable, "-P", "-c", IN_A_FINALIZER, *WAIT, str(int(number))]
    done = subprocess.run(
        command, cwd=project.folder, capture_output=True, timeout=PATIENCE_SECONDS
    )

    assert done.stderr == b""
    assert done.returncode == CODES[number]
    code = {130: "interrupted", 143: "terminated"}[done.returncode]
    assert json.loads(done.stdout)["error"]["code"] == code
    assert not any(path.is_fifo() for path in (project.folder / ".inbox/bells").rglob("*"))


def test_a_signal_ends_a_stream_between_two_lines(project: Project):
    project.send()
    process = start(project, *WATCH)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)

    assert json.loads(first)["type"] == "event"
    assert process.returncode == 130
    assert [json.loads(line)["type"] for line in out.splitlines()] == []
    assert b"Traceback" not in err


def test_a_second_signal_does_not_wait(project: Project):
    """Pressed twice, Ctrl-C ends it by the documented code and without a traceback."""
    for _ in range(20):
        process = start(project, *WAIT)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode in (130, 143)
        assert b"Traceback" not in err


def test_an_ignored_sigint_stays_ignored(project: Project):
    """A shell starts background jobs with SIGINT ignored."""
    script = 'trap "" INT; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", script, "sh", command_path(), *WAIT[:3], "--wait", "1", "--json"],
        cwd=project.folder,
        stdout=subprocess.PIPE,
    )
    while process.poll() is None and not catches_sigterm(process.pid):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)

    assert json.loads(out)["error"]["code"] == "timeout"
