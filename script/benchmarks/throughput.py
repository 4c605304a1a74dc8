"""Throughput and fairness: several processes take queued items and finish them.

Every contender has its own database with the same number of queued items. They run in turn,
several times, each time for the same few seconds; the turns of one contender are added up.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import peers
from common import machine, parser, report, say, scratch, summary, table
from contenders import OURS, THEIRS, Contender

ALL: Mapping[str, Contender] = {**OURS, **THEIRS}
# For whatever a process has still to do when its time is over; after that it counts as failed.
LIMIT_SECONDS = 60.0


def main() -> None:
    """Measure, and report; or be one of the working processes."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--items", type=int, default=100_000)
    options_parser.add_argument("--processes", type=int, default=8)
    options_parser.add_argument("--seconds", type=float, default=5.0)
    options_parser.add_argument("--turns", type=int, default=3)
    options_parser.add_argument("--only", nargs="+", choices=list(ALL), metavar="NAME")
    options_parser.add_argument("--no-peers", action="store_true")
    options_parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    options_parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options_parser.add_argument("--left", nargs=2, help=argparse.SUPPRESS)
    options = options_parser.parse_args()
    if options.work:
        work(*options.work, seconds=options.seconds)
    elif options.fill:
        ALL[options.fill[0]].fill(Path(options.fill[1]), options.items)
    elif options.left:
        print(ALL[options.left[0]].left(Path(options.left[1])))
    else:
        if options.quick:
            options.items, options.processes, options.seconds, options.turns = 200, 2, 0.3, 1
        measure(options)


# -- one working process -----------------------------------------------------------------------


def work(name: str, folder: str, worker: str, *, seconds: float) -> None:
    """Take and finish items from the word `go` until the time is over."""
    queue = ALL[name].open(Path(folder), worker)
    print("ready", flush=True)
    sys.stdin.readline()
    items, calls = [], []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done = queue.cycle()
        if done is None:
            break
        items.append(done[0])
        calls += done[1]
    json.dump({"items": items, "calls": calls}, sys.stdout)


# -- all of them -------------------------------------------------------------------------------


def measure(options: argparse.Namespace) -> None:
    """Fill, let each contender have its turns, and report."""
    facts = machine()
    bin_folder = None if options.no_peers or options.quick else peers.bin_folder()
    with scratch() as parent:
        contenders = compete(parent, bin_folder, options)
    figures = {
        "benchmark": "throughput",
        "machine": facts,
        "options": {k: getattr(options, k) for k in ("items", "processes", "seconds", "turns")},
        "contenders": contenders,
    }
    report(options, figures, as_text(figures))


def compete(
    parent: Path, bin_folder: str | None, options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """The figures of each contender; `failed` instead where one could not be filled or asked."""
    pythons = dict.fromkeys(OURS, sys.executable)
    if bin_folder:
        pythons |= dict.fromkeys(THEIRS, f"{bin_folder}python")
    if options.only:
        pythons = {name: pythons[name] for name in options.only}
    folders = {name: parent / str(number) for number, name in enumerate(pythons)}
    failed: dict[str, str] = {}
    for name, folder in folders.items():
        say(f"filling {name}")
        folder.mkdir()
        try:
            ask(pythons[name], "--fill", name, str(folder), "--items", str(options.items))
        except subprocess.SubprocessError as error:
            failed[name] = f"could not be filled: {type(error).__name__}"
    turns: dict[str, list[list[dict[str, Any]]]] = {
        name: [] for name in pythons if name not in failed
    }
    for number in range(options.turns):
        for name in turns:
            say(f"turn {number + 1} of {options.turns}: {name}")
            turns[name].append(one_turn(pythons[name], name, folders[name], options))
    figures: dict[str, dict[str, Any]] = {}
    for name, found in turns.items():
        if not any(process["items"] for turn in found for process in turn):
            failed[name] = "no process took anything"
            continue
        left = json.loads(
            ask(pythons[name], "--left", name, str(folders[name])).replace("None", "null")
        )
        figures[name] = in_figures(name, found, left, options)
    return figures | {name: {"failed": why} for name, why in failed.items()}


def ask(python: str, *arguments: str) -> str:
    """The answer of this program in an environment."""
    command = [python, __file__, *arguments]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS
    )
    return done.stdout


def one_turn(
    python: str, name: str, folder: Path, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """What each process has done; all begin at the same moment."""
    command = [python, __file__, "--seconds", str(options.seconds), "--work", name, str(folder)]
    processes = [
        subprocess.Popen(
            [*command, f"w{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for number in range(options.processes)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [answer_of(process, options.seconds + LIMIT_SECONDS) for process in processes]
    failed = sum(process.returncode != 0 for process in processes)
    if failed:
        say(f"{failed} processes of {name} have failed")
    return [json.loads(answer) for answer in answers if answer]


def answer_of(process: "subprocess.Popen[str]", seconds: float) -> str:
    """What it printed by then; one that hangs is ended, and has no answer."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return ""


def in_figures(
    name: str, turns: list[list[dict[str, Any]]], left: int | None, options: argparse.Namespace
) -> dict[str, Any]:
    """What the turns add up to. An item counts once, in the first turn that had it, however often
    it was handed out. The share is of the worst turn."""
    items = Counter(item for turn in turns for process in turn for item in process["items"])
    calls = [call for turn in turns for process in turn for call in process["calls"]]
    counts = [[len(process["items"]) for process in turn] for turn in turns]
    taken = sum(items.values())
    new_items = _new_by_turn(turns)
    return {
        "durable": ALL[name].durable,
        "calls": ALL[name].calls,
        "per_second": len(items) / options.seconds / options.turns,
        "per_second_by_turn": [number / options.seconds for number in new_items],
        "taken_by_process": counts,
        "slowest_share": min(min(turn) / max(1, max(turn)) for turn in counts),
        "failed_processes": options.turns * options.processes - sum(map(len, turns)),
        "single_call": summary(calls),
        "taken": taken,
        "duplicates": taken - len(items),
        "lost": None if left is None else options.items - left - len(items),
    }


def _new_by_turn(turns: list[list[dict[str, Any]]]) -> list[int]:
    """How many items each turn had that no turn before it had."""
    seen: set[str] = set()
    numbers = []
    for turn in turns:
        before = len(seen)
        seen.update(item for process in turn for item in process["items"])
        numbers.append(len(seen) - before)
    return numbers


def as_text(figures: dict[str, Any]) -> str:
    """The table."""
    headings = (
        "queue",
        "calls",
        "durable",
        "per second",
        "slowest / fastest process",
        "call p50 ms",
        "p99 ms",
        "worst ms",
        "duplicates",
        "lost",
        "failed processes",
    )
    rows = [
        (
            name,
            f["calls"],
            f["durable"],
            f["per_second"],
            f["slowest_share"],
            f["single_call"]["p50_ms"],
            f["single_call"]["p99_ms"],
            f["single_call"]["max_ms"],
            f["duplicates"],
            f["lost"],
            f["failed_processes"],
        )
        for name, f in figures["contenders"].items()
        if "failed" not in f
    ]
    options = figures["options"]
    return (
        f"{options['processes']} processes, {options['items']:,} queued,"
        f" {options['turns']} turns of {options['seconds']:g} s each; an item counts once,"
        " however often it was handed out\n\n" + table(headings, rows)
    )


if __name__ == "__main__":
    main()
