"""How a seat stands, from what its attempts came to."""

import pytest

from inbox_orch.orch.council.stored import (
    COUNTED,
    SEAT_FINAL,
    Around,
    Round,
    Stands,
    StoredReply,
    StoredSeat,
    seat_stands,
)
from inbox_orch.orch.runs.model import Attempt

SEAT = StoredSeat("R", 1, 0, "ada", "T", None, None)
CLOSED_WITHOUT = SEAT._replace(closing="leased")


def a_reply(attempt: str, state: str, *, late: bool = False, revision: int | None = None):
    nothing = dict.fromkeys(StoredReply._fields)
    changes = {"attempt_id": attempt, "state": state, "late": late, "revision": revision}
    return StoredReply(**{**nothing, **changes})


def an_attempt(name: str, state: str) -> Attempt:
    return Attempt(**{**dict.fromkeys(Attempt._fields), "id": name, "state": state})


def stands(replies=(), attempt=None, *, seat=SEAT, **changes) -> Stands:
    asked = {"open_round": True, "revision": 2, "delivered": False, "overdue": False, **changes}
    return seat_stands(seat, replies, attempt, Around(**asked))


@pytest.mark.parametrize("state", COUNTED)
@pytest.mark.parametrize("open_round", [True, False])
def test_a_valid_reply_counts_whatever_comes_after_it(state, open_round):
    reply = a_reply("A", state)
    later = [reply, a_reply("B", "invalid")]

    assert stands(later, an_attempt("C", "running"), open_round=open_round) == Stands(state, reply)


@pytest.mark.parametrize("revision, state", [(None, "late"), (1, "late"), (2, "late")])
def test_a_late_reply_counts_from_its_revision_on(revision, state):
    reply = a_reply("A", "valid", late=True, revision=revision)

    assert stands([reply], open_round=False) == Stands(state, reply)


def test_a_late_reply_does_not_count_in_an_earlier_revision():
    reply = a_reply("A", "valid", late=True, revision=3)

    assert stands([reply], open_round=False) == Stands("timed_out")


def test_a_valid_reply_behind_one_that_does_not_count_yet_is_found():
    first = a_reply("A", "valid", late=True, revision=3)
    second = a_reply("B", "valid")

    assert stands([first, second]) == Stands("valid", second)


def test_once_the_round_is_closed_the_last_outcome_in_time_stands():
    replies = [
        a_reply("A", "invalid"),
        a_reply("B", "declined"),
        a_reply("C", "empty", late=True, revision=1),
    ]

    assert stands(replies, open_round=False) == Stands("declined", replies[1])
    last = a_reply("D", "empty")
    assert stands([*replies, last], open_round=False) == Stands("empty", last)
    assert stands(replies, open_round=False, seat=CLOSED_WITHOUT) == Stands("timed_out")
    assert stands([], open_round=False) == Stands("timed_out")


def test_while_the_round_is_open_an_outcome_stands_until_another_attempt():
    replies = [a_reply("A", "invalid"), a_reply("B", "empty")]

    assert stands(replies, an_attempt("B", "failed")) == Stands("empty", replies[1])
    assert stands(replies, an_attempt("A", "running")).state == "leased"
    assert stands(replies, None).state == "pending"
    third = a_reply("C", "failed")
    assert stands([*replies, third], an_attempt("C", "failed")) == Stands("failed", third)
    assert stands(replies[:1], an_attempt("A", "failed"), overdue=True).state == "invalid"


@pytest.mark.parametrize("attempt", [None, an_attempt("A", "running")])
def test_a_seat_whose_time_is_over_has_timed_out(attempt):
    assert stands([], attempt, overdue=True) == Stands("timed_out")


@pytest.mark.parametrize(
    "state, delivered, expected",
    [
        ("allocating", True, "pending"),
        ("provisioned", True, "pending"),
        ("offered", False, "pending"),
        ("offered", True, "delivered"),
        ("running", False, "leased"),
        ("blocked", True, "leased"),
    ],
)
def test_a_seat_on_the_way_stands_as_its_attempt_does(state, delivered, expected):
    found = stands([], an_attempt("A", state), delivered=delivered)

    assert found == Stands(expected)
    assert not found.final


def test_what_is_final_is_so():
    assert all(Stands(state).final for state in SEAT_FINAL)


@pytest.mark.parametrize("closed_at, is_open", [(None, True), (0, False), (5, False)])
def test_a_round_is_open_until_it_is_closed(closed_at, is_open):
    assert Round("R", 1, None, 0, closed_at, None).open is is_open
