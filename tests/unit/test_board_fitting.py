"""Lines that fit a width, whatever stands in them."""

import pytest

from inbox_orch.orch.board.fitting import Column, bar, cut, one_line, rule, span, table, wrapped
from support.terminals import width

HOSTILE = "which?\n\x1b[2J\x1b]0;t\x07 \u202e [red]x[/red] \x9b31m 日本語 " + "w" * 90
DRIVING = {"\x1b", "\x07", "\x9b", "\u202e", "\r"}


def plain(line) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize("columns", [300, 80, 60, 34, 30])
def test_a_table_fits_with_two_cells_between_its_columns(columns: int):
    made = [
        Column("A", (("x" * 9, None), (HOSTILE, "failed")), 12),
        Column("TITLE", (("日本語の題", None), (HOSTILE, None)), 60, weight=3),
        Column("NOTE", ((HOSTILE, None), ("", None)), 300, weight=2),
    ]

    lines = [plain(line) for line in table(made, columns)]

    assert [line[:1] for line in lines] == ["A", "x", "w"]
    assert max(map(width, lines)) <= columns
    assert not (DRIVING | {"\n"}) & set("".join(lines))
    assert len({width(line) for line in lines}) == 1


def test_columns_that_share_take_what_the_others_leave_by_their_weight():
    texts = (("x" * 100, None),)
    columns = [
        Column("A", (("abc", None),), 9),
        Column("B", texts, 99, 3),
        Column("C", texts, 99, 2),
    ]

    _, row = table(columns, 57)

    assert [len(text) for text, _ in row] == [3, 2, 30, 2, 20]


def test_a_text_is_broken_between_words_and_within_those_that_do_not_fit():
    assert wrapped("one two\n\n  three", 8) == ["one two", "", "  three"]
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]
    assert wrapped("日本語", 4) == ["日本", "語"]
    assert wrapped("a\nb\nc\nd", 9, most=3) == ["a", "b", "… 2 more lines"]


@pytest.mark.parametrize("columns", [4, 7, 40, 200])
def test_whatever_is_wrapped_fits_and_drives_nothing(columns: int):
    lines = wrapped(HOSTILE, columns)

    assert max(map(width, lines)) <= columns
    assert not DRIVING & set("".join(lines))


def test_a_line_that_is_cut_says_so():
    line = (("abc", "x"), ("defg", None), ("h", None))

    assert cut(line, 8) == line
    assert plain(cut(line, 7)) == "abcdefg"
    assert cut(line, 5) == (("abc", "x"), ("d…", None))
    assert plain(rule("what", 12)) == "── what ────"
    assert plain(rule("what", 6)) == "── wh…"


@pytest.mark.parametrize("milliseconds, said", [
    (-5, "0 s"), (119_999, "119 s"), (120_000, "2 min"), (7_199_999, "119 min"), (7_200_000, "2 h"),
    (172_800_000, "2 days"),
])  # fmt: skip
def test_a_time_is_said_in_the_largest_unit_that_fits(milliseconds: int, said: str):
    assert span(milliseconds) == said


def test_a_part_of_a_whole_is_a_bar():
    assert [bar(percent) for percent in (0, 40, 100, 900)] == ["▱▱▱▱▱", "▰▰▱▱▱", "▰▰▰▰▰", "▰▰▰▰▰"]
    assert one_line("a\n b\t c") == "a b c"
