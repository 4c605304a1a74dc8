"""Text that is put into the files of others: it can be taken out again, and nothing of theirs is
changed, whatever the files look like."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.inbox.setup import blocks, jsontext, members
from inbox_orch.inbox.setup.edits import Edited, UnfitError, taken_back
from inbox_orch.inbox.setup.facts import Part

MEMBER = Part("mcp", "member", {}, None, {"command": "inbox"}, ("a", "inbox"), "", True, {})
ITEM = Part("hooks", "item", {}, None, {"run": "inbox hook"}, ("h", "Stop"), "inbox hook", True, {})
LINES = Part("lines", "block", {}, "guide.md", None, (), "", False, {})
TABLE = Part("mcp", "table", {}, None, {"command": "inbox"}, ("m", "inbox"), "", False, {})

names = st.sampled_from(["a", "b", "h", "Stop", "x", "ü", "\\", "//", "/*"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text('ab/*,{}[]:\\"é', max_size=6))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
gaps = st.lists(
    st.sampled_from([" ", "\n", "\r\n", "\t", "  ", "// c, }\n", "/* , ] */", "/**/"]), max_size=2
)


@st.composite
def documents(draw) -> str:
    """A JSON object as somebody may have written it, with comments and commas that are too many."""

    def gap() -> str:
        return "".join(draw(gaps))

    def written(value) -> str:
        if not isinstance(value, (dict, list)):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        if isinstance(value, dict):
            entries = [f"{json.dumps(k)}{gap()}:{gap()}{written(v)}" for k, v in value.items()]
        else:
            entries = [written(each) for each in value]
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        text = ",".join(f"{gap()}{each}{gap()}" for each in entries)
        trailing = "," + gap() if entries and draw(st.booleans()) else ""
        return opening + (text or gap()) + trailing + closing

    value = draw(st.dictionaries(names, values, max_size=4))
    for way in (["a"], ["h"], ["h", "Stop"]):
        inner = value
        for name in way[:-1]:
            inner = inner.get(name, {})
        if way[-1] in inner:
            inner[way[-1]] = (
                draw(st.lists(scalars, max_size=2))
                if way[-1] == "Stop"
                else (draw(st.dictionaries(names.filter("Stop".__ne__), values, max_size=2)))
            )
    return gap() + written(value) + gap()


@given(documents())
def test_pieces_in_json_are_put_in_found_and_taken_out_to_the_byte(text: str):
    old = jsontext.parse(text, comments=True).value
    edited, made = Edited(text), {}
    for part in (MEMBER, ITEM):
        edited, made[part.id] = members.add(edited, part)
        found = members.found(edited.text, part)
        assert found is not None
        assert found.digest == members.wanted(part)
    new = jsontext.parse(edited.text, comments=True).value

    assert new["a"].pop("inbox") == MEMBER.value
    assert new["h"]["Stop"].pop() == ITEM.value
    assert taken_back(edited.text, edited.spans) == text
    # Somebody else has written to it since.
    rest = edited.text + "\n"
    for part in (ITEM, MEMBER):
        rest = members.remove(rest, part, made[part.id])
        assert members.found(rest, part) is None
    assert jsontext.parse(rest, comments=True).value == old


@given(documents(), st.data())
def test_pieces_are_taken_out_of_a_file_that_was_written_anew(text: str, data):
    edited, made = members.add(Edited(text), MEMBER)
    value = jsontext.parse(edited.text, comments=True).value
    old = jsontext.parse(text, comments=True).value
    anew = json.dumps(value, indent=data.draw(st.sampled_from([None, 1, "\t"])))

    assert json.loads(members.remove(anew, MEMBER, made)) == old


@given(st.text(max_size=40), st.text('{}[]",:/* \n1tn', max_size=30))
def test_what_is_no_json_is_told_and_never_taken_for_some(one: str, two: str):
    for text in (one, two):
        try:
            expected = json.loads(text)
        except ValueError:
            with pytest.raises(UnfitError):
                jsontext.parse(text, comments=False)
        else:
            if text.strip(" \t\r\n") and "NaN" not in text and "Infinity" not in text:
                assert jsontext.parse(text, comments=False).value == expected


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "01", "1.", "'a'", "{a: 1}", '"\\x"', ""])
def test_near_misses_are_no_json(text: str):
    with pytest.raises(UnfitError):
        jsontext.parse(text, comments=True)


INNER = '"inbox": {\n{3}"command": "inbox"\n{2}}'
NEIGHBOURS = {
    "nothing": ("{}", "  ", '{\n{1}"a": {\n{2}INNER\n{1}}\n}'),
    "one_line": ('{"x": 1}', "", '{"x": 1, "a": {"inbox": {"command": "inbox"}}}'),
    "tabs_and_a_comment": (
        '{\n\t"x": 1 // one\n}\n',
        "\t",
        '{\n{1}"x": 1, // one\n{1}"a": {\n{2}INNER\n{1}}\n}\n',
    ),
    "trailing_commas": (
        '{\n  "a": {\n    "b": 1,\n  },\n}\n',
        "  ",
        '{\n{1}"a": {\n{2}"b": 1,\n{2}INNER,\n{1}},\n}\n',
    ),
    "other_line_ends": (
        '{\r\n    "x": 1\r\n}\r\n',
        "    ",
        '{\n{1}"x": 1,\n{1}"a": {\n{2}INNER\n{1}}\n}\n',
    ),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_a_piece_looks_as_its_neighbours_do(case: str):
    before, step, after = NEIGHBOURS[case]
    after = after.replace("INNER", INNER)
    for depth in (1, 2, 3):
        after = after.replace(f"{{{depth}}}", step * depth)
    after = after.replace("\n", "\r\n") if "\r\n" in before else after

    assert members.add(Edited(before), MEMBER)[0].text == after


@given(st.text("a#<!- \n\r", max_size=30), st.text("b\n", max_size=10))
def test_lines_are_put_in_and_taken_out_to_the_byte(text: str, behind: str):
    edited, made = blocks.add(Edited(text), LINES)

    assert blocks.found(edited.text, LINES) is not None
    assert taken_back(edited.text, edited.spans) == text
    rest = blocks.remove(edited.text + behind, LINES, made)
    assert rest in (text + behind, text + "\n" + behind, text + "\r\n" + behind)
    assert text.endswith("\n") or not text or rest != text + behind


@pytest.mark.parametrize("text", ["", "x = 1", "[m.other]\nx = 1\n", "# c\r\n[o]\r\nx = 1\r\n"])
def test_a_table_is_put_in_and_taken_out_to_the_byte(text: str):
    edited, _ = blocks.add(Edited(text), TABLE)

    found = blocks.found(edited.text, TABLE)
    assert found is not None
    assert found.digest == blocks.wanted(TABLE)
    assert taken_back(edited.text, edited.spans) == text
