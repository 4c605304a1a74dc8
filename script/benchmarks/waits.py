"""Waits: how soon a waiter has what was written for it, what idle waiting costs, missed wake-ups.

Waiters are processes of their own with a long-lived bus. Times are taken on the machine's
monotonic clock in both processes: from the moment after the writer's COMMIT to the moment at
which the waiter's call returns its data.
"""

import argparse
import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, summary, table

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import waits
from inbox_orch.shared.store.sqlite import bells, creating

IDLERS, PAIRS = 10, 8
AROUND_SECONDS = 0.05
RACE_WAIT_SECONDS = 20.0
LIMITS = {"p50_ms": 5.0, "p99_ms": 50.0, "idle_percent": 0.1}


def main() -> None:
    """Measure, and report; or be one of the waiting processes."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--commits", type=int, default=1000, help="for each row")
    options_parser.add_argument("--rounds", type=int, default=2000, help="of the race, each way")
    options_parser.add_argument("--idle-seconds", type=float, default=60.0)
    options_parser.add_argument("--waiters", type=int, nargs="+", default=[1, 10, 50])
    options_parser.add_argument("--role", nargs=2, help=argparse.SUPPRESS)
    options = options_parser.parse_args()
    if options.role:
        ROLES[options.role[0]](**json.loads(options.role[1]))
        return
    options.idlers, options.pairs = IDLERS, PAIRS
    if options.quick:
        options.commits, options.rounds, options.idle_seconds = 10, 16, 0.5
        options.waiters, options.idlers, options.pairs = [1, 3], 3, 2
    figures = measure(options)
    report(options, figures, as_text(figures))
    sys.exit(0 if all(race["timed_out"] == 0 for race in figures["race"]) else 1)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All parts, one after the other: they would disturb each other."""
    facts = machine()
    with scratch() as folder:
        latency = []
        for number in options.waiters:
            say(f"wake-up with {number} waiting processes")
            path = folder / f"latency-{number}" / "bus.db"
            latency.append({"waiters": number} | latency_of(make(path), number, options.commits))
        idle = []
        for doorbell in ("on", "off"):
            say(f"idle for {options.idle_seconds:g} s, bells {doorbell}")
            path = folder / f"idle-{doorbell}" / "bus.db"
            idle.append({"bells": doorbell} | idle_of(make(path), doorbell, options))
        race = []
        for doorbell in ("on", "off"):
            say(f"race of {options.rounds} rounds, bells {doorbell}")
            race.append({"bells": doorbell} | race_of(folder, doorbell, options))
    return {
        "benchmark": "waits",
        "machine": facts,
        "limits": LIMITS,
        "latency": latency,
        "idle": idle,
        "race": race,
    }


# -- processes -----------------------------------------------------------------------------


class Role:
    """A process of this program in a role, spoken to in JSON lines."""

    def __init__(self, name: str, *, doorbell: str = "on", **given: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--role", name, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "INBOX_DOORBELL": doorbell},
            text=True,
        )

    def tell(self, value: Any) -> None:
        """Send it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Its next line."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """Stop it and wait until it has gone."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def started(make_role: Callable[[int], Role], number: int) -> Iterator[list[Role]]:
    """Several processes, stopped at the end; each has said that it is ready."""
    roles = [make_role(place) for place in range(number)]
    try:
        for role in roles:
            role.hear()
        yield roles
    finally:
        for role in roles:
            role.end()


def make(path: Path) -> Path:
    """A new database with its folder."""
    path.parent.mkdir()
    creating.create(str(path))
    return path


def answer(value: Any) -> None:
    """A line to the measuring process."""
    print(json.dumps(value), flush=True)


def hold_a_thread(bus: Bus) -> tuple[str, str]:
    """A thread on which others can write: (id, token)."""
    bus.send(to=str(bus.agent), subject="waiting")
    claimed = bus.claim()
    assert claimed.lease.token is not None
    return claimed.thread.id, claimed.lease.token


# -- latency -------------------------------------------------------------------------------


