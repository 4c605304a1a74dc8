"""Recommendations as reviewers write them: paragraphs, in which every item has many words of every
other."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.council.model import Item, Parameters
from inbox_orch.orch.council.opposition import Opposition, seen_opposed, speech_of
from inbox_orch.orch.council.report import markdown
from inbox_orch.orch.council.tally import Tally, canonical, tally
from inbox_orch.orch.council.texts import Rivals
from support.councils import council_of, item, labelled, opposed_topics

LOOKED_AT = tuple(f"set_{letter}" for letter in "defghijkl")
SQUASH = ("squash commit", "git history")


def counted_real(name: str = "set_d") -> tuple[Tally, dict[str, str]]:
    """The tally of the set, and the true group of each item."""
    items, truth = labelled(name)
    return tally(council_of(items)), truth


def groups(counted: Tally) -> list[set[str]]:
    return [{member.id for member in one.members} for one in counted.groups]


def test_no_two_items_of_the_real_set_are_called_opposed():
    counted, _ = counted_real()

    assert counted.contested == ()


def test_the_gravest_two_that_say_the_same_are_one_group():
    counted, truth = counted_real()

    squash = {name for name, group in truth.items() if group == "squash"}
    assert squash in groups(counted)


def test_all_three_that_agree_about_budgets_are_a_consensus():
    counted, truth = counted_real()

    budget = {name for name, group in truth.items() if group == "budget"}
    (one,) = [g for g in counted.groups if {m.id for m in g.members} == budget]
    assert one.bucket == "consensus"


def test_most_of_what_is_merged_is_right_and_no_agreement_is_missed():
    counted, truth = counted_real()

    merged = [{truth[name] for name in group} for group in groups(counted) if len(group) > 1]
    wrong = [labels for labels in merged if len(labels) > 1]
    right = {label for labels in merged if len(labels) == 1 for label in labels}
    assert len(wrong) <= 1
    assert right == {"squash", "machine", "budget", "decision", "filters", "compat"}


def test_what_is_near_a_group_is_shown_with_it():
    counted, truth = counted_real("set_e")
    lock = {name for name, group in truth.items() if group == "platform-lock-contract"}

    (left_out,) = [g for g in counted.groups if len(g.members) == 1 and g.id in lock]
    (found,) = [g for g in counted.groups if len({m.id for m in g.members} & lock) == 2]

    assert left_out.id in found.near
    assert set(left_out.near) & {member.id for member in found.members}
    assert f"`{left_out.id}`" in markdown(counted, {}).split("near it, not counted: ", 1)[1]
    near = counted.as_json()["groups"][0]["near"]
    assert isinstance(near, list)


# -- opposition needs evidence -------------------------------------------------------------


def contested(*items) -> list[tuple[str, str]]:
    return [(one.pair.rule, one.evidence) for one in tally(council_of(items)).contested]


def test_two_that_put_the_same_aside_are_not_opposed():
    one = item("a/1", "Accept a rebuilt commit, never the worker's own history", SQUASH)
    other = item("b/1", "Accept one commit instead of the worker's history", SQUASH)

    assert contested(one, other) == []
    assert groups(tally(council_of([one, other]))) == [{"a/1", "b/1"}]


def test_a_stance_against_what_another_speaks_against_is_no_opposition():
    one = item("a/1", "Do not merge the worker's git history", SQUASH, stance="avoid")
    other = item("b/1", "Drop the worker's git history at the merge", SQUASH)

    assert contested(one, other) == []


def test_keeping_what_another_wants_left_as_it_is_is_no_opposition():
    one = item("a/1", "Tasks without gates", ("compatibility", "default"), stance="keep")
    other = item("b/1", "Leave tasks without gates as they are", ("compatibility", "default"))

    assert contested(one, other) == []


def test_the_report_says_which_stances_and_about_what():
    one = item("a/1", "Squash the git history", SQUASH)
    other = item("b/1", "Do not squash the git history", SQUASH, stance="avoid")

    ((rule, evidence),) = contested(one, other)
    assert rule == "stance"
    assert evidence == "a/1 says do, b/1 says avoid, both about commit git histori squash"
    told = evidence.replace("histori", "history")  # whole words to people
    assert told in markdown(tally(council_of([one, other])), {}).replace("\\", "")


def test_what_one_forbids_and_another_would_rather_not_have_is_agreed_on():
    cached = ("cache invalidation", "derived cache", "commit flag")
    one = item("a/1", "Keep the flag out of commits, in a derived cache", cached, stance="avoid")
    other = item("b/1", "Cache the result rather than a flag in commits", cached)

    assert contested(one, other) == []
    assert groups(tally(council_of([one, other]))) == [{"a/1", "b/1"}]


def test_two_titles_that_keep_a_thing_agree_whatever_their_stances():
    shown = ("conflict materialization", "working copy", "data loss")
    one = item("a/1", "Keep files with a disputed name visible", shown, stance="avoid")
    other = item("b/1", "Keep files with a conflict visible", shown)
    third = item("c/1", "Never hide a file that is in conflict", shown)

    assert contested(one, other, third) == []
    assert groups(tally(council_of([one, other, third]))) == [{"a/1", "b/1", "c/1"}]


def test_a_place_that_a_thing_is_kept_out_of_is_not_spoken_against():
    backend = ("git interoperability", "backend capability", "identity")
    one = item("a/1", "Keep copy records out of the Git backend", backend, stance="avoid")
    other = item("b/1", "Give the Git backend a capability for lookups", backend)

    assert contested(one, other) == []


def test_keeping_one_thing_out_opposes_putting_it_in():
    one = item("a/1", "Keep the git history out of the merge", SQUASH, stance="avoid")
    other = item("b/1", "Merge the git history as it is", SQUASH)

    assert [rule for rule, _ in contested(one, other)] == ["stance"]


def test_one_keyword_of_many_is_not_what_two_items_are_about():
    gate = ("feature gate", "opt in", "zero value", "grace period", "default")
    other = ("feature gate", "clean up", "rollback", "host state", "leftover file")
    one = item("a/1", "Keep the feature gate off", gate, stance="keep")
    two = item("b/1", "Turn the feature gate on", other)

    assert seen(one, two) is None
    assert seen(one, two._replace(keywords=gate)).rule == "stance"


def test_a_denial_of_something_else_about_the_same_keyword_opposes_nothing():
    one = item("a/1", "Read the login delay", ("login", "delay", "start"))
    title = "Never rewrite the host files of the login daemon"
    other = item("b/1", title, ("login", "host", "owner"), stance="avoid")

    assert seen(one, other) is None
    assert seen(one._replace(title="Rewrite the host files of the login"), other) is not None


def test_a_denial_for_one_place_only_opposes_what_is_about_the_same_keywords():
    keywords = ("wal", "sqlite", "journal mode")
    one = item("a/1", "Keep the queue in SQLite in WAL mode", keywords)
    other = item("b/1", "Do not enable WAL on a network share", keywords, stance="avoid")

    assert seen(one, other).rule == "stance"


@pytest.mark.parametrize(
    "title",
    [
        "Take inferred versions out of the proposal",
        "Move inferred versions of dependencies out into another proposal",
        "Leave inferred versions of dependencies to another proposal",
    ],
)
def test_taking_a_thing_out_agrees_with_denying_it(title):
    keywords = ("inferred version", "dependency")
    one = item("a/1", title, keywords)
    other = item("b/1", "Do not add inferred versions", keywords, stance="avoid")

    assert contested(one, other) == []
    assert groups(tally(council_of([one, other]))) == [{"a/1", "b/1"}]


def test_a_word_among_many_that_are_put_aside_is_not_put_aside_itself():
    one = item("a/1", "Use UUIDs rather than sequential integers for photo urls", ("photo", "uuid"))
    other = item("b/1", "Call every photo a photo", ("photo", "naming"))

    assert seen(one, other) is None


FLAG = ("opt-in flag", "rollout", "default")


@pytest.mark.parametrize(
    "kept, asked",
    [
        ("Keep the opt-in flag", "Specify how the opt-in flag combines with the old default"),
        ("Keep the opt-in flag", "State clearly what the opt-in flag does during a rollout"),
        ("Keep the opt-in flag", "Document the opt-in flag"),
        ("Keep the opt-in flag", "Test the opt-in flag in a rollout that is cut short"),
        ("Keep the opt-in flag for deletes", "Say when a delete heeds the opt-in flag"),
        ("Make the opt-in flag the only switch", "Clarify who may set the opt-in flag"),
    ],
)
def test_asking_how_a_thing_works_does_not_speak_against_keeping_it(kept, asked):
    one = item("a/1", kept, FLAG, stance="keep")
    other = item("b/1", asked, (*FLAG[:2], "help text"))

    assert seen(one, other) is None
    assert seen(one, other._replace(title="Replace the opt-in flag")).rule == "stance"


@pytest.mark.parametrize(
    "kept, asked",
    [
        ("Keep the opt-in flag", "Specify how the opt-in flag is replaced"),
        ("Keep the opt-in flag", "Document how the opt-in flag is phased out"),
        ("Keep the opt-in flag", "State that the opt-in flag is one for tests"),
        ("Keep the opt-in flag", "Decide now that the opt-in flag is one for tests"),
        ("Keep the opt-in flag", "Define the opt-in flag as a setting of each tenant"),
        ("Keep the one opt-in flag", "Define a second opt-in flag"),
        ("Keep the opt-in flag undocumented", "Document the opt-in flag"),
        ("Leave the default of the opt-in flag open", "Specify the default of the opt-in flag"),
        ("Leave the opt-in flag to distributors", "Specify what the opt-in flag does"),
        ("Keep the opt-in flag without a default", "Specify the default of the opt-in flag"),
        ("Keep the opt-in flag", "Define the default instead of an opt-in flag"),
    ],
)
def test_an_answer_given_or_a_question_that_is_not_wanted_speaks_against_keeping(kept, asked):
    one = item("a/1", kept, FLAG, stance="keep")

    assert seen(one, item("b/1", asked, FLAG)).rule == "stance"


@pytest.mark.parametrize(
    "kept, built, opposed",
    [
        ("Keep the opt-in flag", "Extend the opt-in flag to imports", False),
        ("Keep the opt-in flag for reads", "Generalise the opt-in flag to every call", False),
        ("Make the opt-in flag the default", "Build on the opt-in flag for imports", False),
        ("Keep the opt-in flag for reads only", "Extend the opt-in flag to deletes", True),
        ("Keep the opt-in flag as it is", "Widen the opt-in flag to deletes", True),
        ("Keep the opt-in flag at 5 tenants", "Extend the opt-in flag to 50 tenants", True),
        ("Keep the opt-in flag: only admins set it", "Extend the opt-in flag to imports", False),
    ],
)
def test_building_on_a_thing_speaks_against_keeping_it_only_as_it_is(kept, built, opposed):
    one = item("a/1", kept, FLAG, stance="keep")

    assert (seen(one, item("b/1", built, (*FLAG[:2], "help text"))) is not None) == opposed


def test_two_that_keep_what_is_there_are_not_opposed_by_what_one_puts_aside():
    one = item("a/1", "Keep the flag a word rather than a table", FLAG, stance="keep")
    other = item("b/1", "Keep the table of flags by tenant", (*FLAG, "table"), stance="keep")

    assert seen(one, other) is None


def seen(one: Item, other: Item) -> Opposition | None:
    return seen_opposed(speech_of(one), speech_of(other))


@pytest.mark.parametrize("name", LOOKED_AT)
def test_no_text_of_real_prose_shows_an_opposition_that_is_not_there(name):
    items, truth = labelled(name)
    reviewers = combinations(map(speech_of, items), 2)

    found = {(a.item.id, b.item.id) for a, b in reviewers if seen_opposed(a, b) is not None}
    assert {frozenset((truth[a], truth[b])) for a, b in found} <= opposed_topics(name)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_nothing_in_real_prose_is_called_opposed_without_being_it(name):
    items, truth = labelled(name)
    counted = tally(council_of(items))

    opposed = {frozenset(truth[i] for i in one.pair.items) for one in counted.contested}
    assert opposed <= opposed_topics(name)


# -- what sets an item apart ---------------------------------------------------------------


@pytest.mark.parametrize("names, one_in", [(LOOKED_AT[:6], 8), (LOOKED_AT, 6)])
def test_most_agreements_of_the_sets_at_hand_are_found_and_most_pairs_are_right(names, one_in):
    missed = agreements = right = pairs = 0
    for name in names:
        items, truth = labelled(name)
        true, together = pairs_of(truth_groups(truth)), pairs_of(groups(tally(council_of(items))))
        wanted = {truth[one] for one, other in true if one.split("/")[0] != other.split("/")[0]}
        agreements += len(wanted)
        missed += len(wanted - {truth[one] for one, _ in true & together})
        right += len(true & together)
        pairs += len(together)

    assert missed * one_in <= agreements
    assert right >= 0.9 * pairs


def truth_groups(truth: dict[str, str]) -> list[set[str]]:
    return [{i for i, label in truth.items() if label == name} for name in set(truth.values())]


def pairs_of(found: list[set[str]]) -> set[tuple[str, str]]:
    return {pair for group in found for pair in combinations(sorted(group), 2)}


def test_what_is_as_like_to_two_items_of_a_reviewer_is_less_like_to_each():
    alike = {(0, 1): 400, (0, 2): 380, (1, 2): 0}

    beside = Rivals(alike, ["a", "b", "b"])
    alone = Rivals({(0, 1): 400}, ["a", "b"])

    assert alone.distinct(0, 1) == 400
    assert beside.distinct(0, 2) < beside.distinct(0, 1) < 400


# -- how opposition is told ----------------------------------------------------------------


def test_a_common_word_that_no_title_speaks_of_opposes_nothing():
    one = item("a/1", "Wait for the lock", ("busy handler", "lock", "sqlite"))
    other = item("b/1", "Do not enable WAL mode", ("wal", "sqlite", "lock file"), stance="avoid")

    assert contested(one, other) == []


# -- whatever is written -------------------------------------------------------------------


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
            assert all(merge.score >= parameters.merge_from for merge in one.merges)

    assert len(outputs) == 1
