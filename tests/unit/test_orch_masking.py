"""Secrets in text, in bytes, and in streams: however they overlap, no part of one is left."""

import itertools
import os
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inbox_orch.orch.domain.config import Config
from inbox_orch.orch.domain.masking import MaskedStream, masked, masked_bytes
from inbox_orch.orch.services.running import Masked
from inbox_orch.orch.services.surroundings import secrets_of
from support.timing import promptly

# Few letters, so that secrets begin inside one another, and repeat themselves.
SECRET = st.text("ab", min_size=1, max_size=7)
SECRETS = st.lists(SECRET, max_size=4)
TEXT = st.text("abc", max_size=60)


def hidden(text: str, values: list[str]) -> str:
    """The text masked in the plainest way: each character, and each gap, is looked at."""
    found = [(at, at + len(v)) for v in values for at in range(len(text)) if text.startswith(v, at)]

    def shown(at: int) -> str:
        if not any(start <= at < end for start, end in found):
            return text[at]
        return "" if any(start < at < end for start, end in found) else "***"

    return "".join(map(shown, range(len(text))))


def seconds_of(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def test_no_secret_is_left_in_masked_text():
    values = ("abc", "abcdef", "first line\nsecond line", "")
    text = "x abcdef y abc z second line"

    assert masked(text, values) == "x *** y *** z ***"
    assert masked_bytes(b"\xff abc \xfe", values) == b"\xff *** \xfe"


def test_a_line_of_a_secret_is_masked_from_four_characters_on():
    assert masked("abcd abc\n", ("abcd\nabc",)) == "*** abc\n"


def test_secrets_that_overlap_leave_nothing_of_either():
    values = ("user:pass", "passphrase", "pass")

    assert masked("user:passphrase!", values) == "***!"
    assert masked("aXaXa-aXa", ("aXa",)) == "***-***"


def test_secrets_that_only_touch_are_masked_one_by_one():
    assert masked("onetwo", ("one", "two")) == "******"


@given(TEXT, SECRETS)
@example("abababcaba", ["aba", "bab"])
def test_what_is_masked_is_every_occurrence_and_nothing_else(text: str, values: list[str]):
    assert masked(text, values) == hidden(text, values)
    assert masked_bytes(text.encode(), values).decode() == hidden(text, values)


@given(TEXT, SECRETS, st.lists(st.integers(0, 9), max_size=30))
@example("xaabb", ["a", "aabb"], [2])
def test_a_stream_is_masked_as_the_whole_is_wherever_it_is_cut(
    text: str, values: list[str], lengths: list[int]
):
    whole = text.encode()
    stream = MaskedStream(values)
    ends = [0, *itertools.accumulate(lengths), len(whole)]
    pieces = [whole[start:end] for start, end in itertools.pairwise(ends)]

    told = b"".join(stream.add(piece) for piece in pieces) + stream.finish()

    assert told == masked_bytes(whole, values)


@pytest.mark.parametrize("cut", range(1, 20))
def test_the_rest_of_a_secret_that_begins_with_another_is_not_kept(cut: int):
    kept = Masked("output", "orch", ("hunter2ABCD", "hunter2ABCDxyzzyTAIL"))
    whole = b"hunter2ABCDxyzzyTAIL\n"
    kept.add(whole[:cut])
    kept.add(whole[cut:])
    kept.finish()

    assert kept.content() == b"***\n"


@pytest.mark.parametrize("text", ["\udcff\udce9x", "grün €", "half a \ud800"])
def test_a_secret_is_found_in_bytes_whatever_characters_it_has(text: str):
    handler = "surrogatepass" if "\ud800" in text else "surrogateescape"
    content = b"<" + text.encode("utf-8", handler) + b">"

    assert masked_bytes(content, (text,)) == b"<***>"
    assert masked(f"<{text}>", (text,)) == "<***>"


def test_a_variable_that_the_locale_reads_otherwise_is_found_in_what_a_command_prints(monkeypatch):
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("latin-1"))
    monkeypatch.setenv("KEY", "grün".encode().decode("latin-1"))
    config = Config(environment={"GIVEN": "süß", "NEVER": "€"}, secrets=("KEY", "GIVEN", "NEVER"))

    values = secrets_of(config)

    assert masked_bytes("<grün>".encode(), values) == b"<***>"
    assert masked_bytes("<süß>".encode("latin-1"), values) == b"<***>"
    assert masked("<grün>, <süß>, <€>", values) == "<***>, <***>, <***>"


@pytest.mark.parametrize(
    "secret, text",
    [
        ("a" * 20_000, "a" * 2_000_000),
        ("a" * 20_000 + "b", "a" * 2_000_000),
        ("ab" * 10_000 + "a", "ab" * 1_000_000),
        ("a" * 10_000 + "b" + "a" * 10_000, ("a" * 10_000 + "b") * 200),
    ],
)
def test_what_repeats_itself_takes_no_longer_than_its_length(secret: str, text: str):
    promptly(lambda: seconds_of(lambda: masked(text, (secret,))), within=2)


def test_a_stream_in_small_pieces_takes_no_longer_than_its_length():
    def read() -> None:
        stream = MaskedStream(("a" * 50_000,))
        for _ in range(300_000):
            stream.add(b"a")
        stream.finish()

    promptly(lambda: seconds_of(read), within=2)