def latency_of(path: Path, number: int, commits: int) -> dict[str, float]:
    """Write for one waiter after the other, each time once all are asleep."""
    committed: list[int] = []
    genuine = bells.ring

    def noting(*given: Any) -> None:
        # The first thing that happens after the commit.
        committed.append(time.monotonic_ns())
        genuine(*given)

    def waiter(place: int) -> Role:
        return Role("waiter", path=str(path), agent=f"w{place}")

    delays: list[float] = []
    with started(waiter, number) as waiters, Bus.open(path, agent="leader") as leader:
        threads = {t.sender: t.id for t in leader.list(limit=1000).items}
        bells.ring = noting
        try:
            for count in range(commits):
                place = count % number
                # Until the waiter of the last round sleeps again.
                time.sleep(random.uniform(0.005, 0.015))
                leader.reply(threads[f"w{place}"], body="wake up")
                delays.append((waiters[place].hear() - committed[-1]) / 1e9)
        finally:
            bells.ring = genuine
    return summary(delays)


def be_a_waiter(path: str, agent: str) -> None:
    """Wait for replies, one after the other, and say when each was there."""
    with Bus.open(path, agent=agent) as bus:
        thread, token = hold_a_thread(bus)
        after = None
        answer("ready")
        while True:
            replies = bus.wait_reply(thread, token, after=after, wait_seconds=float("inf"))
            returned = time.monotonic_ns()
            after = replies.next_cursor
            answer(returned)


# -- idle waiting --------------------------------------------------------------------------


def idle_of(path: Path, doorbell: str, options: argparse.Namespace) -> dict[str, float]:
    """Processor time of waiters for whom nothing comes, and, at the same time, of processes that
    only sleep in the same rhythm: what the machine itself takes for a wake-up."""
    seconds, number = options.idle_seconds, options.idlers

    def idler(place: int) -> Role:
        return Role("idler", doorbell=doorbell, path=str(path), agent=f"w{place}", seconds=seconds)

    def sleeper(place: int) -> Role:
        return Role("sleeper", doorbell=doorbell, seconds=seconds)

    with started(idler, number) as idlers, started(sleeper, number) as sleepers:
        for role in (*idlers, *sleepers):
            role.tell("go")
        shares = [role.hear() * 100 for role in idlers]
        floor = [role.hear() * 100 for role in sleepers]
    return {
        "waiters": len(shares),
        "seconds": seconds,
        "mean_percent": sum(shares) / len(shares),
        "most_percent": max(shares),
        "floor_percent": sum(floor) / len(floor),
    }


def be_a_sleeper(seconds: float) -> None:
    """Wake up as often as a waiter does, and do nothing; say what share of a core that took."""
    sleeping = select.poll()
    pause = waits.Pause(armed=not waits.doorbell_off())
    answer("ready")
    sys.stdin.readline()
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        sleeping.poll(pause.next() * 1000)
    answer((time.process_time() - used) / (time.monotonic() - began))


def be_an_idler(path: str, agent: str, seconds: float) -> None:
    """Wait for mail that does not come; say what share of a core that took."""
    with Bus.open(path, agent=agent) as bus:
        # What is loaded once, by the first wait of a process, is not the price of waiting.
        wait_in_vain(bus, 0.1)
        answer("ready")
        sys.stdin.readline()
        began, used = time.monotonic(), time.process_time()
        wait_in_vain(bus, seconds)
        answer((time.process_time() - used) / (time.monotonic() - began))


def wait_in_vain(bus: Bus, seconds: float) -> None:
    """Wait for mail that does not come."""
    try:
        bus.fetch(wait_seconds=seconds)
    except InboxOrchError as error:
        if error.code != "timeout":
            raise


# -- the race ------------------------------------------------------------------------------


