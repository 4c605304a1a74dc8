"""No reviewer votes for another, and seats that one agent answered are no independent voices."""

import time
from typing import Any

import pytest

from inbox_orch.orch.council.decision_record import madr
from inbox_orch.orch.council.model import Item, Link, Vote
from inbox_orch.orch.council.report import markdown
from inbox_orch.orch.council.tally import Tally, tally
from support.councils import council_of, item

WAL = ("wal", "sqlite", "journal mode")


def group_of(counted: Tally, name: str) -> set[str]:
    (one,) = [g for g in counted.groups if name in {member.id for member in g.members}]
    return {member.id for member in one.members}


def same_as(*targets: str) -> tuple[Link, ...]:
    return tuple(Link("same_as", target) for target in targets)


def two_others() -> list[Item]:
    return [
        item("b/1", "Enable WAL mode on the store", WAL),
        item("c/1", "Add a nightly backup to tape", ("backup", "tape", "retention")),
    ]


RUST = ("rust", "rewrite", "memory safety")


def test_one_reviewers_word_never_makes_one_of_what_two_others_wrote():
    mine = item("a/x", "Rewrite everything in Rust", RUST, links=same_as("b/1", "c/1"))

    counted = tally(council_of([mine, *two_others()]))

    assert all(g.bucket != "consensus" for g in counted.groups)
    assert group_of(counted, "b/1") != group_of(counted, "c/1")
    assert any("the word of a alone" in warning for warning in counted.warnings)
    # What was said is not lost: somebody may settle it.
    (said,) = [p.items for p in counted.possible_duplicates if p.rule == "same_as"]
    assert said[0] == "a/x" and said[1] not in group_of(counted, "a/x")


def test_several_items_of_one_reviewer_bridge_nothing_either():
    mine = [
        item("a/x", "Rewrite everything in Rust", RUST, links=same_as("b/1", "a/y")),
        item("a/y", "Rewrite the rest in Rust", RUST, links=same_as("c/1")),
    ]

    counted = tally(council_of([*mine, *two_others()]))

    assert group_of(counted, "b/1") != group_of(counted, "c/1")


def test_an_item_that_is_like_one_of_two_others_does_not_bring_in_the_second():
    mine = item("a/x", "Enable WAL mode", WAL, links=same_as("c/1"))

    counted = tally(council_of([mine, *two_others()]))

    assert group_of(counted, "b/1") == {"a/x", "b/1"}
    assert group_of(counted, "c/1") == {"c/1"}


def test_each_may_add_its_own_item_to_a_group():
    mine = item("a/x", "Rewrite everything in Rust", RUST)
    one, other = two_others()
    items = [mine, one._replace(links=same_as("a/x")), other._replace(links=same_as("a/x"))]

    assert group_of(tally(council_of(items)), "a/x") == {"a/x", "b/1", "c/1"}


def test_what_two_say_of_a_third_holds():
    mine = item("a/x", "Rewrite everything in Rust", RUST, links=same_as("b/1", "c/1"))
    one, other = two_others()
    items = [mine, one._replace(links=same_as("c/1")), other]

    assert group_of(tally(council_of(items)), "a/x") == {"a/x", "b/1", "c/1"}


def test_a_chain_of_single_words_makes_no_consensus():
    mine = item("a/x", "Rewrite everything in Rust", RUST, links=same_as("b/1"))
    one, other = two_others()

    counted = tally(council_of([mine, one, other._replace(links=same_as("a/x"))]))

    assert sorted(map(len, (g.members for g in counted.groups))) == [1, 2]


def test_a_vote_joins_only_ones_own_item_to_the_group_that_was_voted_on():
    mine = item("a/x", "Rewrite everything in Rust", RUST)
    council = council_of([mine, *two_others()])

    alone = tally(council, (), [Vote("a", "b/1", "agree", "c/1")])
    own = tally(council, (), [Vote("a", "b/1", "agree", "a/x")])
    both = tally(council, (), [Vote("a", "b/1", "agree", "c/1"), Vote("b", "c/1", "agree", "b/1")])

    assert all(len(g.members) == 1 for g in alone.groups)
    assert group_of(own, "a/x") == {"a/x", "b/1"}
    assert group_of(both, "b/1") == {"b/1", "c/1"}


def test_a_vote_for_a_group_of_two_joins_all_of_it():
    mine = item("a/x", "Rewrite everything in Rust", RUST, links=same_as("b/1"))

    counted = tally(council_of([mine, *two_others()]), (), [Vote("c", "a/x", "agree", "c/1")])

    assert group_of(counted, "a/x") == {"a/x", "b/1", "c/1"}


# -- seats that one agent answered ---------------------------------------------------------


def answered(council: Any, **agents: str) -> Any:
    """The council with the agents that handed in for its seats."""
    seats = tuple(seat._replace(agent=agents.get(seat.reviewer)) for seat in council.seats)
    return council._replace(seats=seats)


def three_of_one_mind() -> Any:
    return council_of([item(f"{name}/1", f"Enable WAL mode {name}", WAL) for name in "abc"])


def test_seats_that_one_agent_answered_are_told_in_the_json_and_in_the_report():
    counted = tally(answered(three_of_one_mind(), a="bob", b="bob", c="bob"))

    (banner,) = counted.as_json()["banners"]
    assert banner.startswith("a, b and c were answered by one agent (bob): not independent.")
    assert [seat["agent"] for seat in counted.as_json()["seats"]] == ["bob"] * 3
    text = markdown(counted, {}).replace("\\", "")
    assert banner in text.split("## Verdicts")[0]
    assert "(the word of 1 alone) — raised by a, b, c" in text
    assert banner in madr(counted).replace("\\", "")


@pytest.mark.parametrize(
    "agents, banners, marked",
    [
        ({"a": "x", "b": "y", "c": "z"}, 0, False),
        ({"a": "x", "b": "x", "c": "z"}, 1, True),
        ({"a": "x"}, 0, False),
        ({}, 0, False),
    ],
)
def test_only_seats_of_one_agent_count_as_one(agents, banners, marked):
    counted = tally(answered(three_of_one_mind(), **agents))

    assert (len(counted.banners), counted.groups[0].bucket) == (banners, "consensus")
    assert (" alone)" in markdown(counted, {})) is marked


def test_an_agent_that_votes_for_another_seat_in_the_second_round_is_told_too():
    council = answered(three_of_one_mind(), a="x", b="y", c="z")
    first, *others = council.seats

    counted = tally(council._replace(seats=(first._replace(voter="y"), *others)), (), [])

    assert counted.banners[0].startswith("a and b were answered by one agent (y)")


def test_a_seat_that_does_not_count_is_nobodys_second_hand():
    council = answered(council_of([item("a/1", "Enable WAL", WAL)]), a="x", absent0="x")

    assert tally(council).banners == ()


def test_many_words_about_many_items_are_weighed_in_a_moment():
    names = [f"{reviewer}/{number}" for reviewer in "abcdefg" for number in range(25)]
    items = [
        item(name, f"Thing {name}", (f"k{n}", f"m{n}"), links=same_as(*names[n % 7 :: 7]))
        for n, name in enumerate(names)
    ]
    votes = [Vote(name[0], name, "agree", names[-n]) for n, name in enumerate(names)]

    began = time.process_time()
    tally(council_of(items, seats=7), (), votes)

    assert time.process_time() - began < 10
