"""What is told of gates in little room."""

from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.gates.results import STATES, GateResult
from inbox_orch.orch.gates.telling import MOST_BYTES, summary, told

LINT = GateResult("lint", "failed", "1 failure", {"a:X": 2}, {"a:X": "a:1: X no"}, seconds=0.25)
HUNG = GateResult("tests", "error", "it was stopped", output="one\n\ntwo\n")
FINE = GateResult("fine", "passed", tests=1)


def test_each_gate_has_a_line_and_its_failures_below_it():
    assert told([LINT, FINE, HUNG]) == [
        "lint failed (0.2 s): 1 failure",
        "  a:1: X no (×2)",
        "fine passed (1 test)",
        "tests could not be judged: it was stopped",
        "  one",
        "  two",
    ]


def test_what_stops_is_summed_up_and_what_only_warns_is_not():
    warns = LINT._replace(mode="warn")

    assert summary([LINT, HUNG, FINE]) == "lint failed; tests could not be judged"
    assert summary([FINE, warns, GateResult("s", "skipped", "why")]) is None
    assert told([warns])[0] == "lint failed (only warns, 0.2 s): 1 failure"


def test_output_is_shown_from_its_end_where_nothing_else_says_why():
    output = "".join(f"line {number}\n" for number in range(40))
    failed = GateResult("b", "failed", failures={"b:exit": 1}, texts={"b:exit": "it ended"})

    lines = told([failed._replace(output=output)])
    assert lines[:2] == ["b failed", "  it ended"]
    assert lines[-1] == "  line 39"
    assert len(lines) == 14


LINES = st.text("ab ü\n", max_size=400)
RESULTS = st.builds(
    lambda gate, state, failures, text, output: GateResult(
        gate, state, text[:100] or None, failures, dict.fromkeys(failures, text), output=output
    ),
    st.sampled_from(["lint", "tests", "build"]),
    st.sampled_from(STATES),
    st.dictionaries(st.text("xyz", min_size=1, max_size=3), st.integers(1, 3), max_size=25),
    LINES,
    LINES,
)


@given(results=st.lists(RESULTS, max_size=12))
def test_it_never_takes_more_room_than_there_is(results: list[GateResult]):
    lines = told(results)

    assert sum(len(line.encode()) + 1 for line in lines) <= MOST_BYTES
    assert sum(not line.startswith("  ") for line in lines) >= len(results)
