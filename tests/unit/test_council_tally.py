"""What a set of replies comes to: groups, buckets, what is contested, what a leader settled."""

import random
from itertools import combinations
from typing import NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.council.grouping import group
from inbox_orch.orch.council.likeness import Likeness
from inbox_orch.orch.council.model import (
    STANCES,
    Council,
    DecisionVote,
    Item,
    Link,
    Override,
    Parameters,
    Reply,
    Seat,
    Vote,
)
from inbox_orch.orch.council.report import markdown
from inbox_orch.orch.council.tally import Tally, bucket, canonical, tally
from support.councils import DECISIONS, council_of, item, labelled, opposed_topics
from support.lengths import LONG

WAL = ("wal", "sqlite", "journal mode")


def group_of(counted: Tally, name: str) -> frozenset[str]:
    """The ids of the group that an item is in."""
    return next(
        frozenset(m.id for m in one.members)
        for one in counted.groups
        if any(m.id == name for m in one.members)
    )


def the_group(counted: Tally, name: str):
    return next(g for g in counted.groups if any(m.id == name for m in g.members))


def two_alike() -> list[Item]:
    return [
        item("a/wal", "Enable WAL mode", WAL),
        item("b/journal", "Use write-ahead logging", WAL),
    ]


# -- buckets -------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", range(2, 8))
def test_every_number_of_votes_has_one_bucket(declared):
    found = [bucket(votes, declared) for votes in range(1, declared + 1)]

    assert found[-1] == "consensus"
    assert found.count("consensus") == 1
    for votes, one in enumerate(found[:-1], start=1):
        assert one == ("majority" if votes > declared / 2 else "minority")


def test_one_seat_is_no_council_and_two_have_no_majority():
    assert bucket(1, 1) is None
    assert {bucket(votes, 2) for votes in (1, 2)} == {"minority", "consensus"}


def test_three_that_agree_are_a_consensus_two_a_majority():
    items = [*two_alike(), item("c/x", "Switch the journal mode to WAL", WAL)]

    assert tally(council_of(items)).groups[0].bucket == "consensus"
    assert tally(council_of(items[:2])).groups[0].bucket == "majority"


def test_a_missing_seat_counts_in_the_denominator():
    counted = tally(council_of(two_alike()))

    assert counted.status == "degraded"
    assert "consensus" not in {one.bucket for one in counted.groups}


def test_below_the_quorum_nothing_is_agreed_on():
    counted = tally(council_of([item("a/wal", "Enable WAL mode", WAL)]))

    assert counted.status == "no_quorum"
    assert {one.bucket for one in counted.groups} == {"unconfirmed"}


def test_a_round_that_is_not_closed_is_open():
    assert tally(council_of(two_alike(), closed=False)).status == "open"


# -- the same bytes, every item once -------------------------------------------------------


@pytest.mark.parametrize("name", ["set_a", "set_b", "set_d"])
def test_the_order_of_arrival_changes_no_byte(name):
    items, _ = labelled(name)
    outputs = set()
    for seed in range(100 if LONG else 12):
        shuffled = list(items)
        random.Random(seed).shuffle(shuffled)
        council = council_of(shuffled)
        seats = tuple(sorted(council.seats, key=lambda seat: seat.reviewer))
        counted = tally(council._replace(seats=seats))
        outputs.add(canonical(counted.as_json()) + markdown(counted, {}).encode())

    assert len(outputs) == 1


@st.composite
def councils(draw) -> Council:
    """One to seven seats with items out of few words, so that many are alike."""
    seats = draw(st.integers(1, 7))
    words = st.sampled_from(["wal", "journal", "lease", "token", "retry", "backoff", "cache"])
    items = []
    for reviewer in range(seats):
        for number in range(draw(st.integers(0, 4))):
            keywords = draw(st.lists(words, max_size=4, unique=True))
            items.append(
                item(
                    f"r{reviewer}/i{number}",
                    " ".join(draw(st.lists(words, min_size=1, max_size=4))),
                    keywords,
                    stance=draw(st.sampled_from([*STANCES, None])),
                    choice_of=draw(st.sampled_from([None, "D1=A", "D1=B"])),
                )
            )
    return council_of(items, seats=seats)


