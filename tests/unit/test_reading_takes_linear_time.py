"""Whatever a text from outside holds, twice as much of it takes about twice as long to read.

One adversarial shape suffices to stop a leader for minutes: every reader is given all of them.
"""

import contextlib
import gc
import json
import time
from collections.abc import Callable

import pytest

from inbox_orch.inbox.domain import limits
from inbox_orch.orch.board.fitting import wrapped
from inbox_orch.orch.council import prompts
from inbox_orch.orch.council.extracting import objects_in
from inbox_orch.orch.council.model import Decision
from inbox_orch.orch.council.plain import read_plain
from inbox_orch.orch.council.refusals import is_refusal
from inbox_orch.orch.council.replies import Expected, read, read_ballot
from inbox_orch.orch.council.report import escaped, fenced
from inbox_orch.orch.council.words import split_negated, terms
from inbox_orch.orch.documents.plan import read_plan
from inbox_orch.orch.gates.definitions import READERS as READS
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.globs import matches_any
from inbox_orch.orch.gates.readers.read import read as read_gate
from inbox_orch.orch.runs.names import run_name
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending
from support.councils import BRIEF_SHA256, COUNCIL_ID, DECISIONS, reply
from support.lengths import LONG

WHOLE = (128 if LONG else 64) * 1024 - 2048
HALF = WHOLE // 2 + 1024
SECONDS = 2.0
"""Far more than any reader needs for the whole, far less than one needs that reads in squares."""

UNITS = {
    "blanks": " ",
    "tabs": "\t",
    "lines": "\n",
    "blank lines": " \n",
    "letters": "a",
    "digits": "1",
    "words": "wal ",
    "backticks": "`" * 400 + "x\n",
    "long fences": "`" * 399 + "\n",
    "fences": "```\n",
    "broken fences": "```\n{\n```\n",
    "fences of two marks": "```\n~~~\n",
    "braces": "{",
    "braces and blanks": "{ ",
    "begun objects": '{"a":',
    "begun objects and lists": '{"a":[1,2,3,',
    "begun objects with small ones": '{"a":[{"b":1},',
    "broken objects": '{"a" 1}',
    "unended texts": '{"a',
    "backslashes": "\\",
    "quotes": '"',
    "brackets": "[",
    "numbers": "1,",
    "hashes": "#",
    "headings": "# ",
    "spaced hashes": "# #",
    "dots": ".",
    "dotted numbers": "1.",
    "slashes": "a/",
    "dashes": "-",
    "dashed letters": "-a",
    "lines in the form": "- [do] a :: b\n",
    "marks of lines": "- [do] ",
    "colons": ":",
    "double colons": " :: ",
    "verdicts": "verdict: approve ",
    "choices": "D1=",
    "choices and blanks": "D1 = \n",
    "apologies": "sorry ",
    "refusals": "I cannot read the file. ",
    "errors": "error: ",
    "putting aside": "instead of ",
    "commas": ",",
    "exclamation marks": "!",
    "pastes": "\x1b[200~",
    "sequences": "\x1b[1;",
    "combining marks": "a\u0301",
}
AROUND = {
    "alone": ("", ""),
    "in a line": ("- [do] Enable WAL", "x"),
    "after a verdict": ("verdict: approve", "x"),
    "after a choice": ("- D1 =", " x"),
    "in a heading": ("# ", "x"),
    "in an object": ('{"a": [', "x"),
    "in a text": ('{"a": "', "x"),
    "in a fence": ("```json\n{", "\n``"),
}


def ballot_of(text: str) -> None:
    read_ballot(text, reviewer="r1", expected=EXPECTED, labels={}, own_items=())


def plan_of(text: str) -> None:
    for name in ("json", "yaml"):
        PLANS[name].write_bytes(text.encode("utf-8", "replace"))
        read_plan(str(PLANS[name]))


def gates_of(text: str) -> None:
    for reads in READS:
        read_gate(Gate("g", "run", reads, pattern="."), Ending(1), text.encode(), text.encode())


