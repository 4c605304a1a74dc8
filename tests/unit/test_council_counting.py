"""What a tally says, word for word: groups, reasons, warnings, votes, and its shape in JSON."""

import hashlib

import pytest

from inbox_orch.orch.council.model import (
    Decision,
    DecisionVote,
    Item,
    Link,
    Override,
    Parameters,
    Reply,
    Seat,
    Vote,
)
from inbox_orch.orch.council.tally import canonical, tally
from support.councils import BRIEF_SHA256, COUNCIL_ID, council_of, item

WAL = ("wal", "sqlite")
LOGS = ("logs", "rotate")


def over(number: int, kind: str, *items: str, text: str = "because", forced: bool = False):
    return Override(number, kind, items, text, "lead", forced)


def groups_of(counted) -> list[tuple[str, ...]]:
    return [tuple(member.id for member in one.members) for one in counted.groups]


def rules_of(counted) -> list[list[str]]:
    return [[merge.rule for merge in one.merges] for one in counted.groups]


# -- the shape -------------------------------------------------------------------------------


def test_a_whole_tally_in_json():
    seats = (
        Seat(
            "a",
            "valid",
            Reply(
                "a",
                "approve",
                decisions=(DecisionVote("D1", "A"),),
                items=(item("a/wal", "Enable WAL", WAL, severity="major", confidence=80),),
                model="m-1",
                warnings=("odd",),
            ),
        ),
        Seat(
            "b",
            "late",
            Reply(
                "b",
                "reject",
                decisions=(DecisionVote("D1", "C"), DecisionVote("D2", "A")),
                items=(item("b/wal", "Enable WAL", WAL, severity="blocker"),),
            ),
        ),
        Seat("c", "timed_out", None, "no reply before the deadline"),
        # A reply that is not valid is not counted, whatever it says.
        Seat("d", "invalid", Reply("d", "approve", items=(item("d/x", "Enable WAL", WAL),)), "bad"),
    )
    council = council_of([])._replace(
        seats=seats, decisions=(Decision("D1", "Which?", ("A", "B")),), revision=3
    )
    counted = tally(council, [over(4, "note", "a/wal", text="seen")], [Vote("b", "a/wal", "agree")])
    shape = counted.as_json()
    digest = shape.pop("digest")

    score = counted.groups[0].merges[0].score
    assert digest == hashlib.sha256(canonical(shape)).hexdigest()
    assert shape == {
        "schema": "orch.council.tally/1",
        "council": {
            "id": COUNCIL_ID,
            "title": "How to store the state",
            "brief_sha256": BRIEF_SHA256,
        },
        "status": "degraded",
        "seats": [
            {
                "reviewer": "a",
                "state": "valid",
                "model": "m-1",
                "verdict": "approve",
                "missing_reason": None,
                "agent": None,
                "warnings": ["odd"],
            },
            {
                "reviewer": "b",
                "state": "late",
                "model": None,
                "verdict": "reject",
                "missing_reason": None,
                "agent": None,
                "warnings": [],
            },
            {
                "reviewer": "c",
                "state": "timed_out",
                "model": None,
                "verdict": None,
                "missing_reason": "no reply before the deadline",
                "agent": None,
                "warnings": [],
            },
            {
                "reviewer": "d",
                "state": "invalid",
                "model": None,
                "verdict": None,
                "missing_reason": "bad",
                "agent": None,
                "warnings": [],
            },
        ],
        "decisions": [
            {
                "id": "D1",
                "question": "Which?",
                "choices": {"A": ["a"], "B": []},
                "silent": ["b"],
            }
        ],
        "groups": [
            {
                "id": "a/wal",
                "title": "Enable WAL",
                "bucket": "minority",
                "members": [
                    {
                        "item": "a/wal",
                        "title": "Enable WAL",
                        "stance": "do",
                        "severity": "major",
                        "confidence": 80,
                    },
                    {
                        "item": "b/wal",
                        "title": "Enable WAL",
                        "stance": "do",
                        "severity": "blocker",
                        "confidence": None,
                    },
                ],
                "raised_by": ["a", "b"],
                "endorsed_by": [],
                "opposed_by": [],
                "abstained": [],
                "carried": ["a"],
                "bucket_after_ballot": "minority",
                "contested": False,
                "merges": [
                    {
                        "rule": "likeness",
                        "items": ["a/wal", "b/wal"],
                        "score": score,
                        "shared": ["sqlite", "wal", "enabl"],
                    }
                ],
                "adjusted_by": [4],
                "automatic_bucket": "minority",
                "dismissed": False,
                "notes": ["seen"],
                "near": [],
            }
        ],
        "contested": [],
        "possible_duplicates": [],
        "overrides": [
            {
                "number": 4,
                "kind": "note",
                "items": ["a/wal"],
                "reason": "seen",
                "actor": "lead",
                "forced": False,
            }
        ],
        "banners": [],
        "warnings": ["a: odd"],
        "parameters": {
            "merge_from": 170,
            "suggest_from": 90,
            "neighbours": 4,
            "keyword_tenths": 8,
            "short_terms": 20,
            "quorum": 2,
        },
        "revision": 3,
    }
    assert 700 < score <= 1000


