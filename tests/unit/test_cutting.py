"""Results that are too long for a client: they are cut, say so, and all of them can be had."""

import json
from typing import Any

import pytest

from inbox_orch.shared.tools.cutting import MOST_BYTES, MOST_TEXT_BYTES, Rests

LONG = "äöü\n" * 100_000


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def read_on(rests: Rests, ref: str, offset: int) -> str:
    """All that is left, part by part."""
    whole, parts = "", 0
    while True:
        data = rests.answer({"ref": ref, "offset": offset})["data"]
        assert len(data["text"].encode()) <= MOST_TEXT_BYTES
        whole, parts = whole + data["text"], parts + 1
        if "next" not in data:
            return whole
        offset = data["next"]


@pytest.mark.parametrize("content", [
    {}, {"items": []}, {"body": "x" * MOST_TEXT_BYTES}, {"items": [{"body": "x" * 6000}] * 10},
])  # fmt: skip
def test_what_is_short_enough_stays_as_it_is(content):
    assert Rests("rest").shortened(content) is content


def test_a_long_text_is_cut_says_so_first_and_can_be_read_on():
    rests = Rests("inbox_rest")
    shape = rests.shortened({"messages": [{"id": "1", "body": LONG}], "more": 1})

    (cut,) = shape["cut"]
    assert list(shape) == ["cut", "messages", "more"]
    assert cut == {
        "at": "messages[0].body",
        "bytes": len(LONG.encode()),
        "shown": cut["shown"],
        "ref": "r1",
    }
    text, _, note = shape["messages"][0]["body"].partition("… [")
    assert note == f"cut here: {len(LONG.encode())} bytes in all, inbox_rest has the rest]"
    assert MOST_TEXT_BYTES - 4 < cut["shown"] <= MOST_TEXT_BYTES
    assert text + read_on(rests, "r1", cut["shown"]) == LONG


def test_many_long_texts_share_the_room_that_there_is():
    rests = Rests("rest")
    items = [{"body": str(n) * 20_000, "payload": {"a": "x" * 40_000, "b": None}} for n in range(9)]
    shape = rests.shortened({"items": items})

    assert size(shape) <= MOST_BYTES
    assert len(shape["cut"]) == 18
    by_place = {cut["at"]: cut for cut in shape["cut"]}
    assert len({cut["ref"] for cut in shape["cut"]}) == 18
    for number, item in enumerate(items):
        body = by_place[f"items[{number}].body"]
        shown = shape["items"][number]["body"].partition("…")[0]
        assert shown + read_on(rests, body["ref"], body["shown"]) == item["body"]
        payload = by_place[f"items[{number}].payload"]
        assert json.loads(read_on(rests, payload["ref"], payload["shown"])) == item["payload"]


def test_a_long_list_loses_its_end_which_can_be_read_on():
    rests = Rests("rest")
    items = [{"id": n, "subject": "s" * 100} for n in range(5000)]
    shape = rests.shortened({"items": items, "next_cursor": "9"})

    (cut,) = shape["cut"]
    assert MOST_BYTES // 2 < size(shape) <= MOST_BYTES
    assert cut["at"] == "items"
    assert shape["items"] + json.loads(read_on(rests, cut["ref"], cut["shown"])) == items


def test_what_stands_beside_an_error_is_cut_inside():
    shape = Rests("rest").shortened({"error": {"code": "timeout"}, "data": {"text": LONG}})

    assert shape["cut"][0]["at"] == "data.text"
    assert shape["data"]["text"].startswith("äöü")


@pytest.mark.parametrize("given", [
    {}, {"ref": 1}, {"ref": "r9"}, {"ref": "r1", "offset": "x"}, {"ref": "r1", "offset": -1},
    {"ref": "r1", "offset": 10**9}, {"ref": "r1", "offset": True},
])  # fmt: skip
def test_what_was_not_cut_cannot_be_read_on(given):
    rests = Rests("rest")
    rests.shortened({"body": LONG})

    answer = rests.answer(given)
    assert (answer["ok"], answer["error"]["code"] in ("usage", "not_found")) == (False, True)


def test_only_the_newest_are_kept():
    rests = Rests("rest")
    refs = [rests.shortened({"body": LONG})["cut"][0]["ref"] for _ in range(100)]

    kept = [ref for ref in refs if rests.answer({"ref": ref})["ok"]]
    assert kept == refs[-64:]
