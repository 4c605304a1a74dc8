"""What the keys of a board do, on a screen that no terminal shows."""

import pytest

from inbox_orch.orch.board.app import BoardApp
from inbox_orch.orch.board.dialogs import AnswerScreen, ConfirmScreen
from inbox_orch.orch.board.screens import DetailScreen
from support.runs import Site
from support.screens import Here, play, press, seen


@pytest.fixture
def here(site: Site) -> Here:
    return Here(site.scheduler)


def chosen(app: BoardApp) -> str:
    assert app.chosen is not None
    return app.chosen.standing.task.key


def last(app: BoardApp, number: int = 2) -> list[str]:
    return seen(app)[-number:]


def asked(site: Site, *keys: str) -> dict[str, tuple[str, str]]:
    """A run in which these tasks ask; their threads and tokens."""
    run = site.open_run()
    site.add(run, *keys, "other")
    found = {}
    for key, item in site.dispatch(run, *keys).items():
        token = site.claim(item, lease_seconds=3600)
        site.worker.ask(item["thread"], token, body=f"{key}?", options=["this", "that"])
        found[key] = item["thread"], token
    return found


def test_a_question_is_answered_with_what_is_offered_or_written(site: Site, here: Here):
    threads = asked(site, "a")

    async def playing(app, pilot):
        await press(pilot, "a")
        assert isinstance(app.screen, AnswerScreen)
        assert any("a?" in line for line in seen(app))
        await press(pilot, "tab", "tab", "space", "o", "n", "e", "ctrl+j", "x", "enter")
        assert "answered a" in last(app)[0]

    play(here, site.scheduler.run(None), playing)

    answer = site.worker.wait_reply(*threads["a"], wait_seconds=0).messages[-1]
    assert answer.body == "that one\nx"


def test_an_answer_goes_to_the_question_that_was_shown_and_stays_to_be_sent(site, here):
    (thread, token) = asked(site, "a")["a"]

    async def playing(app, pilot):
        await press(pilot, "a", "y", "e", "s")
        site.office.bus("leader").reply(thread, body="by another")
        site.worker.ask(thread, token, body="second?")
        here.look()
        await press(pilot, "enter")
        assert "the question of a is not open any more" in last(app)[0]
        await press(pilot, "a")
        assert any("second?" in line for line in seen(app))
        await press(pilot, "enter")
        assert "answered a" in last(app)[0]

    play(here, site.scheduler.run(None), playing)

    assert site.worker.wait_reply(thread, token, wait_seconds=0).messages[-1].body == "yes"


def test_tab_goes_from_question_to_question_and_a_answers_the_chosen_one(site, here):
    asked(site, "a", "b")

    async def playing(app, pilot):
        assert chosen(app) == "a"
        await press(pilot, "tab")
        assert chosen(app) == "b"
        await press(pilot, "a")
        assert app.screen.question.task.key == "b"
        await press(pilot, "escape", "tab", "end", "a")
        assert chosen(app) == "other"
        assert app.screen.question.task.key == "a"

    play(here, site.scheduler.run(None), playing)
    assert here.deeds == []


def test_without_a_question_a_says_so(site: Site, here: Here):
    site.add(site.open_run(), "a")

    async def playing(app, pilot):
        await press(pilot, "a")
        assert "no question is open" in last(app)[0]
        await press(pilot, "down")
        assert "no question is open" not in "".join(last(app))

    play(here, site.scheduler.run(None), playing)


def test_a_task_is_cancelled_and_retried_once_that_is_confirmed(site: Site, here: Here):
    run = site.open_run()
    site.add(run, "a", "b")
    site.claim(site.dispatch(run, "a")["a"])

    async def playing(app, pilot):
        await press(pilot, "c")
        assert isinstance(app.screen, ConfirmScreen)
        assert any("w1 works on it" in line for line in seen(app))
        await press(pilot, "n", "c", "escape")
        assert here.deeds == []
        await press(pilot, "c", "y")
        assert "a is cancelled; its worker has still to learn of it" in last(app)[0]
        await press(pilot, "c", "enter", "down", "c", "y", "r", "q")

    play(here, run, playing)

    assert here.deeds == ["cancelling a", "cancelling a", "cancelling b"]
    assert site.standing(run, "b").state == "cancelled"


def test_what_has_failed_is_retried_and_what_has_succeeded_with_a_word_of_warning(site, here):
    run = site.open_run()
    site.add(run, "a", "b", worktree=False)
    items = site.dispatch(run)
    site.fail(items["a"], fatal=True)
    site.done(items["b"])
    site.scheduler.reconcile(run)

    async def playing(app, pilot):
        await press(pilot, "r")
        assert any("attempt 1 failed: it does not work" in line for line in seen(app))
        await press(pilot, "y")
        assert "a is tried again" in last(app)[0]
        await press(pilot, "end", "r")
        assert any("its present work is put aside" in line for line in seen(app))
        await press(pilot, "y")
        assert "b is tried again" in last(app)[0]

    play(here, run, playing)
    assert site.states(run) == {"a": "ready", "b": "ready"}


