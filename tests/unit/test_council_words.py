"""Texts as terms, how alike they are, and which items speak against each other: the numbers."""

import math

import pytest

from inbox_orch.orch.council import words
from inbox_orch.orch.council.likeness import Likeness
from inbox_orch.orch.council.model import Item, Link, Parameters
from support.councils import item

# -- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, terms",
    [
        ("", set()),
        ("the and of is not", set()),
        ("Writing writes WRITE", {"write"}),
        ("journalMode SQLite3Store", {"journal", "mode", "sqlite3", "store"}),
        ("snake_case-and/more", {"snake", "case"}),
        # NFKC makes one letter of a ligature, and folding one of a sharp s.
        ("\ufb01le stra\u00dfe", {"file", "strass"}),
    ],
)
def test_a_text_is_the_stems_of_its_words_without_the_stop_words(text, terms):
    assert words.terms(text) == terms


@pytest.mark.parametrize(
    "text, kept, rejected",
    [
        ("Use A", "Use A", ""),
        ("Use A instead of B", "Use A  ", " B"),
        ("Use A rather than B, and C", "Use A   and C", " B"),
        ("In place of B; use A", "  use A", " B"),
        ("A INSTEAD OF B. C rather than D", "A   C  ", " B  D"),
        ("A instead of B\nand more", "A  ", " B\nand more"),
        ("A instead of it: B", "A   B", " it"),
    ],
)
def test_what_a_text_puts_aside_ends_with_its_clause(text, kept, rejected):
    assert words.split_rejected(text) == (kept, rejected)


def test_a_term_is_the_more_telling_the_fewer_texts_have_it():
    documents = [["wal", "wal", "lock"], ["wal"], {"wal", "backup"}]

    assert words.weights(documents) == {
        "wal": round(1000 * math.log(2)),
        "lock": round(1000 * math.log(4)),
        "backup": round(1000 * math.log(4)),
    }
    assert words.weights([]) == {}


def test_texts_like_none_make_a_term_of_two_among_few_tell_more():
    documents = [["wal", "lock"], ["wal"]]

    assert words.weights(documents, 10) == {
        "wal": round(1000 * math.log(7)),
        "lock": round(1000 * math.log(13)),
    }


def test_one_rare_keyword_in_common_tells_in_a_small_council_what_it_tells_in_a_large_one():
    one = item("a/1", "Enable it", ("wal", "sqlite", "journal mode"))
    other = item("b/2", "Write ahead", ("wal", "recovery", "redo log", "fsync"))
    others = [
        item(f"{name}/{number}", f"thing {name}{number}", (f"key{name}{number}", "spare"))
        for name in "ab"
        for number in range(3, 30)
    ]

    alone = likeness_of(one, other, tenths=10).score(0, 1)
    among = likeness_of(one, other, *others, tenths=10).score(0, 1)

    assert 9 * among <= 10 * alone <= 10 * among


def test_likeness_is_the_weight_in_common_of_the_whole_per_mille():
    weight = {"a": 3, "b": 2, "c": 2}

    assert words.likeness(frozenset("ab"), frozenset("ac"), weight) == 3000 // 7
    assert words.likeness(frozenset("a"), frozenset("a"), weight) == 1000
    assert words.likeness(frozenset("a"), frozenset("b"), weight) == 0
    assert words.likeness(frozenset(), frozenset(), weight) == 0


# -- likeness --------------------------------------------------------------------------------


def likeness_of(*items: Item, tenths: int = 8) -> Likeness:
    return Likeness(items, Parameters(keyword_tenths=tenths))


