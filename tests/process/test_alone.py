"""No daemon and no network: nothing is left running by any command, and none needs anything beyond
this machine."""

import ast
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.processes import marked, until
from support.runs import git
from support.timing import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
NETWORK = {"aiohttp", "asyncio", "ftplib", "http", "httpx", "imaplib", "poplib", "requests"}
NETWORK |= {"smtplib", "socket", "socketserver", "ssl", "telnetlib", "urllib3", "webbrowser"}
# Of the urllib package only the part that opens anything.
NETWORK_PARTS = {"urllib.request"}

# One of each kind: what writes, what waits, what makes worktrees, what runs commands of the user's.
LINES = (
    "inbox send --to w1 --subject s --body b --agent leader",
    "inbox claim --agent w1 --lease 60",
    "inbox fetch --agent w1 --peek",
    "inbox claim --agent w9 --wait 0.1 || [ $? -eq 8 ]",
    "inbox send --to pool --subject s --body b --agent leader",
    "inbox work --agent w2 --mailbox pool --once -- true",
    "orch run init --title T",
    "orch task add --task a --title A --check true",
    "orch dispatch",
    (
        "inbox work --agent w1 --mailbox workers --once"
        " -- sh -c 'echo 1 >f && git add f && git commit -qm f'"
    ),
    "orch reconcile",
    "orch wait --wait 20",
    "orch integrate",
    "orch cleanup",
    "orch doctor --verify",
    "inbox doctor --verify",
)


ALONE = ("unshare", "--map-root-user", "--net")


class Session(NamedTuple):
    """One command of each kind has run, up to the first that failed or left something behind:
    `left` are the processes that it left. `alone`: without a network."""

    exit_code: int
    said: str
    left: list[str]
    alone: bool


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    project = Enterprise(tmp_path_factory.mktemp("alone") / "project")
    git(project.folder, "config", "user.name", "Worker")
    git(project.folder, "config", "user.email", "worker@example.invalid")
    alone = shutil.which("unshare") is not None and _succeeds(*ALONE, "true")
    path = f"{Path(command_path()).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(project.state)}
    said = ""
    for line in LINES:
        mark = f"started-by-{uuid.uuid4()}"
        with subprocess.Popen(
            [*(ALONE if alone else ()), "sh", "-c", f"exec 2>&1\n{line}"],
            cwd=project.folder,
            env={**environment, "MARK_OF_A_TEST": mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            said += f"$ {line}\n{process.communicate(timeout=PATIENCE_SECONDS)[0].decode()}"
        left = _left(process.pid, mark) if sys.platform == "linux" else []
        if process.returncode != 0 or left:
            break
    return Session(process.returncode, said, left, alone)


def _left(session: int, mark: str) -> list[str]:
    """What is still there when all has had time to end: of the session, or away from it."""

    def found() -> list[str]:
        return [*_members(session), *marked(mark)]

    with contextlib.suppress(AssertionError):
        until(lambda: not found(), within=20)
    return found()


def _succeeds(*line: str) -> bool:
    return subprocess.run(line, capture_output=True).returncode == 0


def _members(session: int) -> list[str]:
    """The command lines of the processes of a session, but for those that have ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has just gone
            if fields[0] != "Z" and int(fields[3]) == session:
                found.append(line.replace(b"\0", b" ").decode())
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_no_command_leaves_a_process_running(session: Session):
    assert session.exit_code == 0, session.said
    assert session.left == [], session.said


def test_everything_works_without_a_network(session: Session):
    if not session.alone:
        pytest.skip("no network namespace can be made here")
    assert session.exit_code == 0, session.said


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
def test_the_look_sees_a_process_of_a_session_and_one_that_has_left_it():
    mark = f"started-by-{uuid.uuid4()}"
    code = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(600)"
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as left:
        try:
            until(lambda: any("sleep 600" in line for line in _members(left.pid)))
        finally:
            left.kill()
    command = [sys.executable, "-c", code]
    away = {**os.environ, "MARK_OF_A_TEST": mark}
    with subprocess.Popen(command, env=away, start_new_session=True) as gone:
        gone.wait()
        until(lambda: not _members(gone.pid))
        (daemon,) = marked(mark)
        os.kill(int(daemon.split()[0]), signal.SIGKILL)
        until(lambda: not marked(mark))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _of_the_network(code: str) -> set[str]:
    if not any(name in code for name in (*NETWORK, "urllib")):
        return set()
    names = set(_imports(ast.parse(code)))
    return {n for n in names if n.split(".")[0] in NETWORK} | names & NETWORK_PARTS


def test_no_module_imports_anything_of_the_network():
    folders = ("inbox", "orch", "shared", "migrations")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 200
    # The board's screen is an app of textual, which asyncio runs, without its part for the network.
    allowed = {ROOT / "orch" / "board" / "terminal.py": {"asyncio"}}
    assert {p: found for p in paths if (found := _of_the_network(p.read_text()))} == allowed


@pytest.mark.parametrize(
    "code", ["import socket", "from urllib import request", "import http.client"]
)
def test_an_import_of_the_network_is_noticed(code: str):
    assert _of_the_network(code)
