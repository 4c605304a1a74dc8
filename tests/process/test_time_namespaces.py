"""Leases and owners across time namespaces, in which the monotonic clock shows something else."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from inbox_orch.shared import processes
from support.commands import Project, command_path

HOURS = 100_000
_NOW = """
from inbox_orch.shared import processes
from inbox_orch.shared.clock import SystemClock
import os
print(SystemClock().now().monotonic_ms, processes.start_time(int(os.sys.argv[1])))
"""


def _elsewhere(seconds):
    """The words before a command that has it run with its clocks ahead by so much."""
    return (
        "unshare",
        "--map-root-user",
        "--time",
        f"--monotonic={seconds}",
        f"--boottime={seconds}",
    )


@pytest.fixture(params=[HOURS, -60])
def elsewhere(request):
    words = (*_elsewhere(request.param), "--fork")
    if shutil.which("unshare") is None or subprocess.call([*words, "true"]) != 0:
        pytest.skip("no time namespaces can be made here")
    return words


def _json(project, *words, before=()):
    line = [*before, command_path(), "--json", *words]
    ended = subprocess.run(line, cwd=project.folder, capture_output=True, check=False)
    return ended.returncode, json.loads(ended.stdout)


def test_a_lease_is_respected_from_within_a_time_namespace(tmp_path, elsewhere):
    project = Project(tmp_path / "p")
    project.send()
    assert _json(project, "claim", "--agent", "w1", "--mailbox", "workers")[0] == 0
    code, answer = _json(
        project, "claim", "--agent", "w2", "--mailbox", "workers", before=elsewhere
    )
    assert (code, answer["error"]["code"]) == (8, "nothing_available")


def test_a_lease_taken_within_a_time_namespace_is_respected_and_ends_outside(tmp_path, elsewhere):
    project = Project(tmp_path / "p")
    project.send()
    words = ("claim", "--agent", "w1", "--mailbox", "workers", "--lease", "1")
    assert _json(project, *words, before=elsewhere)[0] == 0
    code, answer = _json(project, "claim", "--agent", "w2", "--mailbox", "workers", "--wait", "60")
    assert code == 0
    assert answer["data"]["redelivered"]


@pytest.mark.parametrize("fork", ["--fork", None])
def test_the_clock_and_the_start_of_a_process_are_the_machines_own_everywhere(elsewhere, fork):
    words = [word for word in elsewhere if word != "--fork"] + ([fork] if fork else [])
    line = [sys.executable, "-P", "-c", _NOW, str(os.getpid())]
    here = subprocess.check_output(line).split()
    there = subprocess.check_output([*words, *line]).split()
    assert 0 <= int(there[0]) - int(here[0]) < 50_000
    assert abs(int(there[1]) - processes.start_time(os.getpid())) <= 1
    assert processes.is_running(os.getpid(), int(there[1]))
