"""Replies without JSON, word for word: which lines count, and where they are cut."""

import pytest

from inbox_orch.orch.council.model import Decision, DecisionVote, Item, Reply
from inbox_orch.orch.council.plain import read_plain
from inbox_orch.orch.council.refusals import is_refusal

DECISIONS = (Decision("D1", "Which?", ("WAL", "DELETE")), Decision("D.2", "When?", ("now",)))
WARNING = "plain text: no severities, no evidence"


def read(text: str) -> Reply:
    found = read_plain(text, "ada", DECISIONS)
    assert isinstance(found, Reply)
    return found


def the_item(text: str) -> Item:
    (found,) = read(text).items
    return found


def test_a_line_in_the_form_is_a_recommendation():
    assert read("- [do] Enable WAL :: wal, sqlite , ,journal\n* [AVOID]no locks") == Reply(
        "ada",
        None,
        items=(
            Item(
                "ada/line-1",
                "ada",
                "Enable WAL",
                keywords=("wal", "sqlite", "journal"),
                stance="do",
            ),
            Item("ada/line-2", "ada", "no locks", stance="avoid", text_only=True),
        ),
        warnings=(WARNING, "line-2 has no keywords: never merged by itself"),
    )


def test_a_recommendation_has_six_keywords_at_most():
    assert the_item("- [keep] it :: a,b,c,d,e,f,g").keywords == tuple("abcdef")


@pytest.mark.parametrize("length, proposal", [(120, ""), (121, "x" * 121), (200, "x" * 200)])
def test_a_long_title_is_cut_and_stands_whole_in_the_proposal(length, proposal):
    found = the_item(f"- [do] {'x' * length} :: wal")

    assert (found.title, found.proposal) == ("x" * min(length, 120), proposal)


def test_twenty_five_recommendations_are_the_most():
    lines = ["- [do] one more :: wal"] * 25

    assert len(read("\n".join(lines)).items) == 25
    assert read_plain("\n".join([*lines, lines[0]]), "ada", ()) == (
        "26 recommendations, more than 25"
    )


@pytest.mark.parametrize(
    "line, verdict",
    [
        ("verdict: approve", "approve"),
        ("  Verdict = REJECT. ", "reject"),
        ("verdict:approve_with_changes", "approve_with_changes"),
        ("verdict: maybe", None),
        ("the verdict: approve", None),
    ],
)
def test_a_line_may_give_the_verdict(line, verdict):
    assert read(f"{line}\n- [do] it :: wal").verdict == verdict


def test_two_verdicts_are_none():
    text = "verdict: reject\nverdict: approve\n- [do] it :: wal"

    assert read_plain(text, "ada", ()) == "two verdicts: approve and reject"
    assert read("verdict: approve\nVERDICT: Approve\n- [do] it").verdict == "approve"


def test_prose_is_one_idea():
    text = "...\n  The journal   should\nbe rotated.  "

    assert read(text) == Reply(
        "ada",
        None,
        items=(
            Item(
                "ada/prose",
                "ada",
                "The journal   should",
                proposal="... The journal should be rotated.",
                kind="idea",
                text_only=True,
            ),
        ),
        warnings=("plain prose: taken as one recommendation, which is never merged by itself",),
    )


def test_long_prose_is_cut():
    found = the_item("x" * 130 + " wal " * 400)

    assert (found.title, len(found.proposal)) == ("x" * 120, 1200)


@pytest.mark.parametrize("text, words", [("one two three 4", 3), ("one two three four", 4)])
def test_four_words_are_a_sentence(text, words):
    if words == 4:
        assert the_item(text).title == text
    else:
        assert read_plain(text, "ada", ()) == (
            "neither JSON, nor lines `- [do] title :: keywords`, nor a sentence"
        )


@pytest.mark.parametrize(
    "lines, choices",
    [
        (["D1=WAL"], ["WAL"]),
        (["- d1 : wal"], ["WAL"]),
        (["* D1 = delete "], ["DELETE"]),
        (["D1=WAL", "D1=wal"], ["WAL"]),
        (["D1=WAL", "D1=DELETE"], []),
        (["D1=neither"], []),
        (["D11=WAL", "xD1=WAL"], []),
    ],
)
def test_a_line_may_choose(lines, choices):
    text = "\n".join([*lines, "- [do] it :: wal"])

    assert read(text).decisions == tuple(DecisionVote("D1", choice) for choice in choices)


def test_the_name_of_a_decision_is_no_pattern():
    assert read("D.2=now\n- [do] it").decisions == (DecisionVote("D.2", "now"),)
    assert read("Dx2=now\n- [do] it").decisions == ()


@pytest.mark.parametrize(
    "text, refused",
    [
        ("I cannot do that", True),
        ("  * Sorry, no.", True),
        ("I\u2019m sorry", True),
        ("I can see that it works", False),
        ("The parser is sorry code", False),
        ("sorry " + "x" * 594, True),
        ("sorry " + "x" * 595, False),
    ],
)
def test_a_short_text_that_begins_with_a_refusal_is_one(text, refused):
    assert is_refusal(text) is refused