def test_an_integration_says_what_comes_in_and_brings_a_branch_forward(site: Site, here: Here):
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    async def playing(app, pilot):
        await press(pilot, "i")
        assert any("a comes in" in line for line in seen(app))
        await press(pilot, *"main", "enter")
        assert "main: fast forwarded" in last(app)[0]
        await press(pilot, "i", *"nowhere", "enter")
        assert "nowhere" in last(app)[0]

    play(here, run, playing)
    assert (site.repository / "a.txt").exists()
    assert here.deeds == ["looking ahead", "integrating"] * 2


def test_an_error_is_shown_and_the_board_goes_on(site: Site, here: Here):
    run = site.open_run()
    site.add(run, "a")

    async def playing(app, pilot):
        await press(pilot, "c")
        site.scheduler.cancel(run, ["a"])
        site.scheduler.cancel_run(run)
        site.scheduler.cleanup(run)
        await press(pilot, "y")
        assert "is closed: nothing of it can be changed" in last(app, 3)[0]
        await press(pilot, "down", "r", "y")
        assert "is closed: nothing of it can be changed" in last(app, 3)[0]

    play(here, run, playing)


def test_the_list_follows_what_is_looked_for(site: Site, here: Here):
    run = site.open_run()
    site.add(run, "lexer", "parser", "manual")

    async def playing(app, pilot):
        await press(pilot, "slash", *"pars")
        assert chosen(app) == "parser"
        assert not any(line.startswith("lexer") for line in seen(app))
        await press(pilot, "enter", "c")
        assert isinstance(app.screen, ConfirmScreen)
        await press(pilot, "escape", "escape")
        assert sum(line.startswith(("lexer", "parser", "manual")) for line in seen(app)) == 3

    play(here, run, playing)


def test_the_chosen_task_stays_chosen_wherever_it_moves_in_the_list(site: Site, here: Here):
    run = site.open_run()
    site.add(run, "a", "b", "c")

    async def playing(app, pilot):
        await press(pilot, "down", "down")
        assert chosen(app) == "c"
        item = site.dispatch(run, "c")["c"]
        here.look()
        await pilot.pause()
        assert chosen(app) == "c"
        assert app.rows[0].standing.task.key == "c"
        site.worker.ask(item["thread"], site.claim(item), body="which?")
        here.look()
        await pilot.pause()
        assert chosen(app) == "c"

    play(here, run, playing)


def test_a_long_list_scrolls_with_the_choice(site: Site, here: Here):
    run = site.open_run()
    site.add(run, *(f"t{number:02}" for number in range(40)))

    async def playing(app, pilot):
        await press(pilot, "end")
        assert any(line.startswith("t39") for line in seen(app))
        assert not any(line.startswith("t00") for line in seen(app))
        await press(pilot, "pageup")
        assert 10 < int(chosen(app)[1:]) < 35
        await press(pilot, "home")
        assert any(line.startswith("t00") for line in seen(app))

    play(here, run, playing)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_details_stand_beside_the_list_or_on_a_screen_of_their_own(site, here, columns: int):
    run = site.open_run()
    site.add(run, "a", body="the text of the task")

    async def playing(app, pilot):
        beside = any("the text of the task" in line for line in seen(app))
        assert beside == (columns >= 100)
        await press(pilot, "enter")
        assert isinstance(app.screen, DetailScreen)
        assert any("the text of the task" in line for line in seen(app))
        await press(pilot, "c", "y")
        assert isinstance(app.screen, DetailScreen)
        await press(pilot, "escape")
        assert any(line.startswith("a ") for line in seen(app))

    play(here, run, playing, (columns, 24))
    assert here.deeds == ["cancelling a"]


def test_the_other_open_runs_are_a_key_away(site: Site, here: Here):
    first, second = site.open_run(), site.open_run()
    site.add(first, "one")
    site.add(second, "two")

    async def playing(app, pilot):
        assert any(line.startswith("two") for line in seen(app))
        await press(pilot, "right")
        assert any(line.startswith("one") for line in seen(app))
        await press(pilot, "left")
        assert any(line.startswith("two") for line in seen(app))

    play(here, second, playing)


def test_a_run_without_tasks_and_a_terminal_without_room_are_no_trouble(site: Site, here: Here):
    run = site.open_run()

    async def playing(app, pilot):
        assert any("no tasks yet" in line for line in seen(app))
        await press(pilot, "down", "enter", "c", "r", "i", "tab", "right", "slash", "x", "escape")
        for size in ((5, 2), (1, 1), (300, 90), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
        site.add(run, "a")
        here.look()
        await pilot.pause()
        assert any(line.startswith("a ") for line in seen(app))

    play(here, run, playing)


def test_it_ends_once_what_was_begun_is_done(site: Site, here: Here, monkeypatch):
    run = site.open_run()
    site.add(run, "a")
    begun = []

    async def playing(app, pilot):
        monkeypatch.setattr(here, "do", begun.append)
        await press(pilot, "c", "y", "q")
        assert app.is_running
        assert "cancelling a …; it ends with that" in last(app)[0]
        monkeypatch.undo()
        here.do(begun[0])
        await pilot.pause()
        assert not app.is_running

    app = play(here, run, playing)
    assert not app.interrupted
