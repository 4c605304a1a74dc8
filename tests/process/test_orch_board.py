"""`orch board` on a real terminal: it shows, wakes, answers, and leaves the terminal whole."""

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.screens import painted
from support.terminals import Viewed
from support.timing import PATIENCE_SECONDS

SHOWN = "\x1b[?1049h"
LEFT = "\x1b[?1049l\x1b[?25h"
REVERSED = re.compile(r"\x1b\[(?:[0-9;]*;)?7[;m]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][;m]")


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """Task `a` has a worker, whom nobody has asked anything yet."""
    project = Enterprise(tmp_path / "project")
    project.running()
    return project


@pytest.fixture
def view(project: Enterprise) -> Iterator[Callable[..., Viewed]]:
    """A board that has painted the run."""
    made: list[Viewed] = []

    def begin(*line: str, **environment: str) -> Viewed:
        words = line or (command_path("orch"), "board")
        made.append(Viewed(*words, folder=project.folder, **environment))
        has(made[-1], "a  ")
        return made[-1]

    yield begin
    for each in made:
        each.close()


def has(board: Viewed, text: str, rows: int = 24, columns: int = 80) -> list[str]:
    """The screen, once a line of it begins with this text."""
    screen: list[str] = []

    def holds(_: list[str]) -> bool:
        screen[:] = painted(board.sent.rpartition(SHOWN)[2], rows, columns)
        return any(line.startswith(text) for line in screen)

    board.until(holds)
    return screen


def ask(project: Enterprise, body: str) -> tuple[str, str]:
    """The worker of `a` asks; its thread and token."""
    with project.bus("w1") as bus:
        (thread,) = bus.list(states_wanted=["claimed"]).items
        lease = bus.last_lease(thread.id)
        assert lease is not None
        bus.ask(thread.id, lease.token, body=body, options=["this", "that"])
        return thread.id, lease.token


def test_a_question_appears_and_is_answered_in_a_terminal_that_becomes_larger(project, view):
    # Standard error is not the terminal: it is left alone.
    board = view("sh", "-c", 'exec "$0" board 2>errors', command_path("orch"))
    thread, token = ask(project, "which one?")
    has(board, "› a, w1 asks: which one? (this | that)")
    board.resize(40, 120)
    has(board, "a  ", 40, 120)

    board.type("a\t\t")
    has(board, "          │ │ that", 40, 120)
    board.type("\x1b[200~ é\none\x1b[201~\x7f\x7f\x7f\x7f\r")
    has(board, "answered a", 40, 120)

    with project.bus("w1") as bus:
        assert bus.wait_reply(thread, token).messages[-1].body == "that é"
    board.type("q")
    assert board.ended() == 0
    assert LEFT in board.sent
    assert board.after == board.before
    assert (project.folder / "errors").read_text() == ""


@pytest.mark.parametrize("how, code", [
    ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGINT, 130), ("\x04", 0)
])  # fmt: skip
def test_however_it_ends_the_terminal_is_whole(view, how: str | int, code: int):
    board = view()
    if isinstance(how, str):
        board.type(how)
    else:
        board.process.send_signal(how)

    assert board.ended() == code
    assert LEFT in board.sent
    assert board.after == board.before
    assert ("stopped by a signal" in board.sent) == (code > 0)


def test_the_shell_has_its_terminal_while_it_is_stopped(view):
    board = view(TERM="xterm")
    board.type("\x1a")
    os.waitid(os.P_PID, board.process.pid, os.WSTOPPED)
    assert board.after == board.before

    begun = board.sent.count(SHOWN)
    board.process.send_signal(signal.SIGCONT)
    board.until(lambda _: board.sent.count(SHOWN) > begun)
    has(board, "a  ")
    assert COLOUR.search(board.sent)
    board.type("q")
    assert board.ended() == 0


def test_without_colours_it_is_there_all_the_same(view):
    board = view(NO_COLOR="1")
    board.type("q")

    assert board.ended() == 0
    assert COLOUR.search(board.sent) is None
    assert REVERSED.search(board.sent)


@pytest.mark.parametrize("heard", [True, False])
def test_it_ends_when_the_terminal_goes_away(project: Enterprise, heard: bool):
    """With the signal that tells of it, and where that is ignored."""
    trap = "" if heard else "trap '' HUP; "
    line = ("sh", "-c", f'{trap}exec "$0" board', command_path("orch"))
    board = Viewed(*line, folder=project.folder)
    has(board, "a  ")
    os.close(board.master)

    assert board.process.wait(PATIENCE_SECONDS) == (-signal.SIGHUP if heard else 0)
    os.close(board.slave)


def test_without_a_terminal_it_names_what_tells_the_same(project: Enterprise):
    ended = project.orch("board")
    assert (ended.code, ended.stdout) == (2, b"")
    assert b"orch status --json" in ended.stderr
    assert b"orch drive" in ended.stderr

    viewed = Viewed(command_path("orch"), "board", folder=project.folder, TERM="dumb")
    try:
        assert viewed.ended() == 2
        assert "\x1b" not in viewed.sent
    finally:
        viewed.close()


def test_the_last_run_is_shown_where_none_is_open(project: Enterprise, view):
    assert project.orch("cancel", "a").code == 0
    assert project.orch("run", "cancel").code == 0

    board = view()
    board.type("q")
    assert board.ended() == 0
