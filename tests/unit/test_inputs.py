"""Bodies from options, files and standard input."""

from pathlib import Path

import pytest

from inbox_orch.shared.inputs import given_text, stray_delimiter
from support.buses import refused


def test_the_option_itself_is_the_text():
    assert given_text("as typed", None, 100) == "as typed"
    assert given_text(None, None, 100) is None


def test_a_file_is_read_as_it_is(tmp_path: Path):
    path = tmp_path / "body"
    path.write_bytes("ä\r\nno end".encode())
    assert given_text(None, str(path), 100) == "ä\r\nno end"


def test_a_file_that_is_too_large_is_called_so_also_when_the_cut_is_inside_a_character(
    tmp_path: Path,
):
    path = tmp_path / "body"
    path.write_bytes("ä".encode() * 10)
    with refused("usage") as failure:
        given_text(None, str(path), 8)
    assert "more than 8 bytes" in failure.value.message


def test_both_at_once_are_refused(tmp_path: Path):
    with refused("usage"):
        given_text("text", str(tmp_path / "body"), 100)


@pytest.mark.parametrize("content, offset", [(b"\xff", 0), (b"abc\xe4", 3)])
def test_bytes_that_are_no_text_are_refused_with_their_place(
    tmp_path: Path, content: bytes, offset: int
):
    path = tmp_path / "body"
    path.write_bytes(content)
    with refused("usage") as failure:
        given_text(None, str(path), 100)
    assert failure.value.details["offset"] == offset


@pytest.mark.parametrize(
    "last", ["EOF'", 'EOF"', "'EOF'", "EOF", "  EOF", "EOF)", "BODY'", "\\EOF"]
)
def test_a_last_line_that_is_a_delimiter_is_found(last):
    assert stray_delimiter(f"Fix the lexer.\n{last}\n") == last.strip()


@pytest.mark.parametrize(
    "text",
    [
        *("", "EOF", "Fix the lexer.", "Read until EOF", "Done.\nOK", "See\nFAQ", "a\nEOF\nb"),
        *("The values are\n'a'", "It ends\nso.", "SEE\n(THE FAQ)", "It's\n# EOF handling"),
    ],
)
def test_other_texts_end_with_no_delimiter(text):
    assert stray_delimiter(text) is None
