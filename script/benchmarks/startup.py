"""Start-up: the whole process of one short command, beside a bare Python with the same imports.

Every round runs each command once, one after the other, so that a busy moment of the machine
meets all of them alike. With --before it compares two installs instead: each command once of
either, in turn, and then the ratios of these pairs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import peers
from common import machine, parser, report, say, scratch, summary, table

BASE = "import click, sqlite3, json"
# Of the time of BASE; None where there is no promise.
ALLOWED = dict.fromkeys(("send", "fetch", "claim", "renew", "update", "show", "done", "prime"), 1.0)


class Ran(NamedTuple):
    """One process: wall time and processor time in seconds, what it printed."""

    wall: float
    processor: float
    output: bytes


class Stopwatch:
    """Runs commands and keeps their times by name."""

    def __init__(self, folder: Path) -> None:
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "INBOX_DB": str(folder / ".inbox" / "bus.db"),
            "INBOX_AGENT": "worker",
        }
        self._folder = folder
        self.times: dict[str, list[Ran]] = {}

    def run(self, name: str | None, *command: str) -> bytes:
        """What the command printed; its times go under `name`, if there is one."""
        before = time.perf_counter()
        with subprocess.Popen(
            command,
            env=self._environment,
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            output = process.stdout.read()
            # wait4 instead of Popen's own wait: it tells the processor time.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - before
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"exit {process.returncode} of {' '.join(command)}")
        if name is not None:
            ran = Ran(wall, usage.ru_utime + usage.ru_stime, output)
            self.times.setdefault(name, []).append(ran)
        return output


def main() -> None:
    """Measure, and report."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--rounds", type=int, default=60)
    options_parser.add_argument("--no-peers", action="store_true")
    options_parser.add_argument("--before", metavar="BIN", help="another install's commands")
    options_parser.add_argument(
        "--after",
        metavar="BIN",
        default=str(Path(sys.executable).parent),
        help="those to compare with it; by default the installed package's",
    )
    options = options_parser.parse_args()
    facts = machine()
    if options.before:
        pairs = compared(options)
        figures = {"benchmark": "startup", "machine": facts, "pairs": pairs}
        report(options, figures, pairs_as_text(options, pairs))
        return
    with scratch() as folder:
        watch = Stopwatch(folder)
        measure(watch, options)
    figures = {"benchmark": "startup", "machine": facts, "commands": in_figures(watch)}
    report(options, figures, as_text(figures))


def measure(watch: Stopwatch, options: argparse.Namespace) -> None:
    """All the rounds, after one that fills the disk cache."""
    bin_folder = f"{Path(sys.executable).parent}/"
    with_peers = None if options.no_peers or options.quick else peers.bin_folder()
    watch.run(None, f"{bin_folder}inbox", "init", ".")
    if with_peers:
        watch.run(None, f"{with_peers}agent-collab", "--db", "collab.db", "init")
        watch.run(None, f"{with_peers}fleetwright", "start", "--db", "fleet.db", "--create")
    rounds = 2 if options.quick else options.rounds
    for number in range(rounds + 1):
        if number == 1:
            watch.times.clear()
        one_round(watch, bin_folder)
        if with_peers:
            one_round_of_peers(watch, with_peers, number)
        if number % 20 == 0:
            say(f"round {number} of {rounds}")


def one_round(watch: Stopwatch, bin_folder: str) -> None:
    """What the figures are compared with, and a thread from sending to its end."""
    python = f"{bin_folder}python"
    watch.run("python -c pass", python, "-c", "pass")
    watch.run("base", python, "-c", BASE)
    for _ in one_thread(watch, f"{bin_folder}inbox"):
        pass


def one_thread(watch: Stopwatch, inbox: str) -> Iterator[None]:
    """A thread from sending to its end, with a turn for others after each command."""

    def run(verb: str, *words: str) -> bytes:
        return watch.run(verb, inbox, verb, *words, "--json")

    sent = ("--to", "worker", "--subject", "s", "--body", "text")
    for verb, words in (("prime", ()), ("send", sent), ("fetch", ())):
        run(verb, *words)
        yield
    claimed = json.loads(run("claim"))["data"]
    yield
    thread = claimed["thread"]["id"]
    held = (thread, "--token", claimed["lease"]["token"])
    for verb, words in (
        ("renew", held),
        ("update", (*held, "--body", "half")),
        ("show", (thread,)),
        ("done", (*held, "--body", "result")),
    ):
        run(verb, *words)
        yield


