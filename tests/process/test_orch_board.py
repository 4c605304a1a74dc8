"""`orch board` on a real terminal: it shows, wakes, answers, and leaves the terminal whole."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.terminals import Viewed, width

LEFT = "\x1b[?25h\x1b[?2004l\x1b[?1049l"


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """Task `a` has a worker, whom nobody has asked anything yet."""
    return Enterprise(tmp_path / "project")


@pytest.fixture
def board(project: Enterprise) -> Iterator[Viewed]:
    """A board that has painted the run."""
    project.running()
    viewed = Viewed(command_path("orch"), "board", folder=project.folder)
    try:
        viewed.until(lambda screen: has(screen, "a  "))
        yield viewed
    finally:
        viewed.close()


def has(screen: list[str], beginning: str) -> bool:
    return any(line.startswith(beginning) for line in screen)


def is_whole(screen: list[str], rows: int) -> bool:
    """Whether all lines of one painting have arrived."""
    return len(screen) == rows and screen[-1].startswith("q quit")


def ask(project: Enterprise, body: str) -> tuple[str, str]:
    """The worker of `a` asks; its thread and token."""
    with project.bus("w1") as bus:
        (thread,) = bus.list(states_wanted=["claimed"]).items
        lease = bus.last_lease(thread.id)
        assert lease is not None
        bus.ask(thread.id, lease.token, body=body, options=["this", "that"])
        return thread.id, lease.token


def test_a_question_appears_and_is_answered(project: Enterprise, board: Viewed):
    thread, token = ask(project, "which one?")
    board.until(lambda screen: has(screen, "› a, w1: which one? (this | that)"))

    board.type("a\t\t")
    board.until(lambda screen: has(screen, "answer to a: that"))
    board.type(" é\x7f\x7fone\r")
    board.until(lambda screen: has(screen, "answered a"))

    with project.bus("w1") as bus:
        assert bus.wait_reply(thread, token).messages[-1].body == "thatone"
    board.type("q")
    assert board.ended() == 0
    assert board.sent.endswith(LEFT)
    assert board.after == board.before


def test_an_answer_goes_to_the_question_that_was_shown(project: Enterprise, board: Viewed):
    thread, token = ask(project, "first?")
    board.until(lambda screen: has(screen, "› a, w1: first?"))
    board.type("ayes")
    board.until(lambda screen: has(screen, "answer to a: yes"))
    with project.bus("leader") as bus:
        bus.reply(thread, body="by another")
    with project.bus("w1") as bus:
        bus.ask(thread, token, body="second?")

    board.type("\r")
    board.until(lambda screen: has(screen, "the question of a is not open any more"))
    board.type("\x1b")
    board.until(lambda screen: has(screen, "› a, w1: second?"))


def test_it_takes_the_size_that_the_terminal_has(board: Viewed):
    for rows, columns in ((12, 50), (40, 120)):
        board.resize(rows, columns)
        screen = board.until(lambda screen, rows=rows: is_whole(screen, rows))
        assert max(map(width, screen)) <= columns
        assert has(screen, "a  ")


@pytest.mark.parametrize("how, code", [
    ("\x03", 130), (signal.SIGTERM, 143), (signal.SIGINT, 130), ("q", 0), ("\x04", 0)
])  # fmt: skip
def test_however_it_ends_the_terminal_is_whole(board: Viewed, how: str | int, code: int):
    if isinstance(how, str):
        board.type(how)
    else:
        board.process.send_signal(how)

    assert board.ended() == code
    assert LEFT in board.sent
    assert board.after == board.before


def test_it_goes_from_run_to_run(project: Enterprise, board: Viewed):
    project.tasks("other")
    board.until(lambda screen: any(line.startswith("runs: [") for line in screen))

    board.type("\x1b[C")
    board.until(lambda screen: has(screen, "other  "))
    board.type("\x1b[D")
    board.until(lambda screen: has(screen, "a  "))


def test_a_view_that_has_to_paint_is_refused_together_with_colours(project: Enterprise):
    project.tasks("a")
    viewed = Viewed(command_path("orch"), "board", folder=project.folder, NO_COLOR="1")
    try:
        assert viewed.ended() == 2
        assert "\x1b" not in viewed.sent
        assert "NO_COLOR" in viewed.sent
    finally:
        viewed.close()


def test_without_a_terminal_it_names_what_tells_the_same(project: Enterprise):
    project.tasks("a")
    ended = project.orch("board")
    assert (ended.code, ended.stdout) == (2, b"")
    assert b"orch status --json" in ended.stderr
    assert b"orch drive" in ended.stderr

    viewed = Viewed(command_path("orch"), "board", folder=project.folder, TERM="dumb")
    try:
        assert viewed.ended() == 2
    finally:
        viewed.close()


def test_the_last_run_is_shown_where_none_is_open(project: Enterprise):
    project.running()
    assert project.orch("cancel", "a").code == 0
    assert project.orch("run", "cancel").code == 0
    viewed = Viewed(command_path("orch"), "board", folder=project.folder)
    try:
        viewed.until(lambda screen: has(screen, "a  "))
    finally:
        viewed.close()
