"""What a reviewer has sent is a reply, or it is told what is wrong with it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.council.replies import Expected, Read, read, read_ballot, reply_schema
from support.councils import BRIEF_SHA256, COUNCIL_ID, DECISIONS, reply

EXPECTED = Expected(COUNCIL_ID, 1, BRIEF_SHA256, DECISIONS, ("S1", "S2", "state.py"))


def looked_at(raw: str | bytes) -> Read:
    return read(raw, reviewer="r1", expected=EXPECTED)


def with_item(**changes: object) -> str:
    whole = reply()
    whole["recommendations"][0].update(changes)
    return json.dumps(whole)


def test_a_reply_is_read_whole():
    found = looked_at(json.dumps(reply()))

    assert found.state == "valid"
    assert found.reply.warnings == ()
    assert [i.id for i in found.reply.items] == ["r1/wal"]
    assert [(v.decision, v.choice) for v in found.reply.decisions] == [("D1", "WAL")]


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "\ufeff{}",
        "Reviewing …\n\n{}\n\nDone in 3 s.",
        "banner {{not json}}\n```json\n{}\n```\ntrailer",
        "~~~~\n{}\n~~~~\n",
        "```json\n{}\n```\nand once more:\n```json\n{}\n```",
    ],
)
def test_what_stands_around_the_object_is_put_aside(around):
    text = around.replace("{{", "\0").replace("{}", json.dumps(reply(), indent=2))

    assert looked_at(text.replace("\0", "{").replace("}}", "}").encode()).state == "valid"


def test_a_quoted_reply_of_another_council_is_not_taken_for_this_one():
    other = json.dumps(reply(council_id="01ARZ3NDEKTSV4RRFFQ69G5FAX", verdict="reject"))

    found = looked_at(f"As I said before: {other}\nNow:\n{json.dumps(reply())}")

    assert (found.state, found.reply.verdict) == ("valid", "approve")


def test_two_different_replies_are_none():
    found = looked_at(json.dumps(reply()) + "\n" + json.dumps(reply(verdict="reject")))

    assert found == Read("invalid", None, ("2 different replies in one text: send one",))


@pytest.mark.parametrize(
    "name, value",
    [("council_id", "another"), ("round", 2), ("brief_sha256", "cd" * 32)],
)
def test_a_reply_to_something_else_says_which_key_is_wrong(name, value):
    found = looked_at(json.dumps(reply(**{name: value})))

    assert found.state == "invalid"
    assert len(found.errors) == 1
    assert found.errors[0].startswith(f"/{name}: is {value!r}")


def test_broken_json_is_told_with_line_and_column():
    text = json.dumps(reply(), indent=1).replace('"Enable WAL mode"', '"Enable "WAL" mode"')

    found = looked_at("some words\n```json\n" + text + "\n```\n")

    assert found.state == "invalid"
    line = next(n for n, row in enumerate(text.splitlines(), 3) if '"WAL" mode' in row)
    assert found.errors[0].startswith(f"line {line}, column ")


@pytest.mark.parametrize(
    "raw, pointer",
    [
        (with_item(title="short"), "/recommendations/0/title"),
        (with_item(keywords=["one", "two"]), "/recommendations/0/keywords"),
        (with_item(keywords=["k1"] * 7), "/recommendations/0/keywords"),
        (with_item(stance="perhaps"), "/recommendations/0/stance"),
        (with_item(confidence=101), "/recommendations/0/confidence"),
        (with_item(severity="terrible"), "/recommendations/0/severity"),
        (with_item(proposal="half a \ud800 character, and long enough"), "/recommendations/0/pro"),
        (with_item(links=[{"same_as": "a", "opposes": "b"}]), "/recommendations/0/links/0"),
        (json.dumps(reply(recommendations=reply()["recommendations"] * 2)), "/recommendations"),
        (json.dumps(reply(recommendations=[])), "/no_recommendations_because"),
        (json.dumps(reply(verdict="maybe")), "/verdict"),
        (json.dumps({k: v for k, v in reply().items() if k != "verdict"}), "/verdict"),
    ],
)
def test_a_wrong_shape_is_told_by_a_pointer(raw, pointer):
    found = looked_at(raw)

    assert found.state == "invalid"
    assert found.errors[0].startswith(pointer)


def test_twenty_six_recommendations_are_too_many():
    one = reply()["recommendations"][0]
    many = [{**one, "id": f"i{number}"} for number in range(26)]

    assert looked_at(json.dumps(reply(recommendations=many[:25]))).state == "valid"
    assert looked_at(json.dumps(reply(recommendations=many))).state == "invalid"


def test_a_reply_of_128_kib_is_the_largest():
    room = 128 * 1024 - len(json.dumps(reply(padding="")).encode())

    assert looked_at(json.dumps(reply(padding="x" * room))).state == "valid"
    assert looked_at(json.dumps(reply(padding="x" * (room + 1)))).state == "invalid"


@pytest.mark.parametrize("raw", ["", " \n\t", b""])
def test_nothing_is_empty_and_no_vote(raw):
    assert looked_at(raw) == Read("empty", None, ("there is nothing in it",))


@pytest.mark.parametrize(
    "raw",
    [
        *("asdf", "402", "...", "{", "[1, 2]", b"\xff\xfe\x00", '{"hello": "world"}', "{" * 3000),
        *('{"schema": "orch.council.reply/1", "schema": 1}', '{"a":' * 20_000),
    ],
)
def test_garbage_gives_neither_a_verdict_nor_items(raw):
    found = looked_at(raw)

    assert (found.state, found.reply) == ("invalid", None)
    assert found.errors


@pytest.mark.parametrize(
    "raw", ["I'm sorry, but I can't help with that.", "I cannot read the file state.py."]
)
def test_a_refusal_is_no_recommendation(raw):
    assert looked_at(raw).state == "declined"


def test_nothing_to_say_is_an_abstention_with_its_reason():
    found = looked_at(
        json.dumps(
            reply(recommendations=[], verdict="abstain", no_recommendations_because="not my field")
        )
    )

    assert found == Read("abstained", None, ("not my field",))


@pytest.mark.parametrize(
    "value, said",
    [
        pytest.param("9" * 5000, "a number has too many digits", id="digits"),
        pytest.param("[" * 130_000, "it is nested too deeply", id="deep"),
    ],
)
def test_what_the_library_cannot_read_is_said_in_our_words(value, said):
    found = looked_at(f'{{"items": {value}}}')

    assert found.state == "invalid" and said in found.errors[0]


def test_lines_without_json_are_a_reply():
    text = "- [do] Enable WAL mode :: wal, sqlite, journal mode\n* [AVOID] Sharding\nD1=wal\n"

    found = looked_at(text + "verdict: approve_with_changes\n")

    assert found.state == "valid"
    assert [(i.stance, i.keywords, i.text_only) for i in found.reply.items] == [
        ("do", ("wal", "sqlite", "journal mode"), False),
        ("avoid", (), True),
    ]
    assert found.reply.verdict == "approve_with_changes"
    assert [(v.decision, v.choice) for v in found.reply.decisions] == [("D1", "WAL")]


def test_mere_prose_is_one_item_that_never_merges_by_itself():
    found = looked_at("We should enable WAL mode.\n\nReaders wait for the writer today.")

    assert [(i.title, i.text_only) for i in found.reply.items] == [
        ("We should enable WAL mode.", True)
    ]
    assert found.reply.verdict is None


def test_unknown_keys_are_kept_and_warned_about():
    found = looked_at(json.dumps(reply(mood="good")))

    assert found.state == "valid"
    assert found.reply.warnings == ("the key /mood is not known",)


def test_decisions_that_the_brief_does_not_declare_are_warned_about_and_not_counted():
    given_votes = [
        {"decision": "D9", "choice": "A"},
        {"decision": "D1", "choice": "NONE"},
        {"decision": "D1", "choice": "WAL"},
        {"decision": "D1", "choice": "DELETE"},
    ]

    found = looked_at(json.dumps(reply(decisions=given_votes)))

    assert [(v.decision, v.choice) for v in found.reply.decisions] == [("D1", "WAL")]
    assert len(found.reply.warnings) == 3


@pytest.mark.parametrize("checked", [[], ["somewhere else"]])
def test_a_reply_that_looked_at_nothing_of_the_brief_is_ungrounded(checked):
    warnings = looked_at(json.dumps(reply(checked=checked))).reply.warnings

    assert any(warning.startswith("ungrounded") for warning in warnings)


@pytest.mark.parametrize("checked", ["S1", "s2: the cache", "state.py:12", "S1 and S2"])
def test_a_reply_that_looked_at_a_place_of_the_brief_is_grounded(checked):
    assert looked_at(json.dumps(reply(checked=[checked]))).reply.warnings == ()


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400) | st.binary(max_size=400))
def test_no_text_breaks_the_reading(raw):
    found = looked_at(raw)

    assert (found.state == "valid") == (found.reply is not None)
    assert found.reply is not None or found.errors


def test_the_schema_has_the_limits():
    schema = reply_schema()

    assert schema["properties"]["recommendations"]["maxItems"] == 25
    assert schema["$defs"]["Recommendation"]["properties"]["keywords"]["minItems"] == 3


# -- ballots -------------------------------------------------------------------------------


def ballot(*votes: dict[str, object], **changes: object) -> str:
    whole = {"council_id": COUNCIL_ID, "round": 2, "brief_sha256": BRIEF_SHA256}
    return json.dumps({**whole, "votes": list(votes), **changes})


def voted(raw: str):
    return read_ballot(
        raw,
        reviewer="r1",
        expected=EXPECTED._replace(round=2),
        labels={"b1": "r2/wal", "b2": "r3/lock"},
        own_items=["r1/journal"],
    )


def test_a_ballot_is_read_by_its_labels():
    votes = voted(
        ballot(
            {"ref": "b1", "vote": "agree", "same_as": "journal"},
            {"ref": "b2", "vote": "abstain"},
        )
    ).votes

    assert [(v.reviewer, v.item, v.vote, v.same_as) for v in votes] == [
        ("r1", "r2/wal", "agree", "r1/journal"),
        ("r1", "r3/lock", "abstain", None),
    ]


@pytest.mark.parametrize(
    "raw, error",
    [
        (ballot({"ref": "b9", "vote": "agree"}), "/votes/0/ref"),
        (ballot({"ref": "b1", "vote": "yes"}), "/votes/0/vote"),
        (ballot({"ref": "b1", "vote": "agree", "same_as": "x"}), "/votes/0/same_as"),
        (ballot({"ref": "b1", "vote": "agree"}, {"ref": "b1", "vote": "agree"}), "/votes: 'b1'"),
        (ballot(round=1), "/round"),
        ("no ballot", "there is no JSON object"),
        ('{"votes": [', "line 1"),
    ],
)
def test_a_ballot_that_cannot_be_read_counts_nothing(raw, error):
    found = voted(raw)

    assert found.votes is None
    assert found.errors[0].startswith(error)