def test_the_one_way_of_writing_json_sorts_keys_and_escapes_nothing():
    assert canonical({"b": "ä", "a": [1, {"d": None, "c": "\ud800"}]}) == (
        b'{"a":[1,{"c":"\xed\xa0\x80","d":null}],"b":"\xc3\xa4"}'
    )


def test_an_unstated_stance_is_said_to_be_so():
    counted = tally(council_of([item("a/1", "Enable WAL", stance=None)]))

    assert counted.as_json()["groups"][0]["members"][0]["stance"] == "unstated"
    assert counted.warnings == ("a/1: stance unstated",)
    prose = item("a/1", "Enable WAL", stance=None, text_only=True)
    assert tally(council_of([prose])).warnings == ()


# -- status, banners, decisions --------------------------------------------------------------


@pytest.mark.parametrize(
    "states, quorum, status",
    [
        (("valid", "valid"), 2, "complete"),
        (("valid", "late", "empty"), 2, "degraded"),
        (("valid", "empty", "empty"), 2, "no_quorum"),
        (("valid", "valid"), 3, "no_quorum"),
    ],
)
def test_the_status_follows_from_the_number_of_valid_seats(states, quorum, status):
    seats = tuple(Seat(str(n), state, Reply(str(n), None)) for n, state in enumerate(states))
    council = council_of([])._replace(seats=seats, parameters=Parameters(quorum=quorum))

    counted = tally(council)

    assert counted.status == status
    assert [seat.state for seat in counted.valid] == [s for s in states if s != "empty"]
    assert tally(council._replace(closed=False)).status == "open"


@pytest.mark.parametrize(
    "models, banners",
    [
        (("m", "m"), ("All 2 replies come from one model (m): not independent.",)),
        (("m",), ()),
        (("m", "n"), ()),
        ((None, None), ()),
        (("m", None), ()),
    ],
)
def test_replies_of_one_model_are_not_independent(models, banners):
    seats = tuple(Seat(str(n), "valid", Reply(str(n), None, model=m)) for n, m in enumerate(models))
    other = Seat("x", "empty", Reply("x", None, model="other"))

    assert tally(council_of([])._replace(seats=(*seats, other))).banners == banners


def test_only_valid_seats_choose_or_are_silent():
    vote = (DecisionVote("D1", "A"),)
    seats = (
        Seat("a", "valid", Reply("a", None, decisions=(DecisionVote("D0", "B"), *vote))),
        Seat("b", "empty", Reply("b", None, decisions=vote)),
        Seat("c", "timed_out"),
        Seat("d", "valid", Reply("d", None, decisions=(DecisionVote("D1", "B"), *vote))),
        Seat("e", "valid", Reply("e", None)),
    )
    decisions = (Decision("D1", "Which?", ("A", "B")),)
    counted = tally(council_of([])._replace(seats=seats, decisions=decisions)).decisions[0]

    assert (counted.choices, counted.silent) == ({"A": ("a",), "B": ("d",)}, ("e",))


