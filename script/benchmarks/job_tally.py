"""Job of the comparison: grouping the recommendations of several reviewers."""

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

import grouping
from council import SETS, judged, labelled, quality, times_of
from results import Result, Row, as_row, result

GRID = [number / 100 for number in range(10, 100, 5)]
SIZES = (66, 150)
CALLS = {
    "orch council": "inbox_orch.orch.council.tally.tally(council)",
    "rapidfuzz": "fuzz.token_set_ratio of each text with those of each group so far",
    "scikit-learn": "TfidfVectorizer and AgglomerativeClustering, cosine, average linkage",
}
NO_TALLY = "groups nothing"
WITHOUT = (
    *("agent-collab", "agent-lanes", "agent-mail", "fleetwright", "pac-collab"),
    *("simplebroker", "huey", "litequeue", "persist-queue"),
)


def tally(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """How well, and how fast."""
    ours = [quality(name, True) for name in SETS]
    seconds = {"orch council": {str(n): times_of(n) for n in SIZES}}
    good, raw = [_row("orch council", ours)], {"orch council": {"sets": ours}}
    failed = []
    for method in grouping.METHODS if bin_folder else ():
        try:
            tried = _tried(method, f"{bin_folder}python")
            seconds[method] = {str(n): _seconds(method, f"{bin_folder}python", n) for n in SIZES}
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            failed.append(as_row(method, cannot=f"failed: {type(error).__name__}"))
            continue
        for name, by_stance in ((method, False), (f"{method}, by stance", True)):
            raw[name] = best = _best(method, tried, by_stance=by_stance)
            note = f"with the best of {len(GRID)} thresholds for these sets, {best['threshold']:g}"
            split = "; its groups split by the stance that reviewers declare"
            good.append(_row(name, best["sets"], note=note + split * by_stance))
    nothing = [quality(name, False) for name in SETS]
    good.append(_row("nothing merged", nothing, floor=True))
    rest = failed + [as_row(name, cannot=NO_TALLY) for name in WITHOUT]
    return [_quality_result(good + rest, raw), _time_result(seconds, rest)]


def _quality_result(rows: list[Row], raw: dict[str, Any]) -> Result:
    return result(
        "tally",
        title="Grouping the recommendations of three reviewers",
        did=(
            "Two sets of 66 and 47 recommendations, labelled by hand: the mean of both for"
            " B-cubed F1, the sum of both for the others. By title and keywords; ours and what"
            " is split by stance also have the stance."
        ),
        unit="B-cubed F1",
        less_is_better=False,
        columns={
            "f1": "B-cubed F1",
            "false": "false agreements",
            "missed": "missed agreements",
            "opposed": "opposites merged",
        },
        compared=["f1"],
        exact=True,
        rows=rows,
        commands=CALLS,
        raw=raw,
    )


def _time_result(seconds: dict[str, dict[str, list[float]]], rest: list[Row]) -> Result:
    rows = []
    for name, by_size in seconds.items():
        note = None if name.startswith("orch") else "the grouping alone: no votes, no report"
        values = {size: min(times) * 1000 for size, times in by_size.items()}
        rows.append(as_row(name, values, note=note))
    return result(
        "tally-time",
        title="Time of the grouping",
        did="In a process that has loaded everything; the best of three.",
        unit="ms",
        columns={str(n): f"ms for {n}" for n in SIZES},
        compared=[str(n) for n in SIZES],
        rows=rows + rest,
        commands=CALLS,
        raw=seconds,
    )


def _row(name: str, judgements: list[dict[str, Any]], **more: Any) -> Row:
    values = {
        "f1": statistics.fmean(one["b_cubed_f1"] for one in judgements),
        "false": sum(one["false_agreements"] for one in judgements),
        "missed": sum(one["missed_agreements"] for one in judgements),
        "opposed": sum(one["opposed_merged"] for one in judgements),
    }
    return as_row(name, values, **more)


def _texts(name: str) -> list[str]:
    return [f"{item.title} {' '.join(item.keywords)}" for item in labelled(name)[0]]


def _tried(method: str, python: str) -> dict[str, list[Any]]:
    """What the method makes of each set, with each threshold."""
    return {name: _grouped(method, python, _texts(name), GRID)["groups"] for name in SETS}


def _best(method: str, tried: dict[str, list[Any]], *, by_stance: bool) -> dict[str, Any]:
    """The threshold with which the method does best on the sets, how well it does with that one,
    and its B-cubed F1 with each."""
    found = []
    for place, threshold in enumerate(GRID):
        judgements = []
        for name in SETS:
            items = labelled(name)[0]
            members = [[items[number] for number in group] for group in tried[name][place]]
            members = split_by_stance(members) if by_stance else members
            judgements.append(judged(name, [[item.id for item in m] for m in members], method))
        found.append(
            (statistics.fmean(one["b_cubed_f1"] for one in judgements), threshold, judgements)
        )
    _, threshold, judgements = max(found, key=lambda one: one[0])
    by_threshold = {f"{at:g}": f1 for f1, at, _ in found}
    return {"threshold": threshold, "sets": judgements, "f1_by_threshold": by_threshold}


def split_by_stance(groups: list[list[Any]]) -> list[list[Any]]:
    """Each group in two where it holds recommendations for something and against something."""
    halves = [
        [item for item in group if (item.stance == "do") == wanted]
        for group in groups
        for wanted in (True, False)
    ]
    return [half for half in halves if half]


def _seconds(method: str, python: str, number: int) -> list[float]:
    texts = [text for name in SETS for text in _texts(name)]
    while len(texts) < number:
        texts += [f"{text} {len(texts)}" for text in texts]
    seconds: list[float] = _grouped(method, python, texts[:number], [0.5, 0.5, 0.5])["seconds"]
    return seconds


def _grouped(method: str, python: str, texts: list[str], thresholds: list[float]) -> dict[str, Any]:
    done = subprocess.run(
        [python, str(Path(grouping.__file__)), method],
        input=json.dumps({"texts": texts, "thresholds": thresholds}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
