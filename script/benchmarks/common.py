"""What the benchmarks share: options, what machine this is, figures, tables, results.

Measures nothing itself, and imports nothing of the package, so that it also loads in the
environment of the peers.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Not the folder for temporary files: that may lie in memory, where nothing is ever synced.
SCRATCH = ROOT / "build" / "bench"


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="a smoke test; the figures mean nothing")
    made.add_argument("--json", action="store_true", help="print the raw figures, not tables")
    made.add_argument("--output", metavar="FILE", help="write the raw figures there as well")
    return made


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the checkout, removed afterwards."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        yield Path(folder)


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "processors": os.cpu_count(),
        "processor": _processor(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load_before": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Count, mean and percentiles, in milliseconds."""
    ordered = sorted(seconds)
    return {
        "count": len(ordered),
        "mean_ms": statistics.fmean(ordered) * 1000,
        "p50_ms": statistics.median(ordered) * 1000,
        "p90_ms": ordered[int(len(ordered) * 0.9)] * 1000,
        "p99_ms": ordered[int(len(ordered) * 0.99)] * 1000,
        "max_ms": ordered[-1] * 1000,
    }


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown; figures to three digits."""
    texts = [list(headings), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(headings))]
    lines = [
        " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in texts
    ]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def report(options: argparse.Namespace, figures: Mapping[str, Any], text: str) -> None:
    """Print the tables or the raw figures, and store the latter where --output says."""
    raw = json.dumps(figures, indent=2)
    if options.output:
        Path(options.output).write_text(raw + "\n", encoding="utf-8")
    facts = ", ".join(f"{name} {value}" for name, value in figures["machine"].items())
    print(raw if options.json else f"{text}\n\n{facts}")


class Turns:
    """So many turns, counted from 0; fewer, but at least three, once their time is over."""

    LEAST = 3

    def __init__(self, number: int, seconds: float) -> None:
        self._number = number
        self._seconds = seconds
        self.done = 0

    def __iter__(self) -> Iterator[int]:
        began = time.monotonic()
        while self.done < self._number:
            if self.done >= self.LEAST and time.monotonic() - began > self._seconds:
                say(f"{self.done} of {self._number} turns have taken {self._seconds:g} s")
                return
            yield self.done
            self.done += 1


def say(text: str) -> None:
    """Tell how far it is; standard output belongs to the result."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