# -- order and faces -------------------------------------------------------------------------


def lone(name: str, title: str, **options) -> Item:
    return item(name, title, (title,), **options)


def test_groups_come_by_support_then_gravity_then_confidence_then_name():
    items = [
        lone("a/minor", "apple", confidence=10),
        lone("a/nothing", "apricot", confidence=0),
        lone("a/unknown", "banana"),
        lone("b/sure", "cherry", confidence=95),
        lone("b/nit", "date", severity="nit", confidence=100),
        lone("c/grave", "elder", severity="blocker"),
        item("a/wal", "fig", WAL, severity="nit"),
        item("b/wal", "fig", WAL, severity="nit"),
        lone("c/zero", "grape"),
    ]

    assert [one.id for one in tally(council_of(items)).groups] == [
        "a/wal",
        "c/grave",
        "b/sure",
        "a/minor",
        "a/nothing",
        "a/unknown",
        "c/zero",
        "b/nit",
    ]


def test_the_confidence_of_a_group_is_the_mean_of_those_that_gave_one():
    items = [
        item("a/1", "fig", WAL, confidence=30),
        item("b/1", "fig", WAL, confidence=71),
        item("c/1", "fig", WAL),
        item("a/2", "grape", LOGS, confidence=50),
        item("b/2", "grape", LOGS, confidence=50),
        item("c/2", "grape", LOGS, confidence=50),
    ]

    assert [one.id for one in tally(council_of(items)).groups] == ["a/1", "a/2"]


@pytest.mark.parametrize("typical", ["a/1", "b/1", "c/1", "d/1"])
def test_a_group_is_called_what_its_most_typical_member_is(typical):
    others = iter(("apple pear", "pear banana", "banana apple"))
    items = [
        item(name, "apple banana pear" if name == typical else next(others), WAL)
        for name in ("a/1", "b/1", "c/1", "d/1")
    ]
    counted = tally(council_of(items, seats=4))

    assert groups_of(counted) == [("a/1", "b/1", "c/1", "d/1")]
    assert counted.groups[0].title == "apple banana pear"


@pytest.mark.parametrize("names", [("a/1", "b/1"), ("b/1", "a/1")])
def test_a_pair_is_called_what_its_first_member_is(names):
    items = [item(name, f"apple {name[0] * 3}", WAL) for name in names]
    first = min(items, key=lambda one: one.order())

    assert tally(council_of(items)).groups[0].title == first.title


# -- pairs -----------------------------------------------------------------------------------


def test_pairs_that_are_contested_name_their_groups_and_the_most_alike_come_first():
    items = [
        item("a/wal", "Enable WAL mode", WAL),
        item("b/wal", "Enable WAL mode", WAL),
        item("c/no", "Enable WAL mode", (*WAL, "backup"), stance="avoid"),
        item("a/logs", "Rotate", LOGS, links=(Link("opposes", "c/keep"),)),
        item("c/keep", "Retain everything", ("archive",)),
    ]
    counted = tally(council_of(items))

    assert {(c.pair.items, c.pair.rule, c.groups) for c in counted.contested} == {
        (("a/wal", "c/no"), "stance", ("a/wal", "c/no")),
        (("b/wal", "c/no"), "stance", ("a/wal", "c/no")),
        (("a/logs", "c/keep"), "opposes", ("a/logs", "c/keep")),
    }
    assert [c.pair.score for c in counted.contested] == sorted(
        (c.pair.score for c in counted.contested), reverse=True
    )
    assert counted.contested[0].evidence.endswith(
        "/wal says do, c/no says avoid, both about sqlite wal"
    )
    assert counted.contested[2].evidence == "a/logs says that it opposes c/keep"
    assert counted.contested[0].pair.score > counted.contested[2].pair.score == 0
    assert counted.contested[0].pair.shared == ("sqlite", "wal", "enabl", "mode")
    assert counted.as_json()["contested"][0] == {
        **counted.contested[0].pair.as_json(),
        "groups": list(counted.contested[0].groups),
        "evidence": counted.contested[0].evidence,
    }


