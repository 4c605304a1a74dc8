"""Jobs of the comparison: how soon a waiter has what was sent, what fifty idle waiters cost."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import Turns, say
from job_commands import Field
from results import Result, as_row, median_ms, result
from roles import Silent
from tool import Refused
from waiters import LACKS, Waiting, all_waiting

# Long enough for every waiter to be asleep.
SETTLE_SECONDS = 2.0
LIMIT_SECONDS = 15.0
# It looks every ten seconds, which would take all the time there is.
SLOW, SLOW_ROUNDS = "persist-queue (call)", 3
FAILURES = (Refused, Silent, OSError, subprocess.SubprocessError, ValueError, KeyError)


def wakeup(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """One waiter of each kind at a time; something is sent to one after the other."""
    settle = 0.5 if quick else SETTLE_SECONDS
    # One more, in which whoever sends for the first time loads what it needs for that.
    rounds = Turns(3 if quick else 11, 45)
    field = Field(folder, bin_folder)
    waiting = all_waiting(field.tools, bin_folder)
    out: dict[str, str] = {}
    delays: dict[str, list[float]] = {each.name: [] for each in waiting}
    for each in waiting:
        _kept(each, out, each.warm, f"{bin_folder}python" if _is_peer(each) else sys.executable)
    try:
        for number in rounds:
            say(f"wake-up, round {number}")
            taking_part = [each for each in waiting if each.name not in out]
            if not 0 < number <= SLOW_ROUNDS:
                taking_part = [each for each in taking_part if each.name != SLOW]
            one_round(taking_part, delays, out, settle)
            if number == 0:
                delays = {name: [] for name in delays}
    finally:
        for each in waiting:
            each.end()
    rows = []
    for each in waiting:
        found = delays[each.name]
        if not found:
            rows.append(as_row(each.name, cannot=f"failed: {out.get(each.name, 'no round')}"))
            continue
        values = {"p50": median_ms(found), "worst": max(found) * 1000}
        rows.append(as_row(each.name, values, note=each.note))
    rows += [as_row(name, cannot=why) for name, why in LACKS.items()]
    return [
        result(
            "wake-up",
            title="How soon a waiter has what was sent",
            did=(
                "From the beginning of the sending call of a warm process to the first byte that"
                f" the waiting process writes, or to its end; {rounds.done - 1} rounds, each after"
                f" {settle:g} s of waiting."
            ),
            unit="ms",
            columns={"p50": "ms (median)", "worst": "worst, ms"},
            compared=["p50"],
            rows=rows,
            commands={each.name: _shown(each) for each in waiting},
            raw=delays,
        )
    ]


def one_round(
    waiting: list[Waiting], delays: dict[str, list[float]], out: dict[str, str], settle: float
) -> None:
    """All begin to wait; then each is woken in turn."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for each in waiting:
            _kept(each, out, each.before)
            processes[each.name] = each.start(0)
        time.sleep(settle)
        for each in waiting:
            if each.name not in out:
                delay = _kept(each, out, woken, each, processes[each.name])
                if delay is not None:
                    delays[each.name].append(delay)
    finally:
        for process in processes.values():
            _end(process)
    for each in waiting:
        if each.name not in out:
            _kept(each, out, each.after)


def woken(each: Waiting, process: "subprocess.Popen[bytes]") -> float:
    """Seconds from the sending to what the waiter writes."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    while select.select([descriptor], [], [], 0)[0]:
        if not os.read(descriptor, 65536):
            raise Silent("it ended before anything was sent")
    began = each.send()
    if not select.select([descriptor], [], [], LIMIT_SECONDS)[0]:
        raise Silent(f"nothing for {LIMIT_SECONDS:g} s")
    return (time.monotonic_ns() - began) / 1e9


def _kept(each: Waiting, out: dict[str, str], act: Any, *arguments: Any) -> Any:
    """What `act` gives; a failure takes the waiter out."""
    try:
        return act(*arguments)
    except FAILURES as error:
        say(f"{each.name} is out: {error}")
        out.setdefault(each.name, f"{error}"[:200])
        return None


# -- idle --------------------------------------------------------------------------------------

WAITERS = 50


def idle(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """Fifty processes of each kind that wait for what does not come, one kind after the other."""
    number, settle, seconds = (2, 0.5, 0.5) if quick else (WAITERS, 3.0, 6.0)
    field = Field(folder, bin_folder)
    rows, raw = [], {}
    waiting = all_waiting(field.tools, bin_folder)
    for each in waiting:
        say(f"{number} idle waiters of {each.name}")
        try:
            each.before()
            with _started(each, number) as processes:
                time.sleep(settle)
                before, began = _processor_seconds(processes), time.monotonic()
                time.sleep(seconds)
                used = _processor_seconds(processes) - before
                took = time.monotonic() - began
                alive = sum(process.poll() is None for process in processes)
                memory = sum(map(_memory_bytes, processes))
        except FAILURES as error:
            rows.append(as_row(each.name, cannot=f"failed: {error}"[:200]))
            continue
        if alive < number:
            rows.append(as_row(each.name, cannot=f"failed: {number - alive} of them ended"))
            continue
        raw[each.name] = {"processor_seconds": used, "seconds": took, "bytes": memory}
        values = {"percent": used / took * 100, "mib": memory / 2**20}
        rows.append(as_row(each.name, values, note=each.note))
    rows += [as_row(name, cannot=why) for name, why in LACKS.items()]
    return [
        result(
            "idle",
            title=f"What {WAITERS} idle waiters cost",
            did=(
                f"{number} processes that wait for what does not come, after {settle:g} s, for"
                f" {seconds:g} s; memory is each one's share (PSS)."
            ),
            unit="% of one core",
            columns={"percent": "% of one core, all together", "mib": "MiB, all together"},
            compared=["percent"],
            rows=rows,
            commands={each.name: _shown(each) for each in waiting},
            raw=raw,
        )
    ]


@contextlib.contextmanager
def _started(each: Waiting, number: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    processes = []
    try:
        for place in range(number):
            process = each.start(place)
            processes.append(process)
        yield processes
    finally:
        for process in processes:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Stop it; its pipe may be full."""
    process.kill()
    process.communicate()


def _processor_seconds(processes: list["subprocess.Popen[bytes]"]) -> float:
    """What all threads of all of them have used, in the kernel's nanoseconds: the ticks of
    `times` would miss short looks."""
    total = 0
    for process in processes:
        for file in Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                total += int(file.read_text().split()[0])
    return total / 1e9


def _memory_bytes(process: "subprocess.Popen[bytes]") -> int:
    """Its proportional share, so that what all of them share counts once."""
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _is_peer(each: Waiting) -> bool:
    return not each.name.startswith("inbox")


def _shown(each: Waiting) -> str:
    names = [Path(word).name if "/" in word else word for word in each.command]
    return " ".join(names)