def test_keywords_alone_count_half_by_their_words_and_half_as_phrases():
    one = item("a/1", "alpha beta", ("alpha", "gamma"))
    other = item("b/2", "alpha beta delta", ("alpha", "epsilon"))
    # Two items and ten like none, so a term of both weighs ln 7, a term of one ln 13.
    by_word = 1000 * 1946 // (1946 + 2 * 2565)
    by_phrase = 1000 * 1946 // (1946 + 2565)

    score = likeness_of(one, other, tenths=10).score(0, 1)

    assert score == (by_word + 75 * by_phrase // 100) // 2


def test_a_phrase_counts_by_the_words_that_it_shares_with_its_like():
    one = item("a/1", "t", ("fencing token", "lease"))
    same, part, none = (
        likeness_of(one, item("b/2", "u", keywords), tenths=10).score(0, 1)
        for keywords in (("fencing token", "lease"), ("token", "lease"), ("wal", "sqlite"))
    )

    assert same > part > none == 0


def test_of_short_items_so_many_tenths_are_the_keywords_and_of_long_ones_less():
    words_of_one = " ".join(f"word{number}" for number in range(200))

    def scores(proposal: str) -> tuple[int, int]:
        one = item("a/1", "alpha", ("wal", "journal"), proposal=proposal)
        other = item("b/2", "beta", ("wal", "journal"), proposal=proposal.replace("word", "term"))
        return tuple(likeness_of(one, other, tenths=tenths).score(0, 1) for tenths in (8, 0))

    short, long = scores("word1"), scores(words_of_one)
    assert short[0] > 2 * short[1]
    assert long[0] < short[0] // 3


@pytest.mark.parametrize("number, percent", [(40, 100), (70, 100), (140, 50), (280, 25)])
def test_from_seventy_terms_on_what_two_texts_share_counts_in_proportion_less(number, percent):
    def score(number: int) -> int:
        text = " ".join(f"{a}{b}" for a in "bcdfghjklmnpqrst" for b in range(30))
        proposal = " ".join(text.split()[: number - 1])
        items = [item(name, "title", (), proposal=proposal) for name in ("a/1", "b/1")]
        return likeness_of(*items, tenths=0).score(0, 1)

    assert abs(score(number) - percent * score(50) // 100) <= 1


def test_the_longer_of_two_texts_takes_nothing_from_the_shorter_one():
    terms = [f"{a}{b}" for a in "bcdfghjklmnpqrst" for b in range(30)]
    short = item("a/1", "title", (), proposal=" ".join(terms[:60]))
    long = item("b/1", "title", (), proposal=" ".join(terms[:90]))

    found = likeness_of(short, long, tenths=0)

    assert found.score(0, 1) > 500


def test_the_text_of_an_item_is_its_title_its_keywords_its_proposal_and_its_rationale():
    other = item("b/2", "alpha beta gamma delta", ("zeta",))

    def score(**parts: object) -> int:
        return likeness_of(item("a/1", "alpha", **parts), other, tenths=0).score(0, 1)

    bare = score()
    assert score(proposal="beta") > bare
    assert score(rationale="gamma") > bare
    assert score(proposal="beta") > score(rationale="beta")
    assert score(keywords=("delta",)) > score(proposal="delta")


def test_what_is_common_in_a_council_makes_nothing_alike():
    shared = "the store of the worker keeps every attempt of a run with its thread"
    items = [
        item(f"{name}/{number}", f"thing{name}{number}", (f"key{name}{number}",), proposal=shared)
        for name in "abc"
        for number in range(12)
    ]

    found = likeness_of(*items)

    assert max(found.score(0, other) for other in range(12, 36)) < 90


@pytest.mark.parametrize(
    "title, kept, put_aside",
    [
        ("Accept one commit, never the worker's history", "accept commit one", "histori worker"),
        ("Use tokens instead of sessions", "token", "session"),
        ("Leave set-up files out of the harvest", "", "file set"),
        ("Leave tasks as they are", "leav task", ""),
        ("Do not enable WAL: it is unsafe", "unsaf", "enabl wal"),
    ],
)
def test_a_title_is_split_into_what_it_speaks_for_and_against(title, kept, put_aside):
    found = [words.terms(part) for part in words.split_negated(title)]

    assert set(kept.split()) - {"one"} <= found[0]
    assert set(put_aside.split()) <= found[1]
    assert not found[1] & set(kept.split())


def test_shared_terms_come_keywords_first_the_most_telling_first_then_by_letters():
    one = item("a/1", "eta zeta wal theta", ("apple", "lock", "wal"))
    other = item("b/2", "eta zeta wal iota", ("apple", "lock", "wal"))
    # What all three have tells less.
    third = item("c/3", "eta", ("apple", "pear"))

    found = likeness_of(one, other, third)

    assert found.shared(0, 1) == ("lock", "wal", "appl", "zeta", "eta")
    assert found.shared(0, 2) == ("appl", "eta")


@pytest.mark.parametrize(
    "texts, whole",
    [
        (["expiry lease fences", "Fence the LEASES", "fence it"],
         {"expiri": "expiry", "leas": "lease", "fenc": "fence"}),
        # The most frequent form, of two equal ones the first.
        (["leases", "lease"], {"leas": "leases"}),
        (["leases lease lease"], {"leas": "lease"}),
        (["the and of", "", "journalMode"], {"journal": "journal", "mode": "mode"}),
    ],
)  # fmt: skip
def test_a_stem_is_told_as_it_was_written_most_often(texts, whole):
    assert words.whole(texts) == whole


def opposition(one: Item, other: Item) -> str | None:
    forward = likeness_of(one, other)

    assert forward.opposition(0, 1) == forward.opposition(1, 0)
    return forward.opposition(0, 1)


def plain(name: str, title: str = "Enable it", **options) -> Item:
    return item(name, title, options.pop("keywords", ("wal",)), **options)


@pytest.mark.parametrize(
    "changes, rule",
    [
        ({"links": (Link("opposes", "a/1"),)}, "opposes"),
        ({"links": (Link("same_as", "x/9"), Link("opposes", "a/1"))}, "opposes"),
        ({"links": (Link("opposes", "x/9"), Link("same_as", "a/1"))}, None),
        ({"choice_of": "D1=B"}, "choice"),
        ({"choice_of": "D2=B"}, None),
        ({"choice_of": "D1=A"}, None),
        ({"choice_of": None}, None),
        ({"stance": "avoid"}, "stance"),
        ({"stance": "keep"}, "stance"),
        ({"stance": None}, None),
        ({"stance": "do"}, None),
        # The first rule that applies is told.
        ({"stance": "avoid", "choice_of": "D1=B"}, "choice"),
        ({"choice_of": "D1=B", "links": (Link("opposes", "a/1"),)}, "opposes"),
    ],
)
def test_items_speak_against_each_other_by_one_of_the_rules(changes, rule):
    assert opposition(plain("a/1", choice_of="D1=A"), plain("b/2", **changes)) == rule


def test_two_stances_that_both_want_nothing_done_are_not_opposed():
    assert opposition(plain("a/1", stance="avoid"), plain("b/2", stance="keep")) is None


def test_what_is_put_aside_is_opposed_only_to_who_speaks_for_it():
    one = plain("a/1", "Use tokens instead of sessions", keywords=("session", "token"))

    for title, keywords, rule in (
        ("Keep sessions", ("session",), "rejects"),
        ("Keep sessions", ("storage",), None),
        ("Shorten the names", ("session",), None),
        ("Use cookies instead of sessions", ("session",), None),
    ):
        assert opposition(one, plain("b/2", title, keywords=keywords)) == rule
    both = "Use sessions with tokens instead of sessions"
    assert opposition(plain("a/1", both, keywords=("session",)), one) == "rejects"
    assert (
        opposition(
            plain("a/1", both, keywords=("session",)),
            plain("b/2", "Keep sessions", keywords=("session",)),
        )
        is None
    )


@pytest.mark.parametrize(
    "changes, may",
    [
        ({}, True),
        ({"reviewer": "a"}, False),
        ({"text_only": True}, False),
        ({"keywords": ()}, False),
        ({"stance": "avoid"}, False),
        ({"stance": None}, True),
        ({"stance": None, "title": "Never enable it"}, False),
        ({"stance": None, "title": "Don\u2019t enable it"}, False),
        ({"stance": None, "title": "Notable: enable it"}, True),
    ],
)
def test_items_may_merge_when_nothing_keeps_them_apart(changes, may):
    other = plain("b/2")._replace(**changes)
    both = likeness_of(plain("a/1"), other)

    assert both.may_merge(0, 1) is may
    assert both.may_merge(1, 0) is may