def test_opposed_items_about_different_things_are_not_contested():
    items = [
        item("a/wal", "Enable WAL mode", WAL),
        item("b/logs", "Rotate logs", LOGS, stance="avoid"),
    ]

    assert tally(council_of(items)).contested == ()


@pytest.mark.parametrize("above, number", [(0, 1), (1, 0)])
def test_opposed_items_are_contested_from_the_threshold_on(above, number):
    items = [
        item("a/1", "Enable WAL", ("wal", "sqlite")),
        item("b/2", "Skip it", ("wal", "backup"), stance="avoid"),
    ]
    (one,) = tally(council_of(items, parameters=Parameters(merge_from=1))).contested
    parameters = Parameters(merge_from=one.pair.score + above)

    assert len(tally(council_of(items, parameters=parameters)).contested) == number


def near(name: str, *keywords: str, **options) -> Item:
    return item(name, name, keywords, **options)


def test_neighbours_that_did_not_merge_are_possible_duplicates():
    items = [near("a/1", "wal", "sqlite"), near("b/2", "wal", "backup")]
    parameters = Parameters(merge_from=900, suggest_from=100)
    counted = tally(council_of(items, parameters=parameters))

    (pair,) = counted.possible_duplicates
    assert (pair.items, pair.rule, pair.shared) == (("a/1", "b/2"), "neighbour", ("wal",))
    exactly = Parameters(merge_from=900, suggest_from=pair.score)
    assert len(tally(council_of(items, parameters=exactly)).possible_duplicates) == 1
    above = Parameters(merge_from=900, suggest_from=pair.score + 1)
    assert tally(council_of(items, parameters=above)).possible_duplicates == ()


@pytest.mark.parametrize(
    "other",
    [
        near("a/2", "wal", "sqlite"),
        near("b/2", "wal", "sqlite", stance="avoid"),
        near("b/2", "logs"),
    ],
)
def test_what_is_of_one_reviewer_opposed_or_unlike_is_no_possible_duplicate(other):
    parameters = Parameters(merge_from=2000)
    items = [near("a/1", "wal", "sqlite"), other]

    assert tally(council_of(items, parameters=parameters)).possible_duplicates == ()


def test_each_item_has_so_many_neighbours_at_most():
    items = [near(f"{name}/1", "wal") for name in "abcdef"]
    parameters = Parameters(merge_from=2000, neighbours=1)
    found = tally(council_of(items, seats=6, parameters=parameters)).possible_duplicates

    assert 3 <= len(found) <= 6


def test_possible_duplicates_come_by_how_alike_they_are_then_by_name():
    items = [
        near("a/1", "wal", "sqlite"),
        near("b/1", "wal", "backup"),
        near("c/1", "wal", "backup"),
        near("d/1", "wal", "sqlite"),
    ]
    parameters = Parameters(merge_from=2000, suggest_from=1)
    found = tally(council_of(items, seats=4, parameters=parameters)).possible_duplicates

    assert len(found) == 6
    assert found == tuple(sorted(found, key=lambda pair: (-pair.score, pair.items)))
    assert {pair.items for pair in found[:2]} == {("a/1", "d/1"), ("b/1", "c/1")}


@pytest.mark.parametrize(
    "overrides, suggested",
    [
        ([], True),
        ([over(1, "split", "a/1", "b/2")], False),
        ([over(1, "split", "b/2", "a/1")], False),
        ([over(1, "note", "a/1", "b/2")], True),
        ([over(1, "split", "a/1", "c/3")], True),
    ],
)
def test_who_has_split_two_items_is_not_asked_about_them_again(overrides, suggested):
    items = [near("a/1", "wal"), near("b/2", "wal"), near("c/3", "logs")]
    counted = tally(council_of(items, parameters=Parameters(merge_from=2000)), overrides)

    assert bool(counted.possible_duplicates) is suggested


# -- merging ---------------------------------------------------------------------------------


