"""Keys as a terminal sends them."""

import pytest

from inbox_orch.shared.shell.screen import Key, _decoded, _keys_in


@pytest.mark.parametrize("sent, keys", [
    ("qé", [Key(text="q"), Key(text="é")]),
    ("\x1b[A\x1bOB", [Key("up"), Key("down")]),
    ("\x1b", [Key("escape")]),
    ("\r\t\x7f\x15", [Key("enter"), Key("tab"), Key("backspace"), Key("clear")]),
    ("\x1b[200~two\r\nlines\rand \x1b[A\x1b[201~x", [
        Key(text="two\nlines\nand \x1b[A"), Key(text="x")
    ]),
    ("\x1b[15;5~\x1b[Z\x01a", [Key(text="a")]),  # keys that have no name here say nothing
])  # fmt: skip
def test_keys_have_names_and_what_is_pasted_is_text(sent: str, keys: list[Key]):
    assert list(_keys_in(sent)) == keys


def test_a_character_may_come_in_parts():
    content = "a日".encode()

    assert _decoded(content[:-1]) == ("a", content[1:-1])
    assert _decoded(content) == ("a日", b"")
    assert _decoded(b"\xff\xff\xff\xff\xff")[1] == b""