@settings(max_examples=60, deadline=None)
@given(councils())
def test_every_item_is_in_one_group_and_every_group_in_one_bucket(council):
    counted = tally(council)

    raised = [i.id for seat in council.seats if seat.reply for i in seat.reply.items]
    assert sorted(m.id for one in counted.groups for m in one.members) == sorted(raised)
    valid = sum(seat.valid for seat in council.seats)
    allowed = {"consensus", "majority", "minority"}
    if valid < council.parameters.quorum:
        allowed = {"unconfirmed"}
    elif len(council.seats) == 1:
        allowed = {None}
    assert {one.bucket for one in counted.groups} <= allowed
    for one in counted.groups:
        assert one.raised_by == tuple(
            s.reviewer for s in council.seats if s.reviewer in {m.reviewer for m in one.members}
        )


@settings(max_examples=60, deadline=None)
@given(councils())
def test_what_merges_by_itself_is_unopposed_alike_and_of_different_reviewers(council):
    counted = tally(council)

    for one in counted.groups:
        assert len(one.merges) == len(one.members) - 1
        for first, second in combinations(one.members, 2):
            assert first.reviewer != second.reviewer
            stances = {first.stance, second.stance} - {None}
            assert len({stance == "do" for stance in stances}) < 2
            assert first.choice_of is None or second.choice_of in (None, first.choice_of)
        assert all(merge.score >= council.parameters.merge_from for merge in one.merges)


class Scored(NamedTuple):
    """Items that are as alike as it is said, and that nothing speaks against."""

    items: list[Item]
    said: dict[tuple[int, int], int]

    def score(self, one: int, other: int) -> int:
        return self.said.get((min(one, other), max(one, other)), 0)

    def opposition(self, _one: int, _other: int) -> None:
        return None

    def may_merge(self, _one: int, _other: int) -> bool:
        return True

    def shared(self, _one: int, _other: int) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize(
    "weakest, places", [(180, {(0, 1, 2), (3,)}), (169, {(0, 1), (2, 3)})], ids=["all", "not all"]
)
def test_a_group_grows_by_the_mean_of_its_pairs_and_only_if_all_of_them_are_alike(weakest, places):
    items = [item(f"{name}/1", name, (name,)) for name in "abcd"]
    said = {(0, 1): 500, (0, 2): 400, (1, 2): weakest, (2, 3): 250}

    found = group(cast(Likeness, Scored(items, said)), Parameters())

    assert set(found.groups) == places
    assert all(merge.score >= 170 for merges in found.merges for merge in merges)


# -- what is opposed -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["set_a", "set_b"])
def test_opposed_topics_never_share_a_group_and_each_is_contested(name):
    items, truth = labelled(name)
    counted = tally(council_of(items))
    opposed = opposed_topics(name)

    together = {
        frozenset((truth[one.id], truth[other.id]))
        for group in counted.groups
        for one, other in combinations(group.members, 2)
    }
    listed = {frozenset(truth[name] for name in one.pair.items) for one in counted.contested}
    assert not together & opposed
    assert listed == opposed


def test_opposed_groups_keep_their_buckets_and_are_marked():
    items = [*two_alike(), item("c/no", "Do not enable WAL mode", WAL, stance="avoid")]

    counted = tally(council_of(items))

    assert [(g.bucket, g.contested) for g in counted.groups] == [
        ("majority", True),
        ("minority", True),
    ]
    assert {frozenset(c.groups) for c in counted.contested} == {frozenset(("a/wal", "c/no"))}


def test_rival_choices_stay_apart_though_both_say_do():
    items = [
        item("a/redis", "Keep sessions in Redis", ("session", "redis"), choice_of="D2=A"),
        item("b/jwt", "Keep sessions in Redis", ("session", "redis"), choice_of="D2=B"),
    ]

    counted = tally(council_of(items))

    assert len(counted.groups) == 2
    assert [one.pair.rule for one in counted.contested] == ["choice"]


