"""What would drive a terminal is escaped, also where most texts are not looked at twice."""

import json
import sys

from inbox_orch.shared.blocks import harmless, harmless_json

# Controls, separators of lines, and marks that set the direction.
DRIVING = [*map(chr, (*range(32), *range(0x7F, 0xA0), 0x2028, 0x2029))]
DRIVING += map(chr, (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))


def test_no_character_that_drives_a_terminal_is_left_in_any_text():
    for character in DRIVING:
        assert harmless(f"a{character}b").isprintable()
        value = f"ü{character}ü"
        shown = harmless_json(json.dumps(value, ensure_ascii=False))
        assert shown.isprintable()
        assert json.loads(shown) == value


def test_tabs_and_line_ends_stay_in_a_text_of_several_lines():
    assert harmless("a\tb\nc\x1b", lines=True) == "a\tb\nc\\x1b"


def test_text_that_can_be_printed_is_as_it_was():
    text = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if c.isprintable())

    assert harmless(text) == harmless(text, lines=True) == harmless_json(text) == text
