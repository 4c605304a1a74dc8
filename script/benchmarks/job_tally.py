"""Job of the comparison: grouping the recommendations of several reviewers."""

import json
import statistics
import subprocess
from pathlib import Path
from typing import Any

import grouping
from council import SETS, judged, labelled, quality, seconds_of
from results import Result, Row, as_row, result

GRID = [number / 100 for number in range(10, 100, 5)]
SIZES = (66, 150)
NO_TALLY = "groups nothing"
WITHOUT = (
    *("agent-collab", "agent-lanes", "agent-mail", "fleetwright", "pac-collab"),
    *("simplebroker", "huey", "litequeue", "persist-queue"),
)


def tally(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """How well, and how fast."""
    good = [_row("orch council", [quality(name, True) for name in SETS])]
    fast = [as_row("orch council", {str(n): seconds_of(n) * 1000 for n in SIZES})]
    raw: dict[str, Any] = {}
    for method in grouping.METHODS if bin_folder else ():
        try:
            threshold, judgements = _best(method, f"{bin_folder}python")
            times = {str(n): _seconds(method, f"{bin_folder}python", n) * 1000 for n in SIZES}
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            failed = as_row(method, cannot=f"failed: {type(error).__name__}")
            good.append(failed)
            fast.append(failed)
            continue
        raw[method] = {"threshold": threshold, "sets": judgements}
        note = f"with the best of {len(GRID)} thresholds for these very sets, {threshold:g}"
        good.append(_row(method, judgements, note=note))
        fast.append(as_row(method, times, note="the grouping alone: no votes, no report"))
    nothing = [quality(name, False) for name in SETS]
    good.append(_row("nothing merged", nothing, floor=True))
    rest = [as_row(name, cannot=NO_TALLY) for name in WITHOUT]
    return [
        result(
            "tally",
            title="Grouping the recommendations of three reviewers",
            did="Two sets of 66 and 47 recommendations, labelled by hand; means of both.",
            unit="B-cubed F1",
            less_is_better=False,
            columns={
                "f1": "B-cubed F1",
                "false": "false agreements",
                "missed": "missed agreements",
                "opposed": "opposites merged",
            },
            compared=["f1"],
            rows=good + rest,
            raw=raw,
        ),
        result(
            "tally-time",
            title="Time of the grouping",
            did="In a process that has loaded everything.",
            unit="ms",
            columns={str(n): f"ms for {n}" for n in SIZES},
            compared=[str(n) for n in SIZES],
            rows=fast + rest,
        ),
    ]


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


def _best(method: str, python: str) -> tuple[float, list[dict[str, Any]]]:
    """The threshold with which the method does best on the sets, and how well it does."""
    found = {name: _grouped(method, python, _texts(name), GRID)["groups"] for name in SETS}
    tried = []
    for place, threshold in enumerate(GRID):
        judgements = []
        for name in SETS:
            items = labelled(name)[0]
            groups = [[items[number].id for number in group] for group in found[name][place]]
            judgements.append(judged(name, groups, method))
        tried.append(
            (statistics.fmean(one["b_cubed_f1"] for one in judgements), threshold, judgements)
        )
    _, threshold, judgements = max(tried, key=lambda one: one[0])
    return threshold, judgements


def _seconds(method: str, python: str, number: int) -> float:
    texts = [text for name in SETS for text in _texts(name)]
    while len(texts) < number:
        texts += [f"{text} {len(texts)}" for text in texts]
    answer = _grouped(method, python, texts[:number], [0.5, 0.5, 0.5])
    return float(answer["seconds"])


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