def test_what_one_puts_aside_and_another_speaks_for_stays_apart():
    items = [
        item("a/redis", "Keep login sessions in Redis", ("session store", "redis", "stateless")),
        item(
            "b/jwt",
            "Use stateless tokens instead of server-side sessions",
            ("jwt", "session", "stateless"),
        ),
    ]

    counted = tally(council_of(items))

    assert len(counted.groups) == 2
    assert [one.pair.rule for one in counted.contested] == ["rejects"]


def test_an_unstated_stance_never_merges_with_its_negated_twin():
    items = [
        item("a/wal", "Enable WAL mode", WAL, stance=None),
        item("b/no", "Do not enable WAL mode", WAL, stance=None),
    ]

    counted = tally(council_of(items))

    assert len(counted.groups) == 2
    assert [p.items for p in counted.possible_duplicates] == [("a/wal", "b/no")]
    assert "a/wal: stance unstated" in counted.warnings


def test_two_things_at_one_place_are_not_one():
    items = [
        item("a/lock", "Take the lock before reading", ("lock", "race", "read"), about="S1"),
        item("b/name", "Call the column created_at", ("naming", "column", "schema"), about="S1"),
    ]

    assert len(tally(council_of(items)).groups) == 2


# Items are ordered by a digest of their content: the title decides which of them comes first.
@pytest.mark.parametrize("title", ["three", "drei", "trois"])
def test_a_chain_of_neighbours_bridges_nothing(title: str):
    first = item("a/1", "one", ("wal", "journal", "sqlite"))
    between = item("b/2", "two", ("sqlite", "journal", "backup", "restore"))
    last = item("c/3", title, ("backup", "restore", "snapshot"))

    def groups(*items: Item) -> set[frozenset[str]]:
        counted = tally(council_of(items))
        return {frozenset(member.id for member in one.members) for one in counted.groups}

    assert groups(first, between) == {frozenset(("a/1", "b/2"))}
    assert groups(between, last) == {frozenset(("b/2", "c/3"))}
    assert len(groups(first, between, last)) == 2


def test_without_keywords_nothing_merges_by_itself():
    items = [item("a/1", "Enable WAL mode now"), item("b/2", "Enable WAL mode now")]

    assert len(tally(council_of(items)).groups) == 2


def test_every_merge_tells_rule_score_and_shared_terms():
    merge = tally(council_of(two_alike())).groups[0].merges[0]

    assert (merge.rule, merge.items) == ("likeness", ("a/wal", "b/journal"))
    assert merge.score >= 165
    assert {"wal", "journal"} <= set(merge.shared)


def test_severity_and_confidence_stay_with_their_member():
    items = [
        item("a/wal", "Enable WAL mode", WAL, severity="nit", confidence=95),
        item("b/journal", "Use WAL mode", WAL, severity="blocker", confidence=10),
    ]

    members = tally(council_of(items)).as_json()["groups"][0]["members"]

    assert [(m["severity"], m["confidence"]) for m in members] == [("nit", 95), ("blocker", 10)]


# -- what a leader settles -----------------------------------------------------------------


def settled(number: int, kind: str, *items: str, forced: bool = False) -> Override:
    return Override(number, kind, items, "because", "leader", forced)


def test_a_merge_and_a_split_are_replayed_and_the_last_word_counts():
    items = [*two_alike(), item("c/x", "Rotate the log files daily", ("log rotation", "disk"))]
    council = council_of(items)

    merged = tally(council, [settled(1, "merge", "a/wal", "c/x")])
    assert group_of(merged, "c/x") == {"a/wal", "b/journal", "c/x"}
    assert the_group(merged, "c/x").adjusted_by == (1,)
    assert the_group(merged, "c/x").bucket == "consensus"
    assert the_group(merged, "c/x").automatic_bucket == "majority"

    split = tally(council, [settled(1, "split", "a/wal", "b/journal")])
    assert group_of(split, "a/wal") == {"a/wal"}

    both = [settled(1, "merge", "a/wal", "c/x"), settled(2, "split", "a/wal", "c/x")]
    assert group_of(tally(council, both), "a/wal") == {"a/wal", "b/journal"}


def test_an_override_adds_no_vote():
    items = [item("a/1", "Enable WAL", WAL), item("a/2", "Rotate the logs", ("logs", "rotate"))]

    counted = tally(council_of(items), [settled(1, "merge", "a/1", "a/2")])

    assert counted.groups[0].raised_by == ("a",)


