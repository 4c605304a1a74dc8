"""Job of the comparison: eight long-lived processes drain a queue by calls of each library."""

import argparse
from pathlib import Path

import throughput
from results import Result, as_row, result

NO_LIBRARY = "only commands; see the drain by commands"
NOTES = {
    "inbox": None,
    "huey": "takes and deletes in one commit: a crash of the worker loses the task",
    "simplebroker": "nothing brings back what a dead worker has moved",
    "litequeue": "finishes by number: a stale worker can finish what another holds",
    "persist-queue": (
        "promises its queue to threads of one process, not to processes: it locks with a"
        " `threading.Lock`; finishes by number: a stale worker can finish what another holds"
    ),
}


def drain(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """The figures of throughput.py, as one result."""
    options = argparse.Namespace(items=100_000, processes=8, seconds=3.0, turns=2, only=None)
    if quick:
        options.items, options.processes, options.seconds, options.turns = 200, 2, 0.3, 1
    figures = throughput.compete(folder, bin_folder, options)
    rows = []
    for name, found in figures.items():
        if "failed" in found:
            rows.append(as_row(name, cannot=f"failed: {found['failed']}"))
            continue
        call = found["single_call"]
        values = {
            "per_second": found["per_second"],
            "share": found["slowest_share"],
            "p50": call["p50_ms"],
            "p99": call["p99_ms"],
            "worst": call["max_ms"],
            "duplicates": found["duplicates"],
            "lost": found["lost"],
        }
        floor = name.startswith("raw")
        rows.append(as_row(name, values, floor=floor, note=NOTES.get(name)))
    rows += [
        as_row(name, cannot=NO_LIBRARY)
        for name in ("agent-collab", "agent-lanes", "agent-mail", "pac-collab")
    ]
    return [
        result(
            "drain",
            title="Eight processes drain a queue of 100,000, by calls",
            did=(
                f"{options.processes} long-lived processes take items and finish them,"
                f" {options.items:,} queued, {options.turns} turns of {options.seconds:g} s each;"
                " an item counts once, however often it was handed out; all set to survive a power"
                " cut (`synchronous=FULL`). *Slowest / fastest* is of the worse turn."
            ),
            unit="items a second",
            less_is_better=False,
            columns={
                "per_second": "items a second",
                "share": "slowest / fastest process",
                "p50": "call p50, ms",
                "p99": "p99, ms",
                "worst": "worst, ms",
                "duplicates": "duplicates",
                "lost": "lost",
            },
            compared=["per_second"],
            rows=rows,
            commands={name: found.get("calls") for name, found in figures.items()},
            raw=figures,
        )
    ]
