"""What a gate comes to: two tries, and what is known of the base."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.judging import Base, asks_again, base_of, verdict
from inbox_orch.orch.gates.readers.reading import Reading
from inbox_orch.orch.gates.results import GateResult

TESTS = Gate("tests", ("pytest",), "junit")
BUILD = Gate("build", "make", "exit")


def failed(*names: str, tests: int | None = 9) -> Reading:
    counts = {name: names.count(name) for name in names}
    return Reading("failed", counts, {name: f"{name} broke" for name in names}, tests)


GOOD = Reading("passed", tests=9)
HANGS = Reading("suspect", cause="timed-out", reason="it was stopped after 5 s")
SLOW = Reading("suspect", cause="pattern", reason="its pattern took longer than 10 s")
MADE = failed("build:exit", tests=None)
BASE = Base("passed", tests=9)
BROKEN = Base("unusable", reason="no tests have run")


def base(*names: str, tests: int = 9) -> Base:
    return Base("failed", {name: names.count(name) for name in names}, tests)


@pytest.mark.parametrize(
    "first, second, known, state, failures, flaky",
    [
        (GOOD, None, None, "passed", {}, ()),
        (GOOD, None, BASE, "passed", {}, ()),
        (GOOD, None, BROKEN, "passed", {}, ()),
        # What has failed twice counts, and what came once is flaky.
        (failed("a"), failed("a"), None, "failed", {"a": 1}, ()),
        (failed("a"), failed("a"), BASE, "failed", {"a": 1}, ()),
        (failed("a"), GOOD, BASE, "passed", {}, ("a",)),
        (failed("a", "b"), failed("b"), BASE, "failed", {"b": 1}, ("a",)),
        (failed("b"), failed("a", "b"), BASE, "failed", {"b": 1}, ("a",)),
        (failed("a"), failed("b"), BASE, "passed", {}, ("a", "b")),
        (failed("a", "a", "a"), failed("a", "a"), None, "failed", {"a": 2}, ()),
        # What the base has does not count, up to how often it has it.
        (failed("a"), None, base("a"), "passed", {}, ()),
        (failed("a", "a"), failed("a", "a"), base("a"), "failed", {"a": 1}, ()),
        (failed("a", "b"), failed("a", "b"), base("a"), "failed", {"b": 1}, ()),
        (failed("a", "b"), failed("a"), base("a"), "passed", {}, ("b",)),
        (failed("a"), failed("a"), BROKEN, "failed", {"a": 1}, ()),
        # What is suspect twice is the change's doing where the base can be judged.
        (HANGS, HANGS, BASE, "failed", {"tests:timed-out": 1}, ()),
        (HANGS, HANGS, base("a"), "failed", {"tests:timed-out": 1}, ()),
        (HANGS, HANGS, BROKEN, "error", {}, ()),
        # A pattern that takes too long is nobody's to mend who works.
        (SLOW, None, BASE, "error", {}, ()),
        (SLOW, None, None, "error", {}, ()),
        (HANGS, SLOW, BASE, "error", {}, ()),
        (HANGS, HANGS, None, "error", {}, ()),
        (HANGS, None, BASE, "failed", {"tests:timed-out": 1}, ()),
        # What is suspect once is decided by the other try.
        (HANGS, GOOD, BASE, "passed", {}, ("tests:timed-out",)),
        (HANGS, failed("a"), BASE, "failed", {"a": 1}, ()),
        (failed("a"), HANGS, BASE, "failed", {"a": 1}, ()),
    ],
)
def test_two_tries_and_the_base_make_the_verdict(
    first: Reading, second: Reading | None, known: Base | None, state: str, failures, flaky
):
    found = verdict(TESTS, first, second, known)

    assert (found.state, found.failures, found.flaky) == (state, failures, flaky)
    assert found.texts.keys() == found.failures.keys()
    assert (found.gate, found.mode) == ("tests", "block")


@pytest.mark.parametrize(
    "gate, first, known, again",
    [
        (TESTS, GOOD, BASE, False),
        (TESTS, HANGS, BASE, True),
        (TESTS, failed("a"), None, True),
        (TESTS, failed("a"), base("a"), False),
        (TESTS, failed("a", "b"), base("a"), True),
        (TESTS._replace(strict=True), failed("a"), base("a"), True),
        (BUILD, MADE, BASE, True),
        (BUILD, MADE, base("build:exit"), False),
    ],
)
def test_only_what_would_count_is_tried_again(gate: Gate, first: Reading, known, again: bool):
    assert asks_again(gate, first, known) is again


def test_a_strict_gate_counts_what_the_base_has():
    found = verdict(TESTS._replace(strict=True), failed("a"), failed("a"), base("a"))

    assert (found.state, found.failures, found.known) == ("failed", {"a": 1}, 0)


def test_a_command_that_fails_at_the_base_is_no_gate_until_it_passes():
    there = Base("failed", {"build:exit": 1})

    skipped = verdict(BUILD, MADE, None, there)
    assert (skipped.state, skipped.reason) == (
        "skipped",
        "no gate here: it fails at the base, too",
    )
    assert verdict(BUILD, Reading("passed"), None, there).state == "passed"
    assert verdict(BUILD._replace(strict=True), MADE, MADE, there).state == "failed"


def test_a_command_that_hangs_here_and_fails_at_the_base_has_failed():
    assert verdict(BUILD, HANGS, HANGS, Base("failed", {"build:exit": 1})).state == "failed"


def test_fewer_tests_are_told_and_where_that_is_asked_refused():
    told = verdict(TESTS, GOOD, None, Base("passed", tests=12))
    asked = verdict(TESTS._replace(min_tests="base"), GOOD, None, Base("passed", tests=12))

    assert (told.state, told.reason) == ("passed", "9 tests ran, 12 at the base")
    assert (asked.state, asked.failures) == ("failed", {"tests:fewer-tests": 1})
    assert asked.texts == {"tests:fewer-tests": "9 tests ran, 12 at the base"}
    more = verdict(TESTS._replace(min_tests="base"), GOOD, None, Base("passed", tests=9))
    assert (more.state, more.reason) == ("passed", None)


def test_fewer_tests_do_not_stand_for_failures_that_are_gone():
    """Deleting the test that fails is no way to pass."""
    gate = TESTS._replace(min_tests="base")

    assert verdict(gate, Reading("passed", tests=8), None, base("a", tests=9)).state == "failed"


@pytest.mark.parametrize(
    "first, second, known, reason",
    [
        (
            failed("a", "b", "c"),
            failed("b", "c"),
            base("c"),
            "1 failure; 1 known from the base; flaky: a",
        ),
        (failed("a", "b"), GOOD, BASE, "flaky: a and 1 more"),
        (HANGS, HANGS, BASE, "it was stopped after 5 s, and at the base it can be judged"),
        (HANGS, HANGS, None, "it was stopped after 5 s; and nothing is known of the base"),
        (HANGS, HANGS, BROKEN, "it was stopped after 5 s; at the base neither: no tests have run"),
        (GOOD, None, None, None),
    ],
)
def test_the_reason_is_one_line(first: Reading, second, known, reason: str | None):
    assert verdict(TESTS, first, second, known).reason == reason


def test_a_gate_that_only_warns_fails_and_lets_through():
    found = verdict(TESTS._replace(mode="warn"), failed("a"), failed("a"))

    assert (found.state, found.mode, found.stops) == ("failed", "warn", False)


@pytest.mark.parametrize(
    "result, known",
    [
        (GateResult("t", "passed", tests=3), Base("passed", {}, 3)),
        (
            GateResult("t", "failed", "1 failure", {"a": 1}),
            Base("failed", {"a": 1}, None, "1 failure"),
        ),
        (GateResult("t", "error", "it hung"), Base("unusable", {}, None, "it hung")),
        (GateResult("t", "skipped", "no set-up"), Base("unusable", {}, None, "no set-up")),
    ],
)
def test_what_a_gate_came_to_at_the_base_is_what_is_known_of_it(result: GateResult, known: Base):
    assert base_of(result) == known


COUNTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 3), max_size=4)
TOLD = st.none() | st.integers(0, 5)
READINGS = st.one_of(
    st.builds(lambda tests: Reading("passed", tests=tests), TOLD),
    st.builds(
        lambda counts, tests: Reading("failed", counts, dict.fromkeys(counts, "text"), tests),
        COUNTS.filter(bool),
        TOLD,
    ),
    st.just(HANGS),
)
BASES = st.one_of(
    st.none(),
    st.just(BROKEN),
    st.builds(lambda tests: Base("passed", {}, tests), TOLD),
    st.builds(lambda counts, tests: Base("failed", counts, tests), COUNTS.filter(bool), TOLD),
)
GATES = st.builds(
    lambda reads, strict, least: Gate("g", "run", reads, strict=strict, min_tests=least),
    st.sampled_from(["exit", "junit", "ruff"]),
    st.booleans(),
    st.sampled_from([None, "base"]),
)


@given(gate=GATES, first=READINGS, other=READINGS, known=BASES)
def test_nothing_that_never_failed_counts_and_nothing_that_counts_is_let_through(
    gate: Gate, first: Reading, other: Reading, known: Base | None
):
    second = other if asks_again(gate, first, known) else None
    found = verdict(gate, first, second, known)
    own = {"g:timed-out", "g:fewer-tests"}

    for name in found.failures.keys() - own:
        seen = [r for r in (first, second) if r is not None and r.state != "suspect"]
        assert all(found.failures[name] <= r.failures.get(name, 0) for r in seen)
    if found.state == "failed":
        assert found.failures
        assert found.reason
    else:
        assert not found.failures
    if found.state == "error":
        assert known is None or known.state == "unusable"
    if "passed" in (first.state, other.state if second else None):
        assert found.state in ("passed", "failed")
        assert found.failures.keys() <= {"g:fewer-tests"}


@given(gate=GATES, first=READINGS, known=BASES)
def test_a_tree_that_is_as_the_base_never_fails_for_what_the_base_has(
    gate: Gate, first: Reading, known: Base | None
):
    there = base_of(verdict(gate, first, first, None))
    again = verdict(gate._replace(strict=False), first, first, there)

    assert again.state != "failed"


def test_a_pattern_that_took_too_long_is_not_tried_again():
    assert not asks_again(TESTS, SLOW, BASE) and asks_again(TESTS, HANGS, BASE)