def test_items_merge_from_the_threshold_on():
    items = [near("a/1", "wal", "sqlite"), near("b/2", "wal", "backup")]
    asked = Parameters(merge_from=2000)
    (pair,) = tally(council_of(items, parameters=asked)).possible_duplicates

    for threshold, number in ((pair.score, 1), (pair.score + 1, 2)):
        parameters = Parameters(merge_from=threshold)
        assert len(tally(council_of(items, parameters=parameters)).groups) == number


def test_the_most_alike_merge_first_and_the_least_alike_members_decide():
    items = [
        near("a/1", "wal", "sqlite", "journal"),
        near("b/1", "wal", "sqlite", "journal"),
        near("c/1", "wal", "backup", "restore"),
        near("d/1", "backup", "restore", "wal"),
    ]
    counted = tally(council_of(items, seats=4))

    assert groups_of(counted) == [("a/1", "b/1"), ("c/1", "d/1")]
    loose = tally(council_of(items, seats=4, parameters=Parameters(merge_from=100)))
    assert groups_of(loose) == [("a/1", "b/1", "c/1", "d/1")]
    merges = loose.groups[0].merges
    assert {merge.items for merge in merges[:2]} == {("a/1", "b/1"), ("c/1", "d/1")}
    assert min(merges[0].score, merges[1].score) > merges[2].score


def test_links_and_ballots_join_groups_and_say_so():
    items = [
        item("a/1", "Enable WAL", WAL),
        item("b/2", "Rotate", LOGS, links=(Link("same_as", "a/1"),)),
        item("c/3", "Retain", ("archive",)),
    ]
    votes = [Vote("c", "a/1", "agree", same_as="c/3")]
    counted = tally(council_of(items), (), votes)

    assert groups_of(counted) == [("a/1", "b/2", "c/3")]
    assert sorted(rules_of(counted)[0]) == ["ballot same_as", "same_as"]
    assert counted.warnings == ()


def test_links_that_lead_nowhere_or_to_the_opposite_are_told():
    items = [
        item("a/1", "Enable WAL", WAL, links=(Link("same_as", "x/9"), Link("same_as", "b/2"))),
        item("b/2", "Enable WAL", WAL, stance="avoid", links=(Link("depends_on", "a/1"),)),
    ]

    assert tally(council_of(items)).warnings == (
        "a/1 and b/2 are opposed, and stay apart",
        "a/1 is linked to x/9, which is no item",
    )


def test_what_is_one_already_is_not_said_to_stay_apart():
    items = [
        item("a/1", "Enable WAL", WAL, links=(Link("same_as", "b/2"),)),
        item("b/2", "Enable WAL", WAL),
    ]
    counted = tally(council_of(items), [over(1, "merge", "a/1", "b/2")])

    assert counted.warnings == ()
    assert rules_of(counted) == [["likeness"]]


# -- what leaders settle ---------------------------------------------------------------------

THREE = [
    item("a/1", "Enable WAL", WAL),
    item("b/2", "Enable WAL", WAL),
    item("c/3", "Rotate", LOGS),
]


def test_a_merge_says_which_override_made_it():
    counted = tally(council_of(THREE), [over(7, "merge", "c/3", "b/2")])

    assert groups_of(counted) == [("a/1", "b/2", "c/3")]
    assert rules_of(counted) == [["likeness", "override 7"]]
    assert counted.groups[0].merges[1].items == ("b/2", "c/3")
    assert counted.groups[0].adjusted_by == (7,)
    assert (counted.groups[0].bucket, counted.groups[0].automatic_bucket) == (
        "consensus",
        "majority",
    )


def test_what_it_was_before_a_leader_s_word_has_the_ballots_in_it():
    votes = [Vote("c", "a/1", "agree", same_as="c/3")]
    items = [item("a/1", "Enable WAL", WAL), item("c/3", "Rotate", LOGS)]
    (counted,) = tally(council_of(items), [over(1, "note", "a/1")], votes).groups

    assert (counted.bucket, counted.automatic_bucket) == ("majority", "majority")


