"""Jobs of the comparison: how soon a waiter has what was sent, what fifty idle waiters cost."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
        note = f"{each.note}; {SLOW_ROUNDS} rounds" if each.name == SLOW else each.note
        rows.append(as_row(each.name, values, note=note))
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
# They look many times a second, so that fifty of them would take the processors from the others.
BUSY = ("agent-lanes", "simplebroker")


class Idle(NamedTuple):
    """How long after all of them sleep it begins, and how long it is measured; in seconds."""

    number: int
    settle: float
    measured: float


def idle(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """Fifty processes of each kind that wait for what does not come; kinds that hardly do
    anything wait beside each other, the others alone."""
    how = Idle(2, 0.5, 0.5) if quick else Idle(WAITERS, 10.0, 8.0)
    field = Field(folder, bin_folder)
    waiting = all_waiting(field.tools, bin_folder)
    quiet = [each for each in waiting if each.name not in BUSY]
    found: dict[str, dict[str, float]] = {}
    out: dict[str, str] = {}
    for batch in (quiet, *([each] for each in waiting if each.name in BUSY)):
        say(f"{how.number} idle waiters each: {', '.join(each.name for each in batch)}")
        shorter = how if batch is quiet else how._replace(settle=min(how.settle, 2.0))
        found |= _idle_together(batch, shorter, out)
    rows = [
        as_row(
            each.name,
            {
                "percent": found[each.name]["processor_seconds"] / how.measured * 100,
                "mib": found[each.name]["bytes"] / 2**20,
            },
            note=each.note,
        )
        for each in waiting
        if each.name in found
    ]
    rows += [as_row(name, cannot=f"failed: {why}") for name, why in out.items()]
    rows += [as_row(name, cannot=why) for name, why in LACKS.items()]
    return [
        result(
            "idle",
            title=f"What {WAITERS} idle waiters cost",
            did=(
                f"{how.number} processes of each kind that wait for what does not come, for"
                f" {how.measured:g} s, some seconds after all of them sleep; memory is each"
                f" one's share (PSS). {', '.join(BUSY)} wait alone, the others at the same time."
            ),
            unit="% of one core",
            columns={"percent": "% of one core, all together", "mib": "MiB, all together"},
            compared=["percent"],
            rows=rows,
            commands={each.name: _shown(each) for each in waiting},
            raw=found,
        )
    ]


def _idle_together(
    batch: list[Waiting], how: Idle, out: dict[str, str]
) -> dict[str, dict[str, float]]:
    """Processor seconds and bytes of each kind."""
    found: dict[str, dict[str, float]] = {}
    with contextlib.ExitStack() as stack:
        processes: dict[Waiting, list[subprocess.Popen[bytes]]] = {}
        for each in batch:
            _kept(each, out, each.before)
            if each.name not in out:
                processes[each] = stack.enter_context(_started(each, how.number))
        _wait_until_asleep([one for group in processes.values() for one in group])
        time.sleep(how.settle)
        before = {each: _processor_seconds(group) for each, group in processes.items()}
        time.sleep(how.measured)
        for each, group in processes.items():
            used = _processor_seconds(group) - before[each]
            ended = sum(process.poll() is not None for process in group)
            if ended:
                out[each.name] = f"{ended} of {how.number} ended: {each.complaint()}"[:200]
                continue
            memory = sum(map(_memory_bytes, group))
            found[each.name] = {"processor_seconds": used, "bytes": memory}
    return found


def _wait_until_asleep(processes: list["subprocess.Popen[bytes]"]) -> None:
    """Until, for a second, fewer than a tenth of them run: all have started by then."""
    end, quiet = time.monotonic() + 60, 0
    while quiet < 5 and time.monotonic() < end:
        time.sleep(0.2)
        running = sum(_state(process) in "RD" for process in processes)
        quiet = quiet + 1 if running * 10 < len(processes) else 0


def _state(process: "subprocess.Popen[bytes]") -> str:
    """As ps(1) says it: R runs, D waits for the disk, S sleeps."""
    try:
        text = Path(f"/proc/{process.pid}/stat").read_text()
    except OSError:
        return "Z"
    return text.rpartition(")")[2].split()[0]


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
