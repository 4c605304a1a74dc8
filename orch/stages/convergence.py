"""Whether a loop that mends gets anywhere: judged by what its visits came to. Pure.

What each verdict follows from, and what follows from it, is shown sequence by sequence in
docs/reference/convergence.md, which is made of what this is tested with.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.ids import printable

VERDICTS = {
    "passed": "nothing that counts is left",
    "oscillating": "the tree was there before in this series, and is not the one just before",
    "exhausted": "no visit is left",
    "begun": "it is the first of its series: there is nothing to compare it with",
    "improving": "fewer failures than just before, or one of them gone and no more in all; "
    "on another tree, and not with exactly the failures of an earlier visit",
    "stalled": "anything else: once it goes on, told so; twice in a row it stops",
}
"""The verdicts in the order in which they are looked for, each with when it is given."""
MOST_NAMED = 3
LEAST_LINES = 50
"""A diff with fewer changed lines than this may grow as it likes."""
_GROWN = 1.5


class Point(NamedTuple):
    """What a gate came to after a visit that was to change something: the id of the tree that it
    judged, and the failures that count, id to how often."""

    tree: str
    failures: Mapping[str, int]


class Verdict(NamedTuple):
    """`word` is of `VERDICTS`; `stops`: somebody has to decide; `sentence` is for the next worker,
    and for whoever decides."""

    word: str
    stops: bool
    sentence: str


def judge(series: Sequence[Point], *, visits_left: int) -> Verdict:
    """The verdict on the last point of a series: what one gate came to, oldest first, since it last
    passed or somebody said `continue`. `visits_left`: how often the loop may still be mended."""
    if not series:
        return _exhausted("nothing was judged") if visits_left <= 0 else _begun(0)
    last = series[-1]
    left = _total(last)
    if left == 0:
        return Verdict("passed", False, "Nothing that counts is left.")
    if _was_there_before(series):
        text = f"The files are again what they were after an earlier visit: {_counted(left)}."
        return Verdict("oscillating", True, text)
    if visits_left <= 0:
        return _exhausted(f"{_counted(left)} left")
    if len(series) == 1:
        return _begun(left)
    if _improves(series):
        return Verdict("improving", False, _better(series[-2], last))
    return _stalled(series)


def _was_there_before(series: Sequence[Point]) -> bool:
    """Whether the last tree is an earlier one that was left meanwhile."""
    last = series[-1].tree
    return last in [point.tree for point in series[:-2]] and last != series[-2].tree


def _exhausted(what: str) -> Verdict:
    return Verdict("exhausted", True, f"The visits are used up: {what}.")


def _begun(left: int) -> Verdict:
    return Verdict("begun", False, f"To begin with, {_counted(left)}.")


def _improves(series: Sequence[Point]) -> bool:
    last, before = series[-1], series[-2]
    if last.tree == before.tree:
        return False
    known = _counting(last)
    if any(_counting(each) == known for each in series[:-1]):
        return False
    gone = _counting(before).keys() - known.keys()
    return _total(last) < _total(before) or (bool(gone) and _total(last) == _total(before))


def _stalled(series: Sequence[Point]) -> Verdict:
    last, before = series[-1], series[-2]
    left = _counted(_total(last))
    if last.tree == before.tree:
        text = f"Nothing was changed: {left}, as before."
    elif _total(last) > _total(before):
        text = f"It got worse: {left}, {_total(before)} before."
    else:
        text = f"It got no better: {left}, {_total(before)} before."
    again = len(series) > 2 and not _improves(series[:-1])
    if again:
        return Verdict("stalled", True, f"{text} It was no better the time before.")
    return Verdict("stalled", False, f"{text} Try another way.")


def _better(before: Point, last: Point) -> str:
    gone = sorted(_counting(before).keys() - _counting(last).keys())
    come = sorted(_counting(last).keys() - _counting(before).keys())
    parts = [f"It gets better: {_counted(_total(last))}, {_total(before)} before"]
    parts += [f"gone: {_names(gone)}"] if gone else []
    parts += [f"new: {_names(come)}"] if come else []
    return "; ".join(parts) + "."


def _counting(point: Point) -> dict[str, int]:
    return {name: times for name, times in point.failures.items() if times > 0}


def _total(point: Point) -> int:
    return sum(_counting(point).values())


def _counted(number: int) -> str:
    return "no failures" if number == 0 else f"{number} failure{'s' * (number > 1)}"


def _names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(printable(name) for name in names[:MOST_NAMED])
    return shown + (f" and {more} more" if more > 0 else "")


def diverging(
    series: Sequence[Point],
    *,
    newly_failing: Collection[str] = (),
    outside: Collection[str] = (),
    lines: Sequence[int] = (),
) -> str | None:
    """A warning that the work leads away from its task, as sentences; None for none.

    `newly_failing`: tests that passed at the base and fail now. `outside`: changed paths that are
    not of the task. `lines`: how many lines the diff changes, at each point of the series.
    """
    warnings = []
    if newly_failing:
        names = _names(sorted(newly_failing))
        warnings.append(f"What passed before the work began fails now: {names}.")
    if outside:
        warnings.append(f"Changed outside of the task: {_names(sorted(outside))}.")
    if _grows(series, lines):
        first, _, last = lines[-3:]
        warnings.append(f"The diff grows, from {first} to {last} lines, and no fewer failures.")
    return " ".join(warnings) or None


def _grows(series: Sequence[Point], lines: Sequence[int]) -> bool:
    """By half twice in a row, while the failures did not get fewer."""
    if len(series) < 3 or len(lines) < 3 or lines[-1] < LEAST_LINES:
        return False
    first, second, third = lines[-3:]
    grows = 0 < first * _GROWN <= second and second * _GROWN <= third
    return grows and _total(series[-1]) >= _total(series[-3])
