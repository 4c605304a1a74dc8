"""What is done to the processes and the machine, by chance, from a seed.

The kills have a generator of their own, so that each sequence of decisions is repeated by the
same seed, however long each of them takes.
"""

import contextlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from crew import Crew
from disk import Disk
from history import Fault
from lives import Forked

SLICE_SECONDS = 0.05
_DEEDS_A_SECOND = 0.4
_STALL_NS = 1_000_000_000
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


class Nemesis:
    """Owns the disk that the run uses, and the record of what was done when."""

    def __init__(self, folder: Path, seed: str, *, calm: bool, kills: float) -> None:
        self.faults: list[Fault] = []
        self.not_tried: list[str] = []
        self._folder = folder
        self._disk = Disk(folder / "disk")
        self._chance = random.Random(f"{seed}/nemesis")
        self._whom = random.Random(f"{seed}/kills")
        self._calm = calm
        self._kills = kills
        self._next_kill = 0.0

    def __enter__(self) -> "Nemesis":
        self._disk.make()
        (self._disk.path / "project").mkdir()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._disk.take_away()

    def rage(self, crew: Crew, enough: Callable[[], bool]) -> None:
        """Do harm until it is enough."""
        deeds = self._deeds(crew)
        self._next_kill = time.monotonic()
        while not enough():
            if self._calm:
                self._let_pass(1.0, crew)
                continue
            self._let_pass(self._chance.expovariate(_DEEDS_A_SECOND), crew)
            deed, _ = self._chance.choices(deeds, [weight for _, weight in deeds])[0]
            deed()

    def _deeds(self, crew: Crew) -> list[tuple[Callable[[], None], int]]:
        found: list[tuple[Callable[[], None], int]] = [
            (lambda: self._stop(crew), 8),
            (lambda: self._hold_the_write_lock(crew), 3),
            (lambda: self._starve(crew), 3),
            (lambda: self._kill_all(crew), 1),
        ]
        if self._disk.mounted:
            found.append((lambda: self._fill_the_disk(crew), 2))
            found.append((lambda: self._forbid_writing(crew), 2))
        else:
            self.not_tried.append("full disk, read-only disk (no right to mount one)")
        if os.path.exists(_FAKETIME):
            found.append((lambda: self._jump(crew), 3))
        else:
            self.not_tried.append("clock jumps (no libfaketime)")
        return found

    # -- deeds -------------------------------------------------------------------------------

    def _kill(self, crew: Crew) -> None:
        # What a caretaker does takes ever longer, and is to come to its end now and then.
        weights = [1 if name.startswith("caretaker") else 10 for name in crew.names]
        (name,) = self._whom.choices(crew.names, weights)
        with self._noted("kill -9", name):
            crew.kill(name)

    def _kill_all(self, crew: Crew) -> None:
        """At once: whoever comes first afterwards finds a log that nobody has closed."""
        with contextlib.ExitStack() as stack:
            for name in crew.names:
                stack.enter_context(self._noted("kill -9", name))
            stack.enter_context(self._noted("all killed at once", ""))
            crew.kill(*crew.names)

    def _stop(self, crew: Crew) -> None:
        """Longer than most leases; then it goes on as if nothing had been."""
        name = self._chance.choice(crew.names)
        with self._noted("SIGSTOP", name):
            crew.send_signal(name, signal.SIGSTOP)
            self._let_pass(self._chance.uniform(0.5, 4.0), crew)
            crew.send_signal(name, signal.SIGCONT)

    def _hold_the_write_lock(self, crew: Crew) -> None:
        """A foreign program that knows nothing of the gate."""
        path = self._disk.path / "project" / ".inbox" / "bus.db"
        seconds = self._chance.uniform(0.2, 2.0)
        with self._noted("write lock held", ""):
            holder = Forked(_hold_the_write_lock, (path, seconds), self._output("holder"))
            while holder.ended() is None:
                self._let_pass(SLICE_SECONDS, crew)

    def _fill_the_disk(self, crew: Crew) -> None:
        with self._noted("disk full", ""), self._disk.full():
            self._let_pass(self._chance.uniform(0.2, 1.0), crew)

    def _forbid_writing(self, crew: Crew) -> None:
        with self._noted("disk read-only", ""), self._disk.read_only():
            self._let_pass(self._chance.uniform(0.2, 1.0), crew)

    def _starve(self, crew: Crew) -> None:
        """Everybody competes with processes that only compute."""
        with self._noted("starvation", ""):
            number = 2 * (os.cpu_count() or 1)
            loops = [Forked(_compute, (), self._output("loop")) for _ in range(number)]
            self._let_pass(self._chance.uniform(0.5, 2.0), crew)
            for loop in loops:
                loop.kill()

    def _jump(self, crew: Crew) -> None:
        """Two are born again with another wall clock."""
        offset = self._chance.randint(-86_400, 86_400)
        environment = {
            "LD_PRELOAD": _FAKETIME,
            "FAKETIME": f"{offset:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        for name in self._chance.sample(crew.names, 2):
            with self._noted("kill -9", name), self._noted("clock jump", name):
                crew.kill(name, environment=environment)

    # -- the rest ----------------------------------------------------------------------------

    def _let_pass(self, seconds: float, crew: Crew) -> None:
        """Time in which others are killed, as in all other time. A machine that is too slow for as
        many kills as are due does not hold it up: it ends when its time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._sleep()
            crew.look_after()
            while self._kills and self._next_kill < time.monotonic() < end:
                self._kill(crew)
                self._next_kill += self._whom.expovariate(self._kills)

    def _sleep(self) -> None:
        """Whatever else the machine has to do can hold up everybody, this process too."""
        began = time.monotonic_ns()
        time.sleep(SLICE_SECONDS)
        if time.monotonic_ns() - began > _STALL_NS:
            self.faults.append(Fault("stall of the machine", "", began, time.monotonic_ns()))

    @contextlib.contextmanager
    def _noted(self, kind: str, target: str) -> Iterator[None]:
        began = time.monotonic_ns()
        yield
        self.faults.append(Fault(kind, target, began, time.monotonic_ns()))

    def _output(self, name: str) -> Path:
        return self._folder / f"{name}.output"


def _hold_the_write_lock(path: Path, seconds: float) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(seconds)
        other.execute("ROLLBACK")


def _compute() -> None:
    while True:
        pass
