"""Jobs of the comparison: how soon a waiter has what was sent, what fifty idle waiters cost."""

import contextlib
import os
import random
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from common import say
from job_commands import Field
from results import Result, as_row, median_ms, result
from roles import Silent
from tool import Refused
from waiters import LACKS, Waiting, all_waiting

# Long enough for every waiter to be asleep.
SETTLE_SECONDS = 2.0
LIMIT_SECONDS = 15.0
SEED = 1
ROUNDS = 10
# It looks every ten seconds: fewer rounds, beside those of the others.
SLOW, SLOW_ROUNDS = "persist-queue (call)", 5
HUEY = "huey (call)"
# So long after a sending nobody else sends, so that who looks often is not disturbed by it.
APART_SECONDS = 0.05
FAILURES = (Refused, Silent, OSError, subprocess.SubprocessError, ValueError, KeyError)


def wakeup(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """One waiter of each kind; something is sent to each at a moment of its own."""
    settle, rounds, slow_rounds = (0.5, 2, 1) if quick else (SETTLE_SECONDS, ROUNDS, SLOW_ROUNDS)
    field = Field(folder, bin_folder)
    waiting = all_waiting(field.tools, bin_folder)
    wakings = Wakings([each.name for each in waiting], settle)
    for each in waiting:
        python = f"{bin_folder}python" if _is_peer(each) else sys.executable
        _kept(each, wakings.out, each.warm, python)
    try:
        with ThreadPoolExecutor(1) as beside:
            slow = [
                beside.submit(wakings.one_after_the_other, each, slow_rounds)
                for each in waiting
                if each.name == SLOW
            ]
            wakings.rounds([each for each in waiting if each.name != SLOW], rounds)
            for one in slow:
                one.result()
    finally:
        for each in waiting:
            each.end()
    rows = []
    for each in waiting:
        found = wakings.delays[each.name]
        if not found:
            why = wakings.out.get(each.name, "no round")
            rows.append(as_row(each.name, cannot=f"failed: {why}"))
            continue
        values = {"p50": median_ms(found), "worst": max(found) * 1000}
        note = each.note
        if each.name == SLOW:
            note = f"{note}; {len(found)} rounds"
        elif each.name == HUEY:
            note = f"{note}; here {_looks_of_huey(settle, settle + each.period)}"
        rows.append(as_row(each.name, values, note=note))
    rows += [as_row(name, cannot=why) for name, why in LACKS.items()]
    return [
        result(
            "wake-up",
            title="How soon a waiter has what was sent",
            did=(
                "From the beginning of the sending call of a warm process to the first byte that"
                f" the waiting process writes, or to its end; {rounds} rounds. Each sending comes"
                f" {settle:g} s after the start of the waiting and another moment later, by chance"
                f" (seed {SEED}) but spread evenly over at least the time between two of its looks:"
                " 10 s for persist-queue, 2 s for fleetwright and huey, 1 s for the others."
            ),
            unit="ms",
            columns={"p50": "ms (median)", "worst": "worst, ms"},
            compared=["p50"],
            rows=rows,
            commands={each.name: _shown(each) for each in waiting},
            raw={"seed": SEED, "sent_after": wakings.sent_after, "seconds": wakings.delays},
        )
    ]


def _looks_of_huey(*ages: float) -> str:
    """How often its consumer looks after so many seconds of waiting: each pause is 1.15 times the
    one before, from 0.1 s on up to 10 s."""
    pauses = " to ".join(f"{min(10.0, 0.1 + 0.15 * age):.1f}" for age in ages)
    return f"about every {pauses} s"


def moments(name: str, rounds: int, period: float) -> list[float]:
    """Seconds within a period, one in each of so many equal parts of it, in an order by chance:
    always the same for the same waiter."""
    chance = random.Random(f"{SEED} {name}")
    found = [(part + chance.random()) / rounds * period for part in range(rounds)]
    chance.shuffle(found)
    return found


class Wakings:
    """Waking of waiters. One that looks at intervals is met in every phase between two looks."""

    def __init__(self, names: list[str], settle: float) -> None:
        self.delays: dict[str, list[float]] = {name: [] for name in names}
        self.sent_after: dict[str, list[float]] = {name: [] for name in names}
        self.out: dict[str, str] = {}
        self._settle = settle
        self._sending = threading.Lock()

    def rounds(self, waiting: list[Waiting], number: int) -> None:
        """In each round all begin to wait, and each is woken when its moment has come."""
        found = {each.name: moments(each.name, number, each.period) for each in waiting}
        # One more, in which whoever sends for the first time loads what it needs for that.
        self._round(waiting, dict.fromkeys(found, 0.0), counts=False)
        for place in range(number):
            say(f"wake-up, round {place + 1} of {number}")
            taking_part = [each for each in waiting if each.name not in self.out]
            self._round(taking_part, {name: times[place] for name, times in found.items()})

    def one_after_the_other(self, each: Waiting, number: int) -> None:
        """A waiter that goes on waiting whenever it has been woken."""
        if each.name in self.out or _kept(each, self.out, each.send) is None:
            return
        process = each.start(0)  # It finds what was sent already, and both sides have loaded all.
        try:
            assert process.stdout is not None
            select.select([process.stdout.fileno()], [], [], LIMIT_SECONDS)
            for moment in moments(each.name, number, each.period):
                self._wake(each, process, time.monotonic(), APART_SECONDS + moment)
        finally:
            _end(process)

    def _round(
        self, waiting: list[Waiting], after: dict[str, float], *, counts: bool = True
    ) -> None:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            with ThreadPoolExecutor(max(1, len(waiting))) as pool:
                for each in waiting:
                    _kept(each, self.out, each.before)
                    process = processes[each.name] = each.start(0)
                    wait = self._settle + after[each.name]
                    pool.submit(self._wake, each, process, time.monotonic(), wait, counts=counts)
        finally:
            for process in processes.values():
                _end(process)
        for each in waiting:
            if each.name not in self.out:
                _kept(each, self.out, each.after)

    def _wake(
        self,
        each: Waiting,
        process: "subprocess.Popen[bytes]",
        began: float,
        after: float,
        *,
        counts: bool = True,
    ) -> None:
        """Send so many seconds after the beginning, and keep what came of it."""
        if each.name in self.out:
            return
        time.sleep(max(0.0, began + after - time.monotonic()))
        delay = _kept(each, self.out, self._woken, each, process)
        if delay is not None and counts:
            self.delays[each.name].append(delay)
            self.sent_after[each.name].append(after)

    def _woken(self, each: Waiting, process: "subprocess.Popen[bytes]") -> float:
        """Seconds from the sending to what the waiter writes."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        while select.select([descriptor], [], [], 0)[0]:
            if not os.read(descriptor, 65536):
                raise Silent("it ended before anything was sent")
        with self._sending:
            sent = each.send()
            soon = select.select([descriptor], [], [], APART_SECONDS)[0]
        if not soon and not select.select([descriptor], [], [], LIMIT_SECONDS)[0]:
            raise Silent(f"nothing for {LIMIT_SECONDS:g} s")
        return (time.monotonic_ns() - sent) / 1e9


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


BUSY_SETTLE = 2.0


class Idle(NamedTuple):
    """How long after all of them sleep it begins, and how long it is measured; in seconds."""

    number: int
    settle: float
    measured: float


class Cost(NamedTuple):
    """What each process of a kind has used, and how long the one that was started first and the
    one that was started last had been there at the beginning and at the end."""

    processor_seconds: list[float]
    bytes: list[int]
    oldest_seconds: tuple[float, float]
    youngest_seconds: tuple[float, float]


def idle(folder: Path, bin_folder: str | None, *, quick: bool) -> list[Result]:
    """Fifty processes of each kind that wait for what does not come; kinds that hardly do
    anything wait beside each other, the others alone."""
    how = Idle(2, 0.5, 0.5) if quick else Idle(WAITERS, 10.0, 8.0)
    field = Field(folder, bin_folder)
    waiting = all_waiting(field.tools, bin_folder)
    quiet = [each for each in waiting if each.name not in BUSY]
    found: dict[str, Cost] = {}
    out: dict[str, str] = {}
    for batch in (quiet, *([each] for each in waiting if each.name in BUSY)):
        say(f"{how.number} idle waiters each: {', '.join(each.name for each in batch)}")
        shorter = how if batch is quiet else how._replace(settle=min(how.settle, BUSY_SETTLE))
        found |= _idle_together(batch, shorter, out)
    rows = [
        as_row(
            each.name,
            {
                "percent": sum(found[each.name].processor_seconds) / how.measured * 100,
                "mib": sum(found[each.name].bytes) / 2**20,
            },
            note=_note_of_idle(each, found[each.name], how.settle),
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
                f" {how.measured:g} s, from {how.settle:g} s after all of them sleep"
                f" ({min(how.settle, BUSY_SETTLE):g} s for those that wait alone); memory is each"
                f" one's share (PSS). {', '.join(BUSY)} wait alone, the others at the same time."
            ),
            unit="% of one core",
            columns={"percent": "% of one core, all together", "mib": "MiB, all together"},
            compared=["percent"],
            rows=rows,
            commands={each.name: _shown(each) for each in waiting},
            raw={name: cost._asdict() for name, cost in found.items()},
        )
    ]


def _note_of_idle(each: Waiting, cost: Cost, settle: float) -> str | None:
    """What the figure is of, where a waiter does not do the same all the time. How long the
    start of a process took nobody knows, so it has waited for longer than `settle`, and less
    than since it was started."""
    if each.name != HUEY:
        return each.note
    looks = _looks_of_huey(settle, cost.oldest_seconds[1])
    return f"{each.note}; while this was measured, {looks}"


def _idle_together(batch: list[Waiting], how: Idle, out: dict[str, str]) -> dict[str, Cost]:
    """What each kind has cost."""
    found: dict[str, Cost] = {}
    with contextlib.ExitStack() as stack:
        processes: dict[Waiting, list[subprocess.Popen[bytes]]] = {}
        started: dict[Waiting, tuple[float, float]] = {}
        for each in batch:
            _kept(each, out, each.before)
            if each.name not in out:
                first = time.monotonic()
                processes[each] = stack.enter_context(_started(each, how.number))
                started[each] = (first, time.monotonic())
        _wait_until_asleep([one for group in processes.values() for one in group])
        time.sleep(how.settle)
        began = time.monotonic()
        before = {each: list(map(_processor_seconds, group)) for each, group in processes.items()}
        time.sleep(how.measured)
        for each, group in processes.items():
            after, ended_at = list(map(_processor_seconds, group)), time.monotonic()
            ended = sum(process.poll() is not None for process in group)
            if ended:
                out[each.name] = f"{ended} of {how.number} ended: {each.complaint()}"[:200]
                continue
            used = [round(b - a, 9) for a, b in zip(before[each], after, strict=True)]
            oldest, youngest = (
                (round(began - start, 1), round(ended_at - start, 1)) for start in started[each]
            )
            found[each.name] = Cost(used, list(map(_memory_bytes, group)), oldest, youngest)
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


def _processor_seconds(process: "subprocess.Popen[bytes]") -> float:
    """What all its threads have used, in the kernel's nanoseconds: the ticks of `times` would
    miss short looks."""
    total = 0
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