def test_opposed_items_are_merged_only_by_force_and_stay_contested():
    items = [
        item("a/wal", "Enable WAL mode", WAL),
        item("b/no", "Do not enable WAL mode", WAL, stance="avoid"),
    ]
    council = council_of(items)

    refused = tally(council, [settled(1, "merge", "a/wal", "b/no")])
    assert len(refused.groups) == 2
    assert refused.not_carried_out == {1}
    assert any("override 1 was not carried out" in warning for warning in refused.warnings)

    forced = tally(council, [settled(1, "merge", "a/wal", "b/no", forced=True)])
    assert [(len(g.members), g.contested) for g in forced.groups] == [(2, True)]
    assert forced.not_carried_out == frozenset()


def test_a_dismissed_group_is_labelled_and_not_hidden():
    counted = tally(council_of(two_alike()), [settled(1, "dismiss", "a/wal")])

    assert [(g.dismissed, g.bucket, len(g.members)) for g in counted.groups] == [
        (True, "majority", 2)
    ]


def test_an_override_about_no_item_is_told():
    counted = tally(council_of(two_alike()), [settled(1, "merge", "a/wal", "z/none")])

    assert any("override 1" in warning for warning in counted.warnings)


# -- the second round ----------------------------------------------------------------------


def test_a_ballot_endorses_and_never_changes_what_was_raised():
    votes = [Vote("c", "a/wal", "agree"), Vote("a", "c/x", "disagree")]
    items = [*two_alike(), item("c/x", "Rotate the log files daily", ("log rotation", "disk"))]

    one = the_group(tally(council_of(items), (), votes), "a/wal")

    assert (one.raised_by, one.endorsed_by, one.bucket) == (("a", "b"), ("c",), "majority")
    assert one.bucket_after_ballot == "consensus"
    assert one.carried == ("b",)  # silence keeps the first round


def test_a_vote_for_ones_own_group_counts_nothing():
    one = tally(council_of(two_alike()), (), [Vote("a", "a/wal", "agree")]).groups[0]

    assert (one.raised_by, one.endorsed_by) == (("a", "b"), ())


def test_a_ballot_that_says_it_is_the_same_joins_unless_opposed():
    items = [
        item("a/1", "Enable WAL mode", WAL),
        item("b/2", "Let readers go on while one writes", ("concurrency", "reader", "writer")),
        item("c/3", "Do not enable WAL mode", WAL, stance="avoid"),
    ]
    votes = [Vote("b", "a/1", "agree", "b/2"), Vote("c", "a/1", "disagree", "c/3")]

    counted = tally(council_of(items), (), votes)

    assert group_of(counted, "b/2") == {"a/1", "b/2"}
    assert group_of(counted, "c/3") == {"c/3"}
    assert any("stay apart" in warning for warning in counted.warnings)


# -- seats, decisions ----------------------------------------------------------------------


def test_declared_decisions_are_counted_exactly():
    seats = tuple(
        Seat(name, "valid", Reply(name, "approve", decisions=votes))
        for name, votes in (
            ("a", (DecisionVote("D1", "WAL"),)),
            ("b", (DecisionVote("D1", "WAL"),)),
            ("c", ()),
        )
    )
    council = council_of([])._replace(seats=seats, decisions=DECISIONS)

    count = tally(council).decisions[0]

    assert count.choices == {"WAL": ("a", "b"), "DELETE": ()}
    assert count.silent == ("c",)


def test_three_seats_of_one_model_get_a_banner_and_keep_the_quorum():
    seats = tuple(Seat(n, "valid", Reply(n, "approve", model="m-1")) for n in "abc")

    counted = tally(council_of([])._replace(seats=seats))

    assert counted.status == "complete"
    assert "m-1" in counted.banners[0]


def test_a_link_to_an_item_that_nobody_raised_is_told():
    linked = item("a/1", "Enable WAL mode", WAL, links=(Link("same_as", "b/none"),))

    assert any("b/none" in warning for warning in tally(council_of([linked])).warnings)
