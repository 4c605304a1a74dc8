"""Whether a loop converges, by the table that the reference shows, and for any series."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox_orch.orch.stages.convergence import VERDICTS, Point, Verdict, diverging, judge

TABLE = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "data" / "convergence.toml").read_text()
)
CASES = [case for group in TABLE["group"] for case in group["cases"]]


def point(text: str) -> Point:
    tree, *failures = text.split()
    named = [name.partition("*") for name in failures]
    return Point(tree, {name: int(times or 1) for name, _, times in named})


def verdicts(points: list[str], left: int) -> list[str]:
    """One for each point, `!` behind those that stop."""
    found, series = [], list[Point]()
    after = len([text for text in points if text != "--"])
    for text in points or [""]:
        if text == "--":
            series = []
            continue
        series += [point(text)] if text else []
        after -= 1
        verdict = judge(series, visits_left=left + max(0, after))
        found.append(verdict.word + "!" * verdict.stops)
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_a_sequence_is_judged_as_the_table_says(case):
    assert verdicts(case["points"], case["left"]) == case["verdicts"].split()


def test_the_table_is_large_enough_and_has_every_verdict():
    words = {word.rstrip("!") for case in CASES for word in case["verdicts"].split()}

    assert len(CASES) >= 40
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert words == set(VERDICTS)


def test_no_sequence_that_improves_is_stopped():
    assert not any("improving!" in case["verdicts"].split() for case in CASES)


TREES = st.sampled_from(["A", "B", "C", "D", "E"])
FAILURES = st.dictionaries(st.sampled_from("uvwxyz"), st.integers(0, 4), max_size=4)
POINTS = st.builds(Point, TREES, FAILURES)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=12, unique=True), st.integers(1, 9))
def test_a_series_with_fewer_each_time_is_never_stopped(totals, left):
    totals.sort(reverse=True)
    series = [Point(f"t{n}", {"x": total}) for n, total in enumerate(totals)]
    for length in range(2, len(series) + 1):
        assert judge(series[:length], visits_left=left)[:2] == ("improving", False)


@given(st.lists(POINTS, max_size=9), st.integers(0, 4))
def test_any_series_has_one_of_the_verdicts_and_ends(series, left):
    verdict = judge(series, visits_left=left)

    assert verdict.word in VERDICTS
    assert verdict.stops or verdict.word in ("passed", "begun", "improving", "stalled")
    assert verdict.sentence.endswith(".")
    if series and not any(series[-1].failures.values()):
        assert verdict == Verdict("passed", False, "Nothing that counts is left.")
    elif left == 0:
        assert verdict.stops


@given(st.lists(POINTS, min_size=2, max_size=9))
def test_what_goes_on_was_never_there_before_but_for_one_visit_in_vain(series):
    verdict = judge(series, visits_left=1)
    if verdict.word == "improving":
        assert all(series[-1].tree != earlier.tree for earlier in series[:-1])
        assert all(series[-1].failures != earlier.failures for earlier in series[:-1])
    if verdict.word == "stalled" and len(series) > 2 and not verdict.stops:
        assert judge(series[:-1], visits_left=1).word in ("improving", "passed", "oscillating")


@pytest.mark.parametrize(
    "points, sentence",
    [
        (["A x"], "To begin with, 1 failure."),
        (["A x y*2", "B z"], "It gets better: 1 failure, 3 before; gone: x, y; new: z."),
        (["A x*3", "B x*2"], "It gets better: 2 failures, 3 before."),
        (["A a b c d e", "B e"], "It gets better: 1 failure, 5 before; gone: a, b, c and 1 more."),
        (["A x", "A x"], "Nothing was changed: 1 failure, as before. Try another way."),
        (["A x", "B x y"], "It got worse: 2 failures, 1 before. Try another way."),
        (
            ["A x", "B x", "C x"],
            "It got no better: 1 failure, 1 before. It was no better the time before.",
        ),
        (
            ["A x", "B y", "A x"],
            "The files are again what they were after an earlier visit: 1 failure.",
        ),
    ],
)
def test_the_sentence_says_what_came_of_it(points, sentence):
    assert judge([point(text) for text in points], visits_left=1).sentence == sentence


def test_names_from_outside_are_shown_harmlessly():
    series = [Point("A", {"\x1b[31m": 1, "x": 1}), Point("B", {"x": 1})]

    assert judge(series, visits_left=1).sentence.isprintable()
    assert str(diverging(series, outside=["\x1b"])).isprintable()


# -- Diverging -----------------------------------------------------------------------------

SAME = [point("A x"), point("B x"), point("C x")]


def test_what_leads_away_is_told():
    assert diverging(SAME) is None
    assert diverging(SAME, newly_failing=["tests/b", "tests/a"], outside=["setup.py"]) == (
        "What passed before the work began fails now: tests/a, tests/b. "
        "Changed outside of the task: setup.py."
    )


@pytest.mark.parametrize(
    "points, lines, warns",
    [
        (["A x", "B x", "C x"], [40, 60, 90], True),
        (["A x", "B x", "C x y"], [10, 40, 60, 90], True),
        (["A x y", "B x y", "C x"], [40, 60, 90], False),
        (["A x", "B x", "C x"], [40, 59, 90], False),
        (["A x", "B x", "C x"], [40, 60, 89], False),
        (["A x", "B x", "C x"], [4, 16, 49], False),
        (["A x", "B x", "C x"], [0, 60, 90], False),
        (["B x", "C x"], [60, 90], False),
        (["A x", "B x", "C x"], [], False),
    ],
)
def test_a_diff_that_grows_by_half_twice_without_effect_is_told(points, lines, warns):
    told = diverging([point(text) for text in points], lines=lines)

    assert told == (
        "The diff grows, from 40 to 90 lines, and no fewer failures." if warns else None
    )
