"""What a board shows of a run: lines that fit, what needs somebody first, nothing that drives a
terminal."""

from collections.abc import Iterator
from typing import Any

import pytest

from inbox_orch.orch.board import view
from inbox_orch.orch.board.close_up import detail_lines
from inbox_orch.orch.board.fitting import Line
from inbox_orch.orch.board.view import Place
from inbox_orch.orch.leader.board import Board
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.views.detail import detail
from support.runs import Site, add_task, commit
from support.terminals import width

HOSTILE = "which?\n\x1b[2J\x1b]0;t\x07 \u202e [red]x[/red] \x9b31m"
DRIVING = {"\x1b", "\x07", "\x9b", "\u202e", "\n", "\r"}
SIZES = [(80, 24), (120, 40), (300, 100), (60, 16), (40, 8), (20, 5), (10, 3)]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Run]]:
    """For tests that only look."""
    site = Site(tmp_path_factory.mktemp("board"))
    yield site, filled(site)
    site.close()


@pytest.fixture
def run(site: Site) -> Run:
    """For a test that changes it."""
    return filled(site)


@pytest.fixture(scope="module")
def board(lasting: tuple[Site, Run]) -> Board:
    site, run = lasting
    return site.scheduler.board(run)


def filled(site: Site) -> Run:
    """Six tasks, in the second of two runs; one has failed, one asks, one has a worker."""
    site.open_run()
    run = site.open_run()
    for key in "abcdef":
        add_task(site.scheduler, run, key_name=key, title=f"[bold]{key} 日本語", max_attempts=1)
    items = site.dispatch(run, "a", "b", "c")
    site.fail(items["a"], HOSTILE)
    site.worker.ask(items["b"]["thread"], site.claim(items["b"]), body=HOSTILE, options=["x", "y"])
    site.worker.update(items["c"]["thread"], site.claim(items["c"]), body=HOSTILE, progress=40)
    return run


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def listed(board: Board, columns: int = 79, wanted: str = "") -> list[str]:
    return texts(view.task_lines(board, view.rows_of(board, wanted), columns))


def near(site: Site, run: Run, key: str, columns: int = 60) -> list[str]:
    board = site.scheduler.board(run)
    (row,) = [row for row in board.status.rows if row.standing.task.key == key]
    return texts(detail_lines(board, row, detail(site.scheduler.desk, run, key), columns))


@pytest.mark.parametrize("columns, rows", SIZES)
def test_everything_fits_and_drives_nothing(lasting, board: Board, columns: int, rows: int):
    site, run = lasting
    asked = board.questions[0].task.id
    parts = [
        *texts(view.head_lines(board, Place(asked, "a b"), columns, rows)),
        *listed(board, columns),
        *texts(view.happened_lines(board, columns, rows)),
        *texts([view.keys_line(view.keys(board, board.status.rows[0]), columns)]),
        *(line for key in "abc" for line in near(site, run, key, columns)),
    ]

    assert max(map(width, parts)) <= columns
    assert not DRIVING & set("".join(parts))
    assert "[red]x[/red]" in "".join(near(site, run, "b", 80))


def test_what_needs_somebody_stands_first_with_state_and_title_apart(board: Board):
    heading, *rows = listed(board)

    assert heading.split() == ["TASK", "STATE", "WHO", "TIME", "TITLE", "NOTE"]
    shown = [row.split()[:2] for row in rows]
    states = ["blocked", "failed", "running", "ready", "ready", "ready"]
    assert shown == [[key, state] for key, state in zip("bacdef", states, strict=True)]
    assert all(f"[bold]{row[0]} 日本語" in row for row in rows)


def test_a_note_says_how_it_stands_and_leaves_the_title_alone(board: Board):
    _, blocked, failed, running, *_ = listed(board, 200)

    assert "asks: which?" in blocked
    assert "  which?" in failed
    assert "▰▰▱▱▱ 40 % which?" in running


def test_a_lease_that_ran_out_is_said_while_nobody_has_noticed(board: Board):
    (row,) = [row for row in board.status.rows if row.standing.task.key == "c"]
    assert row.thread is not None
    assert row.thread.lease is not None
    thread = row.thread._replace(lease=row.thread.lease._replace(expired=True))

    assert view.note_of(board, row._replace(thread=thread)) == "the lease of w1 ran out"


def test_time_is_how_long_the_attempt_has_taken(site: Site, run: Run):
    site.clock.advance(90)
    (running,) = [row for row in listed(site.scheduler.board(run)) if row.startswith("c ")]

    assert running.split()[2:5] == ["w1", "90", "s"]
    site.clock.advance(600)
    (lost,) = [row for row in listed(site.scheduler.board(run)) if row.startswith("c ")]
    assert lost.split()[1:4] == ["offered", "11", "min"]


def test_where_it_is_narrow_the_title_keeps_its_room(board: Board):
    heading, *rows = listed(board, 59)

    assert heading.split() == ["TASK", "STATE", "TIME", "TITLE", "NOTE"]
    assert rows[2].endswith("▰▰▱▱ 40 %")
    assert "[bold]c 日本語" in rows[2]


