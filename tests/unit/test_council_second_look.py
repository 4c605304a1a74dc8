"""What likeness has left alone, and is one all the same: each is the other's nearest twice over."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.council.model import Item, Override, Parameters
from inbox_orch.orch.council.second_look import nearest_pairs
from inbox_orch.orch.council.tally import canonical, tally
from support.councils import council_of, item, labelled

DEFAULT = Parameters()
HARNESS = ("test harness", "many processes", "lock contention")
TOLD = "start several children that fight for one lock and count what each of them has written"


def many_words(name: str) -> str:
    """A text of its own that shares no word with any other's."""
    return " ".join(f"{name}word{number}" for number in range(15))


def others(number: int = 12) -> list[Item]:
    """Items of three reviewers that have nothing in common."""
    return [
        item(
            f"{reviewer}/x{count}",
            f"Change {reviewer}part{count}",
            (f"{reviewer}key{count}", f"{reviewer}term{count}"),
            proposal=many_words(f"{reviewer}{count}"),
        )
        for reviewer in "abc"
        for count in range(number)
    ]


def told(name: str, keywords: tuple[str, ...] = HARNESS, text: str = TOLD) -> Item:
    """An item that tells the text, and has much to say besides."""
    return item(name, f"Write {name[0]}first", keywords, proposal=f"{text} {many_words(name[0])}")


def pairs(items: list[Item], parameters: Parameters = DEFAULT) -> list[tuple[str, str]]:
    return [(items[a].id, items[b].id) for a, b in nearest_pairs(items, parameters)]


def test_two_that_are_each_others_nearest_by_head_and_by_text_are_a_pair():
    assert pairs([told("a/1"), told("b/1"), *others()]) == [("a/1", "b/1")]


@pytest.mark.parametrize(
    "changes",
    [
        {"keywords": ("archive", "retention", "disk space")},
        {"text": "throw away what is older than a month unless somebody has marked it to stay"},
    ],
    ids=["another head", "another text"],
)
def test_one_of_the_two_is_not_enough(changes):
    assert pairs([told("a/1"), told("b/1", **changes), *others()]) == []


def test_what_has_two_equally_near_is_a_pair_with_neither():
    twin = told("b/1")

    assert pairs([told("a/1"), twin, *others()]) == [("a/1", "b/1")]
    assert pairs([told("a/1"), twin, twin._replace(id="b/2"), *others()]) == []


def test_among_few_the_nearest_proves_nothing():
    assert pairs([told("a/1"), told("b/1"), *others(3)]) == []


def test_items_of_few_terms_are_told_by_their_keywords():
    short = [told(name)._replace(proposal=TOLD) for name in ("a/1", "b/1")]

    assert pairs([*short, *others()]) == []
    assert pairs([*short, *others()], Parameters(short_terms=5)) == [("a/1", "b/1")]


def test_a_threshold_that_nothing_reaches_leaves_all_alone():
    assert pairs([told("a/1"), told("b/1"), *others()], Parameters(merge_from=2000)) == []


# -- in a tally ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["set_d", "set_e", "set_f"])
def test_only_items_that_were_alone_and_may_be_duplicates_become_one_so(name):
    items, truth = labelled(name)

    for one in tally(council_of(items)).groups:
        if any(merge.rule == "nearest" for merge in one.merges):
            first, second = one.members
            assert DEFAULT.suggest_from <= one.merges[0].score < DEFAULT.merge_from
            assert truth[first.id] == truth[second.id]


def test_what_was_said_at_length_in_other_words_is_found():
    found = set()
    for name in ("set_e", "set_f"):
        items, truth = labelled(name)
        found |= {
            truth[one.id]
            for one in tally(council_of(items)).groups
            if any(merge.rule == "nearest" for merge in one.merges)
        }

    assert {"multiprocess-tests", "content-vs-history-equality"} <= found


def test_what_a_leader_keeps_apart_is_not_looked_at_again():
    items, truth = labelled("set_e")
    one, other = (name for name, group in truth.items() if group == "multiprocess-tests")

    split = Override(1, "split", (one, other), "two subjects", "leader")

    groups = [{m.id for m in g.members} for g in tally(council_of(items), [split]).groups]

    assert {one} in groups and {other} in groups


@st.composite
def prose(draw) -> list[Item]:
    """Items of two to four reviewers at some length, out of few words, so that many are near."""
    words = st.sampled_from([f"{letter}{number}" for letter in "klmn" for number in range(12)])
    long = st.lists(words, min_size=20, max_size=40).map(" ".join)
    return [
        item(
            f"r{reviewer}/i{number}",
            draw(st.lists(words, min_size=1, max_size=4).map(" ".join)),
            draw(st.lists(words, min_size=1, max_size=4, unique=True)),
            proposal=draw(long),
        )
        for reviewer in range(draw(st.integers(2, 4)))
        for number in range(draw(st.integers(4, 8)))
    ]


@settings(max_examples=40, deadline=None)
@given(prose(), st.randoms(use_true_random=False))
def test_pairs_are_of_two_reviewers_disjoint_and_the_same_in_every_order(items, chance):
    found = pairs(items, Parameters(merge_from=100, short_terms=5))
    shuffled = list(items)
    chance.shuffle(shuffled)

    named = [name for pair in found for name in pair]
    assert len(set(named)) == len(named)
    assert all(one.split("/")[0] != other.split("/")[0] for one, other in found)
    again = pairs(shuffled, Parameters(merge_from=100, short_terms=5))
    assert set(map(frozenset, again)) == set(map(frozenset, found))


@settings(max_examples=25, deadline=None)
@given(prose(), st.integers(0, 2**20))
def test_prose_in_any_order_comes_to_the_same_bytes_and_keeps_reviewers_apart(items, seed):
    parameters = Parameters(merge_from=150, suggest_from=20, short_terms=5)
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    outputs = set()
    for each in (items, shuffled):
        council = council_of(each, parameters=parameters)
        seats = tuple(sorted(council.seats, key=lambda seat: seat.reviewer))
        counted = tally(council._replace(seats=seats))
        outputs.add(canonical(counted.as_json()))
        for one in counted.groups:
            assert all(a.reviewer != b.reviewer for a, b in combinations(one.members, 2))
            for merge in one.merges:
                least = parameters.suggest_from if merge.rule == "nearest" else 150
                assert merge.score >= least

    assert len(outputs) == 1
