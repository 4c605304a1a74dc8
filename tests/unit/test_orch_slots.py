"""How many attempts may live at once, in a run and in each of its mailboxes."""

import pytest

from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run, Task
from inbox_orch.orch.runs.readiness import Picture, Slots, Standing, may_move


def a_run(most: int | None, **mailboxes: int) -> Run:
    config = Config(mailboxes=mailboxes).canonical()
    values = dict.fromkeys(Run._fields) | {"max_parallel": most, "config": config}
    return Run(**values)


def test_without_a_limit_there_is_always_room():
    slots = Slots(a_run(None), ["a"] * 500)

    assert slots.take("a") and slots.take("b")


def test_what_lives_counts_against_the_run_in_whichever_mailbox():
    slots = Slots(a_run(3), ["a", "b"])

    assert slots.take("c")
    assert slots.full() and not slots.take("d")
    assert slots.limit_of("d") == "at most 3 at once in this run"


def test_a_full_mailbox_leaves_room_in_the_others():
    slots = Slots(a_run(5, a=1), ["a"])

    assert not slots.take("a") and slots.take("b")
    assert slots.limit_of("a") == "at most 1 at once in mailbox a"


def test_trying_something_out_takes_nothing():
    slots = Slots(a_run(1), [])

    assert slots.copy().take("a")
    assert slots.take("a")


def test_a_run_is_bounded_by_itself_or_by_one_of_its_mailboxes():
    assert Slots(a_run(3), []).bounded()
    assert Slots(a_run(None, a=1), []).bounded()
    assert not Slots(a_run(None), ["a"]).bounded()


def test_each_mailbox_counts_what_lives_in_it():
    slots = Slots(a_run(None, a=3, b=1), ["a", "a", "c"])

    assert slots.take("a") and not slots.take("a")
    assert slots.take("b") and not slots.take("b")


def test_taking_a_slot_takes_one():
    slots = Slots(a_run(4, a=3), [])

    assert [slots.take("a") for _ in range(4)] == [True, True, True, False]
    assert slots.take("b") and slots.full()


def a_picture(*standings: tuple[str, str], run: Run) -> Picture:
    nothing = dict.fromkeys(Task._fields)
    made = tuple(
        Standing(Task(**{**nothing, "id": str(number), "mailbox": mailbox}), state)
        for number, (state, mailbox) in enumerate(standings)
    )
    return Picture(run, made, {s.task.id: s for s in made}, "running")


@pytest.mark.parametrize("run_state", ["open", "paused"])
def test_a_run_in_which_somebody_works_moves(run_state: str):
    run = a_run(1)._replace(state=run_state)

    assert may_move(a_picture(("blocked", "a"), ("active", "a"), run=run), ["a"])


@pytest.mark.parametrize(
    "state, moves", [("ready", True), ("backing_off", True), ("waiting", False)]
)
def test_a_run_moves_while_something_could_be_dispatched(state: str, moves: bool):
    run = a_run(2, a=1)._replace(state="open")

    assert may_move(a_picture((state, "a"), run=run), []) is moves
    assert not may_move(a_picture((state, "a"), run=run), ["a"]), "its mailbox is full"
    assert not may_move(a_picture((state, "a"), run=run), ["b", "c"]), "the run is full"
    paused = run._replace(state="paused")
    assert not may_move(a_picture((state, "a"), run=paused), [])
