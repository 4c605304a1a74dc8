"""What a board shows at any size: lines that fit, and nothing that drives a terminal."""

import pytest

from inbox_orch.orch.cli.parts.board_view import Place, Typing, lines, pages
from inbox_orch.orch.leader.board import Board
from support.runs import Site, add_task
from support.terminals import SGR, width

HOSTILE = "which?\n\x1b[2J\x1b]0;t\x07 \u202e [red]x[/red] \x9b31m"
DRIVING = {"\x1b", "\x07", "\x9b", "\u202e", "\n", "\r"}


@pytest.fixture
def board(site: Site) -> Board:
    """Six tasks in two runs; one has failed, one asks, one has a worker."""
    site.open_run()
    run = site.open_run()
    for key in "abcdef":
        add_task(site.scheduler, run, key_name=key, title=f"[bold]{key} 日本語", max_attempts=1)
    items = site.dispatch(run, "a", "b", "c")
    site.fail(items["a"], HOSTILE)
    site.worker.ask(items["b"]["thread"], site.claim(items["b"]), body=HOSTILE, options=["x", "y"])
    site.claim(items["c"])
    return site.scheduler.board(run)


def shown(board: Board, place: Place, columns: int, rows: int) -> list[str]:
    return [SGR.sub("", line) for line in lines(board, place, columns, rows)]


@pytest.mark.parametrize("columns, rows", [
    (80, 24), (120, 40), (300, 100), (60, 12), (40, 8), (20, 5), (8, 3), (1, 1),
])  # fmt: skip
@pytest.mark.parametrize("typing", [False, True])
def test_it_fits(board: Board, columns: int, rows: int, typing: bool):
    place = Place(typing=Typing(board.questions[0], "é\n" + "long " * 80)) if typing else Place()

    drawn = shown(board, place, columns, rows)

    assert len(drawn) == rows
    assert max(map(width, drawn)) <= columns
    assert not DRIVING & set("".join(drawn))


def test_what_needs_somebody_stands_first(board: Board):
    drawn = shown(board, Place(), 80, 24)

    assert "runs: " in drawn[1]
    assert [line for line in drawn if line.startswith("› b, w1: which?")]
    tasks = [line.split()[:2] for line in drawn if line[:1] in set("abcdef") and line[1:2] == " "]
    assert [state for _, state in tasks] == ["blocked", "running", "failed", *["ready"] * 3]
    assert [line for line in drawn if line.endswith("attempt blocked  b")]
    assert "a answer" in drawn[-1]


def test_a_lease_tells_how_long_it_lasts(board: Board):
    (running,) = [line for line in shown(board, Place(), 120, 24) if line.startswith("c ")]

    assert running.split()[3:6] == ["w1", "in", "5"]


def test_what_there_is_no_room_for_is_counted_and_can_be_scrolled_to(board: Board):
    small = shown(board, Place(), 80, 16)
    scrolled = shown(board, Place(scrolled=pages(board)), 80, 16)

    (more,) = [line for line in small if line.startswith("… and ")]
    visible = [line for line in small if line[:1] in set("abcdef") and line[1:2] == " "]
    assert f"… and {6 - len(visible)} more" in more
    assert not [line for line in scrolled if line.startswith("… and ")]
    assert [line for line in scrolled if line.startswith("f ")]


def test_the_chosen_question_is_seen_however_many_there_are(site: Site):
    run = site.open_run()
    keys = [f"k{number}" for number in range(9)]
    site.add(run, *keys)
    for item in site.dispatch(run).values():
        site.worker.ask(item["thread"], site.claim(item), body="which?")
    board = site.scheduler.board(run)

    for chosen, question in enumerate(board.questions):
        drawn = shown(board, Place(chosen=chosen), 80, 24)
        assert [line for line in drawn if line.startswith(f"› {question.task.key}, ")]
