"""What readers make of the output of gates: states, ids that stay, and nothing believed that
cannot be."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.definitions import READERS, Gate
from inbox_orch.orch.gates.readers.lines import normalised
from inbox_orch.orch.gates.readers.read import listens_to, read
from inbox_orch.orch.gates.readers.reading import MOST_IDS, Reading
from inbox_orch.shared.processes.endings import Ending

TOP = "/tree"


def gate(reads: str, **options) -> Gate:
    return Gate("tests", ("run", "{report}"), reads, **options)


def reading(reads: str, status: int | None, output: str = "", report=None, **options) -> Reading:
    ending = Ending(status) if status is not None else Ending(None, 9)
    given_report = report.encode() if isinstance(report, str) else report
    return read(gate(reads, **options), ending, output.encode(), given_report, TOP)


def suite(*cases: str) -> str:
    return f"<?xml version='1.0'?><testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>"


PASSED = '<testcase classname="a.T" name="one"/>'
FAILED = (
    '<testcase classname="a.T" name="two"><failure message="assert 1 == 2">x</failure></testcase>'
)
ERROR = '<testcase classname="a.T" name="two"><error message="no fixture"/></testcase>'
SKIPPED = '<testcase classname="a.T" name="three"><skipped message="not here"/></testcase>'
UNCOLLECTED = (
    '<testcase classname="" name="a.b"><error message="collection failure">E</error></testcase>'
)

VIOLATION = {
    "code": "F401",
    "filename": "/tree/src/a.py",
    "message": "`os` imported but unused",
    "location": {"row": 3, "column": 1},
}


@pytest.mark.parametrize("reads", READERS)
@pytest.mark.parametrize(
    "ending, cause",
    [
        (Ending(None, timed_out=5.0), "timed-out"),
        (Ending(None, 9), "killed"),
        (Ending(137), "killed"),
        (Ending(126), "not-started"),
        (Ending(127), "not-started"),
    ],
)
def test_what_did_not_come_to_its_own_end_is_suspect_for_every_reader(
    reads: str, ending: Ending, cause: str
):
    found = read(gate(reads, pattern="."), ending, b"[]", suite(PASSED).encode())

    assert (found.state, found.cause) == ("suspect", cause)
    assert found.reason


@pytest.mark.parametrize(
    "reads, status, said, state, cause",
    [
        ("exit", 0, "", "passed", None),
        ("exit", 1, "", "failed", None),
        ("exit", 125, "", "failed", None),
        ("exit", 255, "", "failed", None),
        ("junit", 0, suite(PASSED), "passed", None),
        ("junit", 1, suite(PASSED, FAILED), "failed", None),
        ("junit", 1, suite(PASSED), "failed", None),  # a bound on coverage, say
        ("junit", 2, suite(UNCOLLECTED), "failed", None),
        ("junit", 2, suite(PASSED, FAILED), "suspect", "broken"),
        ("junit", 3, suite(PASSED), "suspect", "broken"),
        ("junit", 4, suite(PASSED), "suspect", "broken"),
        ("junit", 5, suite(), "suspect", "no-tests"),
        ("junit", 0, suite(), "suspect", "no-tests"),
        ("junit", 0, suite(SKIPPED), "suspect", "no-tests"),
        ("junit", 100, suite(PASSED, FAILED), "failed", None),
        ("junit", 0, suite(PASSED, FAILED), "failed", None),  # a status that somebody has changed
        ("junit", 1, None, "suspect", "unreadable"),
        ("junit", 1, suite(FAILED)[:-9], "suspect", "unreadable"),
        ("junit", 1, "not XML", "suspect", "unreadable"),
        ("junit", 0, "<html><body/></html>", "suspect", "unreadable"),
        ("ruff", 0, "[]", "passed", None),
        ("ruff", 1, json.dumps([VIOLATION]), "failed", None),
        ("ruff", 2, json.dumps([VIOLATION]), "suspect", "broken"),
        ("ruff", 1, "src/a.py:3:1: F401", "suspect", "unreadable"),
        ("ruff", 1, "[]", "suspect", "unreadable"),
        ("mypy", 0, "Success: no issues", "passed", None),
        ("mypy", 1, "a.py:1: error: Wrong  [arg-type]", "failed", None),
        ("mypy", 1, "a.py:1: note: Seen", "suspect", "unreadable"),
        ("mypy", 2, "a.py:1: error: Invalid syntax  [syntax]", "suspect", "broken"),
        ("sarif", 0, '{"runs": []}', "passed", None),
        ("sarif", 0, "{}", "suspect", "unreadable"),
        ("sarif", 2, '{"runs": []}', "suspect", "broken"),
        ("lines", 0, "all is well", "passed", None),
        ("lines", 0, "warning: not so well", "failed", None),
        ("lines", 3, "all is well", "failed", None),
    ],
)
def test_exit_codes_and_what_is_said_together_make_the_state(
    reads: str, status: int, said: str | None, state: str, cause: str | None
):
    output = "" if reads == "junit" or said is None else said
    report = said if reads == "junit" else None
    found = reading(reads, status, output, report, pattern="warning:")

    assert (found.state, found.cause) == (state, cause)
    assert bool(found.failures) == (state == "failed")
    assert (found.reason is None) == (state != "suspect")


def test_tests_are_called_by_class_and_name_and_counted_without_skipped_ones():
    found = reading("junit", 1, report=suite(PASSED, ERROR, SKIPPED, UNCOLLECTED))

    assert found.failures == {"a.T::two": 1, "a.b": 1}
    assert found.texts["a.T::two"] == "a.T::two: no fixture"
    assert found.tests == 3


def test_a_failure_without_a_message_is_told_by_its_text():
    case = '<testcase classname="a" name="b"><failure>\n  boom\n</failure></testcase>'

    assert reading("junit", 1, report=suite(case)).texts == {"a::b": "a::b: boom"}


def test_entities_are_refused_before_they_grow():
    lines = ['<!ENTITY a0 "ha">']
    lines += [f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)]
    bomb = f"<!DOCTYPE x [{''.join(lines)}]><testsuite>&a9;</testsuite>"
    found = reading("junit", 1, report=bomb)

    assert (found.state, found.cause) == ("suspect", "unreadable")
    assert "document type" in str(found.reason)


def test_a_report_that_is_nested_without_end_is_refused():
    found = reading("junit", 0, report="<testsuite>" * 5000)

    assert found.cause == "unreadable"
    assert "deep" in str(found.reason)


def test_a_report_in_an_encoding_that_there_is_not_is_refused():
    report = "<?xml version='1.0' encoding='no-such'?><testsuite/>"

    assert reading("junit", 0, report=report).cause == "unreadable"


@pytest.mark.parametrize("reads", ["ruff", "sarif", "mypy"])
def test_json_that_is_nested_without_end_cannot_be_read(reads: str):
    assert reading(reads, 1, "[" * 100_000).cause == "unreadable"


def test_violations_are_called_by_path_and_code_however_often():
    deeper = {**VIOLATION, "location": {"row": 9}}
    broken = {"code": None, "filename": "b.py", "message": "Expected ':'", "location": None}
    found = reading("ruff", 1, json.dumps([VIOLATION, deeper, broken]))

    assert found.failures == {"src/a.py:F401": 2, "b.py:invalid-syntax": 1}
    assert found.texts["src/a.py:F401"] == "src/a.py:3: F401 `os` imported but unused"


def test_ruffs_other_json_is_read_line_by_line():
    lines = "\n".join(json.dumps({**VIOLATION, "code": code}) for code in ("E1", "E2"))

    assert reading("ruff", 1, lines).failures == {"src/a.py:E1": 1, "src/a.py:E2": 1}


@pytest.mark.parametrize(
    "line, name, text",
    [
        ("a.py:3: error: No  [misc]", "a.py:misc", "a.py:3: No [misc]"),
        ("./a.py:3:7: error: No  [arg-type]", "a.py:arg-type", "a.py:3: No [arg-type]"),
        ("/tree/a.py:3:7:3:9: error: No: error: x  [x]", "a.py:x", "a.py:3: No: error: x [x]"),
        (
            "a.py: error: Source file found twice",
            "a.py:misc",
            "a.py:1: Source file found twice [misc]",
        ),
    ],
)
def test_errors_of_types_are_called_by_path_and_code(line: str, name: str, text: str):
    found = reading("mypy", 1, f"{line}\na.py:4: note: see there\nFound 1 error in 1 file")

    assert (found.failures, found.texts) == ({name: 1}, {name: text})


def test_errors_of_types_are_read_as_json_too():
    error = {"file": "a.py", "line": 3, "message": "No", "code": "misc", "severity": "error"}
    output = "\n".join(json.dumps(each) for each in (error, {**error, "severity": "note"}))

    assert reading("mypy", 1, output).failures == {"a.py:misc": 1}


def test_why_types_could_not_be_judged_is_told():
    found = reading("mypy", 2, "a.py:1: error: Invalid syntax  [syntax]")

    assert found.reason == "mypy could not go on: a.py:1: Invalid syntax [syntax]"


def result(**options) -> dict:
    where = {"artifactLocation": {"uri": "src/b%20c.py"}, "region": {"startLine": 4}}
    place = {"physicalLocation": where}
    return {"ruleId": "X1", "message": {"text": "no"}, "locations": [place], **options}


def sarif(*results: dict, rules=()) -> str:
    driver = {"name": "tool", "rules": list(rules)}
    return json.dumps({"runs": [{"tool": {"driver": driver}, "results": list(results)}]})


@pytest.mark.parametrize(
    "options, counts",
    [
        ({}, True),
        ({"level": "error"}, True),
        ({"level": "note"}, False),
        ({"level": "none"}, False),
        ({"kind": "pass"}, False),
        ({"suppressions": [{"kind": "inSource"}]}, False),
        ({"suppressions": [{"status": "rejected"}]}, True),
        ({"suppressions": []}, True),
        ({"ruleId": "N1"}, False),
        ({"ruleIndex": 0, "ruleId": "N1/sub"}, False),
    ],
)
def test_of_sarif_errors_and_warnings_count(options: dict, counts: bool):
    rules = ({"id": "N1", "defaultConfiguration": {"level": "note"}},)
    found = reading("sarif", 0, sarif(result(**options), rules=rules))

    assert found.failures == ({"src/b c.py:X1": 1} if counts else {})
    assert found.state == ("failed" if counts else "passed")


def test_sarif_in_a_report_is_preferred_to_output():
    found = reading("sarif", 1, "progress", sarif(result()))

    assert found.texts == {"src/b c.py:X1": "src/b c.py:4: X1 no"}


@pytest.mark.parametrize(
    "line, name",
    [
        ("src/a.c:12:3: warning: unused variable 'x'", "warning unused variable 'x'"),
        ("a.c:99: warning: unused variable 'x'", "warning unused variable 'x'"),
        ("[2026-11-29T12:00:01.5Z] FAILED in 3.25s", "[Z] FAILED in s"),
        ("at 0x7f3a91 after 10:20:30", "at after"),
        ("12345", "failure"),
    ],
)
def test_lines_are_called_by_what_does_not_move(line: str, name: str):
    assert normalised(line) == name


def test_a_group_of_the_pattern_may_say_what_a_line_is_called():
    output = "FAIL: one in 3 s\nok: two\nFAIL: three in 9 s\n"
    found = reading("lines", 1, output, pattern=r"^FAIL: (?P<id>\w+)")

    assert found.failures == {"one": 1, "three": 1}


@pytest.mark.parametrize(
    "output",
    [
        "Would reformat: src/a1.py\nWould reformat: src/a2.py\n2 files would be reformatted\n",
        "unformatted: File\n --> src/a1.py:1:3\n  |\n\nunformatted: File\n --> src/a2.py:1:3\n",
    ],
)
def test_files_to_be_formatted_are_named_by_older_and_newer_releases_of_ruff(output: str):
    known = BUILT_IN["ruff-format"]
    found = read(known, Ending(1), output.encode(), None, TOP)

    assert found.failures == {"src/a1.py": 1, "src/a2.py": 1}


@pytest.mark.parametrize("reads", ["ruff", "mypy", "sarif", "lines"])
def test_too_much_output_is_not_judged_in_part(reads: str):
    found = read(gate(reads, pattern="x"), Ending(1), None, None)

    assert (found.state, found.cause) == ("suspect", "unreadable")


def test_of_very_many_failures_the_same_ones_are_named_in_whatever_order():
    names = [f"id-{number:05}" for number in range(MOST_IDS + 5)]
    forwards, backwards = (
        reading("lines", 1, "\n".join(order), pattern="(?P<id>.*)")
        for order in (names, list(reversed(names)))
    )

    assert forwards.failures == backwards.failures
    assert forwards.failures["tests:more"] == 5
    assert sum(forwards.failures.values()) == MOST_IDS + 5


def test_long_names_stay_apart_and_are_cut():
    names = ["a" * 5000 + "1", "a" * 5000 + "2"]
    found = reading("lines", 1, "\n".join(names), pattern="(?P<id>.{1,4000}).*")
    cases = [f'<testcase classname="c" name="{name}"><error/></testcase>' for name in names]

    assert len(found.failures) == 1  # of a line only so much is looked at
    tests = reading("junit", 1, report=suite(*cases)).failures
    assert len(tests) == 2
    assert all(len(name) <= 300 for name in tests)


def test_nothing_in_an_id_or_a_text_moves_a_cursor_or_breaks_a_line():
    violation = {**VIOLATION, "filename": "a\x1b[2J\n.py", "message": "x\ud800\r\ny"}
    found = reading("ruff", 1, json.dumps([violation]))

    assert all(text.isprintable() for pair in found.texts.items() for text in pair)


def test_a_line_of_one_long_word_is_looked_at_once():
    """It takes no time that grows with the square of its length."""
    output = "\n".join(["x" * 4000] * 300)

    found = reading("lines", 0, output, pattern="x")

    assert list(found.failures.values()) == [300]


@pytest.mark.parametrize(
    "reads, listens", [("exit", None), ("junit", None), ("lines", "all"), ("ruff", "stdout")]
)
def test_only_what_is_read_is_listened_to(reads: str, listens: str | None):
    assert listens_to(gate(reads)) == listens


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["runs", "results", "locations", "code", "message", "filename", "rules"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(
    reads=st.sampled_from(READERS),
    status=st.integers(0, 255),
    said=st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()),
    report=st.none() | st.binary(max_size=40) | st.just(suite(FAILED).encode()),
)
def test_whatever_is_said_is_read_without_an_exception(
    reads: str, status: int, said: bytes, report: bytes | None
):
    found = read(gate(reads, pattern="(?P<id>a)|b"), Ending(status), said, report, TOP)

    assert found.state in ("passed", "failed", "suspect")
    assert bool(found.failures) == (found.state == "failed")
    assert (found.cause is not None) == (found.state == "suspect")
    assert all(name.isprintable() and count > 0 for name, count in found.failures.items())
    assert found.texts.keys() <= found.failures.keys()