@pytest.mark.parametrize("wanted, keys", [
    ("", "bacdef"), ("RUNNING", "c"), ("[bold]a", "a"), ("w1", "bac"), ("ready f", "f"),
    ("no such", ""),
])  # fmt: skip
def test_what_is_looked_for_may_be_a_key_a_title_a_state_or_a_worker(board, wanted, keys):
    assert "".join(row.standing.task.key for row in view.rows_of(board, wanted)) == keys
    if not keys:
        assert listed(board, wanted=wanted) == ["no task is so"]
    told = texts(view.head_lines(board, Place(wanted=wanted), 80, 24))[-1]
    assert (f"“{wanted}”: {len(keys)} of 6" in told) == bool(wanted)


def test_the_head_tells_how_far_it_is_and_what_is_asked(board: Board):
    title, counts, runs, question = texts(view.head_lines(board, Place(), 100, 24))

    assert title == "A run · running  ▰▰▱▱▱▱▱▱▱▱ 16 % (1 of 6)"
    assert counts == "1 blocked · 1 failed · 1 active · 3 ready"
    assert runs.startswith("runs: ")
    assert f"[{board.status.run.name}]" in runs
    assert question.startswith("? b, w1 asks: which?")
    assert question.endswith("(x | y)")


def test_the_question_of_the_chosen_task_is_seen_however_many_there_are(site: Site):
    run = site.open_run()
    keys = [f"k{number}" for number in range(9)]
    site.add(run, *keys)
    for item in site.dispatch(run).values():
        site.worker.ask(item["thread"], site.claim(item), body="which?")
    board = site.scheduler.board(run)

    for question in board.questions:
        lines = texts(view.question_lines(board, Place(question.task.id), 2))
        assert lines[0].startswith(f"› {question.task.key}, w1 asks")
        assert lines[1].startswith("+7 more  ?")


def test_what_has_happened_is_in_words_the_newest_last(board: Board):
    _, *told = [line[10:] for line in texts(view.happened_lines(board, 200, 30))]

    assert [text for text in told if "`a`" in text][1].startswith("w1 took `a`")
    assert [text for text in told if text.startswith("w1 failed at `a`: which?")]
    assert told[-1].startswith("w1 failed") or "`" in told[-1]
    assert [text for text in told if text.startswith("w1 is at 40 % of `c`: which?")]
    assert not [text for text in told if "attempt" in text and "try" not in text]


def test_keys_are_those_that_do_something_now(board: Board):
    def named(key: str) -> set[str]:
        (row,) = [row for row in board.status.rows if row.standing.task.key == key]
        return {each.does for each in view.keys(board, row)}

    assert {"answer", "retry", "other runs"} <= named("a")
    assert "cancel" not in named("a")
    assert {"cancel", "answer"} <= named("c")
    assert {"retry", "integrate", "next question"} & named("c") == set()
    line = texts([view.keys_line(view.keys(board, None), 20)])[0]
    assert line == "a answer  q quit"


# -- one task from near ----------------------------------------------------------------------


def test_a_question_is_shown_whole_with_what_is_offered(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    body = f"{'word ' * 60}\n\nthe end?"
    site.worker.ask(item["thread"], site.claim(item), body=body, options=["this", "that one"])
    site.clock.advance(60)

    lines = near(site, run, "a", 40)

    assert "w1 asks, 60 s ago" in lines
    assert sum(line.split().count("word") for line in lines) == 60
    assert lines.count("the end?") == 1
    assert [line for line in lines if line.startswith("  › ")] == ["  › this", "  › that one"]


def test_a_task_from_near_has_its_attempts_cost_changes_and_log(site: Site):
    run = site.open_run()
    site.add(run, "a", max_attempts=2, checks=["echo checked; exit 1"])
    site.add(run, "b", depends_on=["a"])
    item = site.dispatch(run, "a")["a"]
    token = site.claim(item)
    commit(item["worktree"], "src/a.py", "one\ntwo\n")
    site.clock.advance(240)
    site.worker.renew(item["thread"], token)
    payload = '{"cost_usd": 0.126, "usage": {"input_tokens": 12345, "output_tokens": 67}}'
    site.worker.done(item["thread"], token, body="it is there", payload=payload)
    site.scheduler.reconcile(run)

    text = "\n".join(near(site, run, "a"))

    assert " 1  rejected · 4 min · w1\n    said: it is there\n" in text
    assert "    cost: $0.13, 12.3k tokens in, 67 tokens out\n" in text
    assert "── changes of a/1 ───" in text
    assert "src/a.py  +2 −0\n1 file, +2 −0" in text
    assert "── check: " in text
    assert "\nchecked\n" in text
    assert "awaited by b (waiting)" in text
    assert "mailbox workers · 1 of 2 attempts" in text


def test_what_cannot_be_compared_is_said_in_its_place(site: Site, run: Run):
    site.scheduler.cleanup(run, task_names=["a"])

    text = "\n".join(near(site, run, "a"))

    assert " 1  failed" in text
    assert "── changes" in text


def test_a_sealed_thread_shows_nothing_of_what_was_said(site: Site, monkeypatch: Any):
    run = site.open_run()
    site.add(run, "a", worktree=False)
    item = site.dispatch(run)["a"]
    site.worker.update(item["thread"], site.claim(item), body="a secret", progress=5)
    board = site.scheduler.board(run)
    assert board.progress[item["thread"]] == "a secret"
    threads = site.scheduler.bus.threads

    def sealed(names: list[str]) -> Any:
        return {name: t._replace(sealed=True) for name, t in threads(names).items()}

    monkeypatch.setattr(site.scheduler.desk.bus, "threads", sealed)

    assert site.scheduler.board(run).progress == {}
    assert detail(site.scheduler.desk, run, "a").progress is None
