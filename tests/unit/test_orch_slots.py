"""How many attempts may live at once, in a run and in each of its mailboxes."""

from inbox_orch.orch.domain.config import Config
from inbox_orch.orch.domain.model import Run
from inbox_orch.orch.domain.slots import Slots


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
