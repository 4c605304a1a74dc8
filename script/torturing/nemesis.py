"""What is done to the processes and the machine, by chance, from a seed."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from history import Fault

SLICE_SECONDS = 0.05
DISK_OPTIONS = "size=1g,mode=0700"
_FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


class Nemesis:
    """Owns the disk that the run uses, and the record of what was done when."""

    def __init__(self, folder: Path, seed: str, *, calm: bool, kills: float) -> None:
        self.faults: list[Fault] = []
        self.not_tried: list[str] = []
        self._folder = folder
        self._disk = folder / "disk"
        self._chance = random.Random(f"{seed}/nemesis")
        self._calm = calm
        self._kills = kills
        self._mounted = False

    def __enter__(self) -> "Nemesis":
        self._disk.mkdir()
        self._mounted = self._mount()
        (self._disk / "project").mkdir()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._mounted:
            subprocess.run(["umount", "--lazy", self._disk], check=True)

    def rage(self, crew: Any, *, until: float) -> None:
        """Do harm until the end."""
        deeds = self._deeds(crew)
        while time.monotonic() < until:
            time.sleep(SLICE_SECONDS)
            crew.look_after()
            if self._chance.random() < self._kills * SLICE_SECONDS:
                self._kill(crew)
            if not self._calm and self._chance.random() < 0.4 * SLICE_SECONDS:
                deed, _ = self._chance.choices(deeds, [weight for _, weight in deeds])[0]
                deed()

    def _deeds(self, crew: Any) -> list[tuple[Callable[[], None], int]]:
        found: list[tuple[Callable[[], None], int]] = [
            (lambda: self._stop(crew), 8),
            (self._hold_the_write_lock, 3),
            (self._starve, 3),
        ]
        if self._mounted:
            found.append((self._fill_the_disk, 2))
        else:
            self.not_tried.append("full disk (no right to mount one)")
        if os.path.exists(_FAKETIME):
            found.append((lambda: self._jump(crew), 3))
        else:
            self.not_tried.append("clock jumps (no libfaketime)")
        return found

    # -- deeds -------------------------------------------------------------------------------

    def _kill(self, crew: Any) -> None:
        name = self._chance.choice(sorted(crew.processes))
        began = time.monotonic_ns()
        crew.kill(name)
        self._note("kill -9", name, began)

    def _stop(self, crew: Any) -> None:
        """Longer than most leases; then it goes on as if nothing had been."""
        name = self._chance.choice(sorted(crew.processes))
        began = time.monotonic_ns()
        crew.processes[name].send_signal(signal.SIGSTOP)
        self._let_pass(self._chance.uniform(0.5, 4.0), crew)
        crew.processes[name].send_signal(signal.SIGCONT)
        self._note("SIGSTOP", name, began)

    def _hold_the_write_lock(self) -> None:
        """A foreign program that knows nothing of the gate."""
        began = time.monotonic_ns()
        path = self._disk / "project" / ".inbox" / "bus.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            time.sleep(self._chance.uniform(0.2, 2.0))
            other.execute("ROLLBACK")
        self._note("write lock held", "", began)

    def _fill_the_disk(self) -> None:
        began = time.monotonic_ns()
        filler = self._disk / "filler"
        with open(filler, "wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 1_000_000)
        time.sleep(self._chance.uniform(0.2, 1.0))
        filler.unlink()
        self._note("disk full", "", began)

    def _starve(self) -> None:
        """Everybody competes with processes that only compute."""
        began = time.monotonic_ns()
        loops = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(2 * (os.cpu_count() or 1))
        ]
        time.sleep(self._chance.uniform(0.5, 2.0))
        for loop in loops:
            loop.kill()
            loop.wait()
        self._note("starvation", "", began)

    def _jump(self, crew: Any) -> None:
        """Whoever is born from now on has another wall clock."""
        offset = self._chance.randint(-86_400, 86_400)
        crew.environment = {
            "LD_PRELOAD": _FAKETIME,
            "FAKETIME": f"{offset:+d}s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        for name in self._chance.sample(sorted(crew.processes), 2):
            self._note("clock jump", name, time.monotonic_ns())
            crew.kill(name)
        crew.environment = {}

    # -- the rest ----------------------------------------------------------------------------

    def _let_pass(self, seconds: float, crew: Any) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(SLICE_SECONDS)
            if self._chance.random() < self._kills * SLICE_SECONDS / 2:
                self._kill(crew)

    def _note(self, kind: str, target: str, began: int) -> None:
        self.faults.append(Fault(kind, target, began, time.monotonic_ns()))

    def _mount(self) -> bool:
        """A small disk of its own, where that is allowed."""
        if self._calm or shutil.which("mount") is None:
            return False
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", DISK_OPTIONS, "tmpfs", self._disk], capture_output=True
        )
        return done.returncode == 0