def race_of(folder: Path, doorbell: str, options: argparse.Namespace) -> dict[str, Any]:
    """Replies that land within 50 ms of the start of a wait, before or after it."""
    chance, number = random.Random(doorbell), options.pairs
    paths = [make(folder / f"race-{doorbell}-{n}" / "bus.db") for n in range(number)]

    def racer(place: int) -> Role:
        return Role("racer", doorbell=doorbell, path=str(paths[place]))

    def replier(place: int) -> Role:
        return Role("replier", path=str(paths[place]))

    delays: list[float] = []
    timed_out = 0
    with started(racer, number) as racers, started(replier, number) as repliers:
        pairs = list(zip(racers, repliers, strict=True))
        for _ in range(options.rounds // number):
            for waiting, writing in pairs:
                start = time.monotonic() + AROUND_SECONDS + 0.01
                waiting.tell(start)
                writing.tell(start + chance.uniform(-AROUND_SECONDS, AROUND_SECONDS))
            for waiting, writing in pairs:
                committed, (began, returned) = writing.hear(), waiting.hear()
                timed_out += returned is None
                if returned is not None:
                    delays.append((returned - max(began, committed)) / 1e9)
    return {"timed_out": timed_out, **summary(delays)}


def be_a_racer(path: str) -> None:
    """Wait for a reply from a given moment on; say when the wait began, and when it had it."""
    with Bus.open(path, agent="w") as bus:
        thread, token = hold_a_thread(bus)
        after = None
        answer("ready")
        for line in sys.stdin:
            sleep_until(json.loads(line))
            began, returned = time.monotonic_ns(), None
            try:
                replies = bus.wait_reply(thread, token, after=after, wait_seconds=RACE_WAIT_SECONDS)
                after, returned = replies.next_cursor, time.monotonic_ns()
            except InboxOrchError as error:
                if error.code != "timeout":
                    raise
            answer((began, returned))


def be_a_replier(path: str) -> None:
    """Reply at a given moment, and say when that was committed."""
    with Bus.open(path, agent="leader") as bus:
        (thread,) = bus.list().items
        answer("ready")
        for line in sys.stdin:
            sleep_until(json.loads(line))
            bus.reply(thread.id, body="here")
            answer(time.monotonic_ns())


def sleep_until(moment: float) -> None:
    """Until a moment of the monotonic clock, which all processes share."""
    time.sleep(max(0.0, moment - time.monotonic()))


ROLES = {
    "waiter": be_a_waiter,
    "idler": be_an_idler,
    "sleeper": be_a_sleeper,
    "racer": be_a_racer,
    "replier": be_a_replier,
}


# -- tables --------------------------------------------------------------------------------


def as_text(figures: dict[str, Any]) -> str:
    """Three tables."""
    latency = table(
        ("waiting processes", "commits", "p50 ms", "p90 ms", "p99 ms", "worst ms"),
        [
            (f["waiters"], f["count"], f["p50_ms"], f["p90_ms"], f["p99_ms"], f["max_ms"])
            for f in figures["latency"]
        ],
    )
    idle = table(
        ("bells", "waiters", "seconds", "mean % of a core", "most %", "floor: asleep alone, %"),
        [
            (
                f["bells"],
                f["waiters"],
                f["seconds"],
                f["mean_percent"],
                f["most_percent"],
                f["floor_percent"],
            )
            for f in figures["idle"]
        ],
    )
    race = table(
        ("bells", "rounds", "timed out", "p50 ms", "p99 ms", "worst ms"),
        [
            (
                f["bells"],
                f["count"] + f["timed_out"],
                f["timed_out"],
                f["p50_ms"],
                f["p99_ms"],
                f["max_ms"],
            )
            for f in figures["race"]
        ],
    )
    limits = figures["limits"]
    about_latency = (
        "From the writer's commit to the waiter's return, one recipient a commit, bells on"
        f" (at most {limits['p50_ms']:g} ms at p50, {limits['p99_ms']:g} ms at p99)"
    )
    about_idle = f"Idle waiting (at most {limits['idle_percent']:g} % with bells)"
    about_race = (
        f"Replies within {AROUND_SECONDS * 1000:g} ms of the start of a wait; none may time out"
    )
    sections = [about_latency, latency, about_idle, idle, about_race, race]
    return "\n\n".join(sections)


if __name__ == "__main__":
    main()
