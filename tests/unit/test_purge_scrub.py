"""What a secret leaves behind: a mask where it stood, and everything else to the letter."""

import json
import random

import pytest

from inbox_orch.orch.purge.scrub import MASK, Renames, Scrub, pieces

SECRET = "hunter2-hunter2"
HARD = 'pass"wörd\\with\n/lines'


def test_it_goes_wherever_it_stands_and_nothing_else_does():
    scrub = Scrub([SECRET])
    assert scrub.text(f"a {SECRET}{SECRET} b hunter2-hunter") == f"a {MASK}{MASK} b hunter2-hunter"
    assert scrub.content(b"\xff" + SECRET.encode() + b"\0") == b"\xff" + MASK.encode() + b"\0"
    assert scrub.text("nothing of it") == "nothing of it"


@pytest.mark.parametrize(
    "form",
    [
        HARD,
        json.dumps(HARD)[1:-1],
        json.dumps(HARD, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(HARD))[1:-1],
        json.dumps(HARD)[1:-1].replace("/", "\\/"),
    ],
)
def test_it_is_found_as_json_writes_it(form):
    assert MASK in Scrub([HARD]).text(f"<{form}>")
    assert form not in Scrub([HARD]).text(f"<{form}>")


def test_what_overlaps_is_one_and_leaves_no_rest():
    assert Scrub(["abcabcab"]).text("xabcabcabcaby") == f"x{MASK}y"
    assert Scrub(["aaaabbbb", "bbbbcccc"]).text("aaaabbbbcccc") == MASK


def test_json_stays_as_it_was_written_but_for_the_secret():
    scrub = Scrub([SECRET])
    for write in (
        lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
        lambda value: json.dumps(value),
    ):
        value = {"é": [1, 2.50, None], SECRET: {"b": f"{SECRET}!"}}
        clean = {"é": [1, 2.50, None], MASK: {"b": f"{MASK}!"}}
        assert scrub.json(write(value)) == write(clean)
    assert scrub.json('{"a" :  1}') == '{"a" :  1}'


def test_names_ids_and_the_members_of_events_stay():
    digest = "a" * 24 + "12345678" + "b" * 32
    scrub = Scrub(["12345678", "body_sha256"], names=["w-12345678"])
    event = {"body_sha256": digest, "holder": "w-12345678", "text": "12345678", "A 12345678": 1}
    after = json.loads(scrub.json(json.dumps(event), own_keys=True))
    clean = {"body_sha256": digest, "holder": "w-12345678", "text": MASK, f"A {MASK}": 1}
    assert after == clean
    assert f"{MASK}" in json.loads(scrub.json(json.dumps(event)))


def test_a_secret_that_looks_like_an_id_goes():
    secret = "0123456789abcdef0123456789abcdef01234567"
    assert Scrub([secret]).json(json.dumps({"key": secret})) == json.dumps({"key": MASK})


def test_a_digest_and_the_length_beside_it_follow_what_they_are_of():
    old, new = "a" * 64, "b" * 64
    scrub = Scrub([SECRET], Renames({old: new}, {old: (20, 18)}))
    event = {"artifacts": [{"name": "n", "sha256": old, "bytes": 20}], "other": 20, "bytes": 20}
    after = json.loads(scrub.json(json.dumps(event)))
    assert after["artifacts"] == [{"name": "n", "sha256": new, "bytes": 18}]
    assert (after["other"], after["bytes"]) == (20, 20)
    assert scrub.text(f"as {old}, and {old}0") == f"as {new}, and {old}0"


@pytest.mark.parametrize("secrets", [[SECRET], ["abababab"], ["aaaabbbb", "bbbbcccc"]])
def test_in_pieces_it_comes_to_the_same(secrets):
    chance = random.Random(7)
    scrub = Scrub(secrets)
    for _ in range(200):
        words = [*secrets, "ab", "b", "aaaabbb", "x" * 40, "bcccc"]
        content = "".join(chance.choices(words, k=chance.randrange(30))).encode()
        size = chance.randrange(1, 40)
        parts = (content[at : at + size] for at in range(0, len(content), size))
        assert b"".join(pieces(scrub, parts)) == scrub.content(content)