def compared(options: argparse.Namespace) -> dict[str, Any]:
    """The times of both installs, and the ratios after/before of the pairs."""
    inboxes = [str(Path(folder) / "inbox") for folder in (options.before, options.after)]
    rounds = 2 if options.quick else options.rounds
    with scratch() as before, scratch() as after:
        watches = [Stopwatch(before), Stopwatch(after)]
        for watch, inbox in zip(watches, inboxes, strict=True):
            watch.run(None, inbox, "init", ".")
        for number in range(rounds + 1):
            if number == 1:
                for watch in watches:
                    watch.times.clear()
            turns = [one_thread(*pair) for pair in zip(watches, inboxes, strict=True)]
            # Who comes first changes, because the second finds the disk cache as the first left it.
            for _ in zip(*turns[:: 1 if number % 2 else -1], strict=True):
                pass
            if number % 20 == 0:
                say(f"round {number} of {rounds}")
    first, second = (watch.times for watch in watches)
    return {name: _pair(times, second[name]) for name, times in first.items()}


def _pair(before: list[Ran], after: list[Ran]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for what in ("wall", "processor"):
        taken = [[getattr(ran, what) for ran in runs] for runs in (before, after)]
        ratios = [late / early for early, late in zip(*taken, strict=True)]
        figures[what] = {
            "before": summary(taken[0]),
            "after": summary(taken[1]),
            "ratio": statistics.median(ratios),
        }
    return figures


def pairs_as_text(options: argparse.Namespace, pairs: dict[str, Any]) -> str:
    """The table of two installs."""
    rows = [
        (
            f"`{name}`",
            *(pair["wall"][side]["p50_ms"] for side in ("before", "after")),
            pair["wall"]["ratio"],
            *(pair["processor"][side]["p50_ms"] for side in ("before", "after")),
            pair["processor"]["ratio"],
        )
        for name, pair in pairs.items()
    ]
    headings = ("command", "ms before", "ms after", "x", "CPU ms before", "CPU ms after", "CPU x")
    head = f"before: {options.before}\nafter: {options.after}\nmedians; x is that of the pairs"
    return f"{head}\n\n" + table(headings, rows)


def one_round_of_peers(watch: Stopwatch, bin_folder: str, number: int) -> None:
    """The nearest that each peer has to the same steps."""
    collab = (f"{bin_folder}agent-collab", "--db", "collab.db")
    owner = ("--resource", f"r{number}", "--owner", "worker")
    message = ("--sender", "leader", "--recipient", "worker", "--body", "text")
    watch.run("agent-collab send", *collab, "send", *message, "--key", f"k{number}")
    inbox = json.loads(watch.run("agent-collab inbox", *collab, "inbox", "--recipient", "worker"))
    lease = json.loads(watch.run("agent-collab claim", *collab, "claim", *owner, "--ttl", "300"))
    held = (*owner, "--generation", str(_first(lease, "generation")))
    watch.run("agent-collab renew", *collab, "renew", *held, "--ttl", "300")
    watch.run("agent-collab release", *collab, "release", *held)
    watch.run(None, *collab, "ack", "--recipient", "worker", "--id", str(_first(inbox, "id")))
    fleet, db = f"{bin_folder}fleetwright", ("--db", "fleet.db")
    watch.run("fleetwright add", fleet, "add", *db, "task", f"unit{number}")
    unit = json.loads(
        watch.run("fleetwright claim", fleet, "claim", *db, "--worker", "w", "--json")
    )
    watch.run("fleetwright status", fleet, "status", *db, "--json")
    ended = ("--worker", "w", "--result", "{}", str(_first(unit, "unit_id", "id")))
    watch.run("fleetwright done", fleet, "done", *db, *ended)


def _first(answer: Any, *names: str) -> Any:
    """The first value under one of the names, wherever it stands in a JSON answer."""
    if isinstance(answer, dict):
        for name in names:
            if name in answer:
                return answer[name]
    for part in answer.values() if isinstance(answer, dict) else answer:
        if isinstance(part, (dict, list)) and (found := _first(part, *names)) is not None:
            return found
    return None


def in_figures(watch: Stopwatch) -> dict[str, Any]:
    """The times of each command, and its ratio to the base of the same run."""
    base = summary([ran.wall for ran in watch.times["base"]])
    base_processor = summary([ran.processor for ran in watch.times["base"]])
    figures: dict[str, Any] = {}
    for name, times in watch.times.items():
        wall = summary([ran.wall for ran in times])
        processor = summary([ran.processor for ran in times])
        figures[name] = {
            "wall": wall,
            "processor": processor,
            "ratio": wall["p50_ms"] / base["p50_ms"],
            "processor_ratio": processor["p50_ms"] / base_processor["p50_ms"],
            "allowed": ALLOWED.get(name),
        }
    return figures


def as_text(figures: dict[str, Any]) -> str:
    """The table."""
    rows = [
        (
            f"`{name}`",
            command["wall"]["p50_ms"],
            command["wall"]["p90_ms"],
            command["processor"]["p50_ms"],
            command["ratio"],
            command["processor_ratio"],
            command["allowed"],
        )
        for name, command in figures["commands"].items()
    ]
    headings = ("command", "ms (median)", "ms (p90)", "CPU ms", "x base", "CPU x base", "allowed")
    return f"base: `python -c '{BASE}'`\n\n" + table(headings, rows)


if __name__ == "__main__":
    main()
