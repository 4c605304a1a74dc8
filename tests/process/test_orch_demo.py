"""`orch demo`: the main job from start to end, from anywhere, leaving nothing."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from inbox_orch.orch import schemas
from support.commands import command_path
from support.contracts import validated
from support.processes import until
from support.timing import PATIENCE_SECONDS, promptly

MOST_SECONDS = 30


def start(folder: Path, *arguments: str, unset: tuple[str, ...] = (), **environment: str):
    """`orch demo` in its own session, with its own folder for temporary files."""
    temporary = folder / "tmp"
    temporary.mkdir()
    given = {**os.environ, "TMPDIR": str(temporary), **environment}
    for name in unset:
        given.pop(name, None)
    return subprocess.Popen(
        [command_path("orch"), "demo", *arguments],
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        umask=0o077 if environment.get("GIT_DIR") else -1,
    )


def processes_that_name(folder: Path) -> list[str]:
    """Command lines and folders of processes that have to do with the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            variables = (process / "environ").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if process.name != str(os.getpid()) and str(folder) in words + variables:
            found.append(words)
    return found


def assert_nothing_is_left(folder: Path) -> None:
    temporary = folder / "tmp"
    assert list(temporary.iterdir()) == []
    until(lambda: not processes_that_name(temporary))
    assert sorted(p.name for p in folder.iterdir()) == ["tmp"]


def test_it_holds_in_a_hostile_environment_and_leaves_nothing(tmp_path: Path):
    numbers = itertools.count()
    promptly(lambda: seconds_of_hostile(tmp_path / str(next(numbers))), MOST_SECONDS, trials=3)


def seconds_of_hostile(place: Path) -> float:
    folder = place / "a folder with spaces ☂"
    folder.mkdir(parents=True)
    began = time.monotonic()
    demo = start(
        folder,
        "--json",
        unset=("HOME", *(name for name in os.environ if name.startswith("GIT_"))),
        GIT_DIR="/nowhere/.git",
        GIT_INDEX_FILE="/nowhere/index",
        INBOX_DB="/nowhere/bus.db",
        INBOX_DB_ID="01ARZ3NDEKTSV4RRFFQ69G5FAV",
        INBOX_AGENT="not a name",
        INBOX_TOKEN="t",
        ORCH_RUN="no-such-run",
        FORCE_COLOR="1",
        XDG_CONFIG_HOME="/nowhere/config",
    )
    out, error = demo.communicate(timeout=PATIENCE_SECONDS)
    seconds = time.monotonic() - began

    assert demo.returncode == 0, (out, error)
    data = validated("demo", out, schemas.COMMANDS).data
    assert data.held
    assert all(expectation.held for expectation in data.expectations)
    assert len(data.expectations) >= 10
    told = error.decode()
    for act in (
        "orch dispatch",
        "kill -9",
        "orch answer",
        "attempt 2",
        "the run has succeeded",
        "orch integrate",
    ):
        assert act in told
    assert_nothing_is_left(folder)
    return seconds


def test_the_loop_of_a_blueprint_goes_on_where_its_leader_and_worker_were_killed(tmp_path: Path):
    demo = start(tmp_path, "--blueprint", "--json")
    out, error = demo.communicate(timeout=PATIENCE_SECONDS)

    assert demo.returncode == 0, (out, error)
    data = validated("demo", out, schemas.COMMANDS).data
    assert data.held
    assert len(data.expectations) >= 8
    told = error.decode()
    acts = (
        *("lint failed", "fix_lint is done, by ada", "test failed", "kill -9"),
        *("fix_tests is done, by eve", "rita asks for changes in review"),
        *("orch answer greet --decide continue", "rita approves in review (3)"),
        "orch integrate --onto main",
    )
    places = [told.index(act) for act in acts]
    assert places == sorted(places)
    assert_nothing_is_left(tmp_path)


def test_kept_it_can_be_looked_at(tmp_path: Path):
    demo = start(tmp_path, "--keep")
    out, error = demo.communicate(timeout=PATIENCE_SECONDS)

    assert demo.returncode == 0, (out, error)
    kept = Path(error.decode().split("kept ", 1)[1].splitlines()[0])
    status = subprocess.run(
        [command_path("orch"), "status", "--json"],
        cwd=kept / "project",
        capture_output=True,
    )
    assert json.loads(status.stdout)["data"]["counts"] == {"succeeded": 5}
    until(lambda: not processes_that_name(tmp_path / "tmp"))
    shutil.rmtree(kept)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(tmp_path: Path, number: int):
    demo = start(tmp_path)
    assert demo.stdout is not None
    until(lambda: b"Started two workers" in demo.stdout.readline())
    demo.send_signal(number)
    demo.communicate(timeout=PATIENCE_SECONDS)

    assert demo.returncode == 128 + number
    assert_nothing_is_left(tmp_path)


def test_without_git_it_says_so_and_leaves_nothing(tmp_path: Path):
    empty = tmp_path / "bin"
    empty.mkdir()
    demo = start(tmp_path, "--json", PATH=str(empty))
    out, _ = demo.communicate(timeout=PATIENCE_SECONDS)

    assert demo.returncode == 6
    assert json.loads(out)["error"]["code"] == "git_missing"
    empty.rmdir()
    assert_nothing_is_left(tmp_path)
