"""Several checks and gates at once: of different attempts side by side, of one in order.

One thread watches all of them in turn. Nothing is kept here that a crash could lose.
"""

import contextlib
import os
from collections.abc import Generator
from typing import NamedTuple

from inbox_orch.shared.store import waits

from ..gates.turns import SLICE
from ..runs.desk import Desk
from ..runs.model import Run
from . import judge


class GateSlots(NamedTuple):
    """How many checks of plain tasks are run at once, and how many gates of blueprints."""

    checks: int
    gates: int


def slots_of(asked: int | None) -> GateSlots:
    """What was asked for; without that, checks one at a time, and gates on half of the processors,
    at least two."""
    if asked is not None:
        return GateSlots(asked, asked)
    return GateSlots(1, max(2, (os.cpu_count() or 1) // 2))


def working(
    desk: Desk, run: Run, starts_before_ms: float | None, slots: GateSlots, *, refill: bool
) -> Generator[None, None, bool | None]:
    """Run checks and gates until none is left to run, with turns for the caller; returns whether
    any was decided, None when there was none. With `refill`, what comes meanwhile is begun as well;
    without it, only what is there at first. To close the generator puts all of them back.

    Raises and errors as of `judge.checking`; of what else runs then, nothing is decided.
    """
    pool = _Pool(desk, run, starts_before_ms, slots)
    try:
        pool.fill()
        while pool.running:
            yield
            ended = pool.turn()
            if refill and (ended or pool.is_news()):
                pool.fill()
        return pool.decided
    finally:
        pool.close()


class _Pool:
    """The generators that run, each with whether it is of a blueprint."""

    def __init__(
        self, desk: Desk, run: Run, starts_before_ms: float | None, slots: GateSlots
    ) -> None:
        self._desk, self._run, self._before, self._slots = desk, run, starts_before_ms, slots
        self.running: list[tuple[Generator[None, None, bool | None], bool]] = []
        self.decided: bool | None = None
        self._version: int | None = None

    def is_news(self) -> bool:
        """Whether the database has changed since the last look."""
        version = waits.version(self._desk.database)
        changed, self._version = version != self._version, version
        return changed

    def fill(self) -> None:
        """Begin as many as there is room for."""
        self._version = waits.version(self._desk.database)
        for staged in (False, True):
            while self._room(staged) and self._begin(staged):
                pass
        SLICE.share(len(self.running))

    def _room(self, staged: bool) -> bool:
        taken = sum(one is staged for _, one in self.running)
        return taken < (self._slots.gates if staged else self._slots.checks)

    def _begin(self, staged: bool) -> bool:
        """Begin one; False when there is none to begin."""
        steps = judge.checking(self._desk, self._run, self._before, staged=staged)
        try:
            next(steps)
        except StopIteration as end:
            if end.value is None:
                return False
            self.decided = bool(self.decided) or bool(end.value)
            # Put back, say: to begin it again at once could go on for ever.
            return bool(end.value)
        self.running.append((steps, staged))
        return True

    def turn(self) -> bool:
        """A turn for each; whether one has ended."""
        ended = False
        for each in list(self.running):
            try:
                next(each[0])
            except StopIteration as end:
                self.running.remove(each)
                self.decided = bool(self.decided) or bool(end.value)
                ended = True
        if ended:
            SLICE.share(len(self.running))
        return ended

    def close(self) -> None:
        """Put back what runs."""
        SLICE.share(0)
        with contextlib.ExitStack() as each:  # that one cannot be put back keeps none of the others
            for steps, _ in self.running:
                each.callback(steps.close)
            self.running = []