def test_overrides_are_counted_where_their_items_are_now():
    counted = tally(
        council_of(THREE), [over(1, "split", "a/1", "b/2"), over(2, "note", "c/3", text="later")]
    )

    assert {one.id: one.adjusted_by for one in counted.groups} == {
        "a/1": (1,),
        "b/2": (1,),
        "c/3": (2,),
    }
    assert {one.id: one.notes for one in counted.groups} == {
        "a/1": (),
        "b/2": (),
        "c/3": ("later",),
    }
    assert {one.automatic_bucket for one in counted.groups} == {"majority", "minority"}


def test_a_dismissal_is_a_note_with_a_label():
    counted = tally(council_of(THREE), [over(1, "dismiss", "b/2", text="not now")])

    assert [(one.dismissed, one.notes) for one in counted.groups] == [
        (True, ("not now",)),
        (False, ()),
    ]


@pytest.mark.parametrize("kind", ["merge", "split"])
@pytest.mark.parametrize("items", [("a/1", "x/9"), ("a/1", "a/1"), ("a/1",)])
def test_an_override_that_names_no_two_items_is_told(kind, items):
    counted = tally(council_of(THREE), [over(3, kind, *items)])

    assert counted.not_carried_out == {3}
    assert counted.warnings == (
        f"override 3 was not carried out: there are no two items {' and '.join(items)}",
    )


def test_a_merge_of_what_is_kept_apart_is_told():
    overrides = [over(1, "split", "a/1", "c/3"), over(2, "merge", "b/2", "c/3")]
    counted = tally(council_of(THREE), overrides)

    assert groups_of(counted) == [("a/1", "b/2"), ("c/3",)]
    (warning,) = counted.warnings
    assert counted.not_carried_out == {2}
    assert warning == (
        "override 2 was not carried out: b/2 and c/3 are opposed or kept apart, themselves or"
        " others of their groups"
    )
    forced = [overrides[0], over(2, "merge", "b/2", "c/3", forced=True)]
    assert groups_of(tally(council_of(THREE), forced)) == [("a/1", "b/2"), ("c/3",)]


def test_the_last_word_about_a_pair_counts_whichever_item_is_named_first():
    back = [over(1, "split", "a/1", "b/2"), over(2, "merge", "b/2", "a/1")]

    assert groups_of(tally(council_of(THREE), back))[0] == ("a/1", "b/2")
    assert rules_of(tally(council_of(THREE), back))[0] == ["likeness"]


def test_merges_are_carried_out_in_the_order_of_their_numbers():
    items = [item("a/1", "Enable", WAL), item("b/2", "Rotate", LOGS), item("c/3", "Keep", ("x",))]
    overrides = [over(2, "merge", "b/2", "c/3"), over(1, "merge", "a/1", "b/2")]

    assert rules_of(tally(council_of(items), overrides)) == [["override 1", "override 2"]]


# -- the second round ------------------------------------------------------------------------


def test_votes_are_sorted_and_only_those_of_others_count():
    votes = [
        Vote("z", "a/1", "agree"),
        Vote("y", "b/2", "agree"),
        Vote("a", "a/1", "disagree"),
        Vote("c", "b/2", "abstain"),
        Vote("x", "a/1", "disagree"),
        Vote("w", "c/3", "agree"),
    ]
    one = tally(council_of(THREE, seats=5), (), votes).groups[0]

    assert (one.endorsed_by, one.opposed_by, one.abstained) == (("y", "z"), ("x",), ("c",))
    assert (one.raised_by, one.carried) == (("a", "b"), ("b",))
    assert (one.bucket, one.bucket_after_ballot) == ("minority", "majority")


def test_without_a_second_round_nothing_is_carried():
    one = tally(council_of(THREE)).groups[0]

    assert (one.bucket_after_ballot, one.carried, one.endorsed_by) == (None, (), ())
    after = tally(council_of(THREE), (), []).groups[0]
    assert (after.bucket_after_ballot, after.carried) == ("majority", ("a", "b"))