EXPECTED = Expected(COUNCIL_ID, 1, BRIEF_SHA256, DECISIONS, ("S1", "S2"))
MANY = tuple(Decision(f"D{number}", "Which?", ("WAL", "DELETE")) for number in range(20))
PLANS: dict = {}
READERS: dict[str, Callable[[str], object]] = {
    "a reply": lambda text: read(text, reviewer="r1", expected=EXPECTED),
    "a ballot": ballot_of,
    "the objects in a reply": objects_in,
    "a plain reply": lambda text: read_plain(text, "r1", MANY),
    "a refusal": is_refusal,
    "a brief": lambda text: (prompts.anchors_of(text), prompts.title_of(text)),
    "a text in a report": lambda text: (escaped(text), fenced(text)),
    "terms": lambda text: (terms(text), split_negated(text)),
    "a payload": limits.check_payload,
    "a plan": plan_of,
    "a title": lambda text: run_name(text, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    "what a gate says": gates_of,
    "paths of a gate": lambda text: matches_any(("**/a*/**/?1", "src/**"), (text,)),
    "lines of a board": lambda text: wrapped(text, 80),
}

CHARACTER_BY_CHARACTER = ("a text in a report", "terms", "lines of a board", "what a gate says")
"""Readers to which it does not matter what stands around a shape, and slow ones."""


@pytest.fixture(autouse=True)
def plans(tmp_path):
    PLANS.update(json=tmp_path / "plan.json", yaml=tmp_path / "plan.yaml")


@pytest.mark.parametrize("reader", READERS)
def test_every_shape_of_text_is_read_in_linear_time(reader):
    slow = []
    for unit in UNITS:
        for around in ["alone"] if reader in CHARACTER_BY_CHARACTER else AROUND:
            if is_quick(reader, unit, around):
                continue
            took = seconds_of(READERS[reader], text_of(unit, around, WHOLE))
            if took > SECONDS / 10 and not keeps_pace(reader, unit, around):
                slow.append((unit, around, took))

    assert not slow


def text_of(unit: str, around: str, size: int) -> str:
    before, after = AROUND[around]
    return before + (UNITS[unit] * (size // len(UNITS[unit]) + 1))[:size] + after


def is_quick(reader: str, unit: str, around: str) -> bool:
    """Whether half of the text takes so little that the whole would be no matter even if it took
    eight times as long, as it does where every character is compared with every pair of others."""
    return seconds_of(READERS[reader], text_of(unit, around, HALF)) < SECONDS / 10 / 8


def keeps_pace(reader: str, unit: str, around: str) -> bool:
    """Whether twice the text takes at most three times as long, by the shortest of some trials of
    each: what else the machine does only ever lengthens them."""
    half = whole = float("inf")
    for _ in range(12):
        half = min(half, seconds_of(READERS[reader], text_of(unit, around, HALF)))
        whole = min(whole, seconds_of(READERS[reader], text_of(unit, around, WHOLE)))
        if whole < SECONDS and whole < 3 * half:
            return True
    return False


def seconds_of(read_it: Callable[[str], object], text: str) -> float:
    """Of this process's own time, so that others on the machine do not count; without looking for
    garbage, which takes the longer the more all the other tests have left in memory."""
    gc.disable()
    try:
        began = time.process_time()
        with contextlib.suppress(InboxOrchError):
            read_it(text)
        return time.process_time() - began
    finally:
        gc.enable()


# -- shapes that need more than a repeated piece -------------------------------------------


def nested(size: int) -> str:
    """Objects in objects that break at the very end, with a long list inside."""
    depth = 800
    return '{"a":' * depth + "[" + "1," * ((size - 5 * depth) // 2)


def distinct_keys(size: int) -> str:
    """An object with many keys, of which only the last two are alike."""
    pairs = ",".join(f'"k{number}":1' for number in range(size // 12))
    return "{" + pairs + ',"last":1,"last":2}'


def fences_of_every_length(size: int) -> str:
    lengths, total = [], 0
    while total < size:
        lengths.append(3 + len(lengths))
        total += lengths[-1] + 1
    return "\n".join("`" * length for length in lengths)


def unknown_keys(size: int) -> str:
    return json.dumps(reply(**{f"k{number}": 1 for number in range(size // 16)}))


def problems(size: int) -> str:
    return json.dumps({"tasks": [{"x": 1} for _ in range(size // 12)]}, indent=0)


def repeated_keys(size: int) -> str:
    return '{"tasks": [' + ",\n".join(['{"a":1,"a":2}'] * (size // 16)) + "]}"


def anchors(size: int) -> str:
    return "\n".join(f"# heading {number}" for number in range(size // 14))


def with_many_anchors(text: str) -> None:
    expected = EXPECTED._replace(anchors=prompts.anchors_of(text))
    read(
        json.dumps(reply(checked=["nothing of it, really."] * 50)), reviewer="a", expected=expected
    )


@pytest.mark.parametrize(
    "reader, shape",
    [
        (READERS["a reply"], nested),
        (READERS["a reply"], distinct_keys),
        (READERS["a reply"], fences_of_every_length),
        (READERS["a reply"], unknown_keys),
        (READERS["a payload"], distinct_keys),
        (plan_of, problems),
        (plan_of, repeated_keys),
        (plan_of, distinct_keys),
        (with_many_anchors, anchors),
    ],
)
def test_texts_made_against_a_reader_are_read_in_linear_time(reader, shape):
    for _ in range(3):
        half, whole = (seconds_of(reader, shape(size)) for size in (HALF, WHOLE))
        if whole < SECONDS and (whole < SECONDS / 10 or whole < 3 * half):
            return
    pytest.fail(f"{whole:.2f} s for {WHOLE} characters, {half:.2f} s for half of them")
