"""The threads that read for a board, each with a database connection of its own, so that no key
ever waits for a look.

One follows the run, as a wait does; one looks at the chosen task, which may ask git; and each deed
has one. What they find they hand to `say`, which may be called from any thread.
"""

import os
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import waits

from ..leader.board import Board
from ..leader.scheduler import Scheduler
from ..runs.model import Run
from ..views.detail import Detail, detail
from .deeds import Deed, Outcome, done

_LOOK_MS = 200
"""Between two looks at a run that changes all the time."""
_END_SECONDS = 2.0


class Looked(NamedTuple):
    """The run as it stands."""

    board: Board


class Seen(NamedTuple):
    """The chosen task from near; or, without `detail`, why it cannot be seen."""

    task_id: str
    detail: Detail | None
    why: str = ""


class Done(NamedTuple):
    """What came of a deed."""

    deed: Deed
    outcome: Outcome


class Broken(NamedTuple):
    """Nothing can be read any more."""

    error: Exception


News = Looked | Seen | Done | Broken
Say = Callable[[News], None]


class Source(Protocol):
    """Where a board has what it shows from."""

    def begin(self, run_id: str, say: Say) -> None:
        """From now on tell of this run."""

    def follow(self, run_id: str) -> None:
        """Tell of another run instead."""

    def look_at(self, run: Run, task_id: str) -> None:
        """Tell of this task, once."""

    def do(self, deed: Deed) -> None:
        """Do it, and tell what came of it."""

    def end(self) -> bool:
        """Tell nothing more; whether nothing is left that goes on."""


class Readers:
    """The threads. `open_one` opens a scheduler for the thread that calls it; its argument says
    whether that only looks."""

    def __init__(self, open_one: Callable[[bool], Scheduler]) -> None:
        self._open = open_one
        self._say: Say = lambda news: None
        self._wanted = ""
        self._interruption = waits.Interruption()
        self._bell = os.pipe()
        for descriptor in self._bell:
            os.set_blocking(descriptor, False)
        self._asked: queue.SimpleQueue[tuple[Run, str] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._doing: list[threading.Thread] = []

    def begin(self, run_id: str, say: Say) -> None:
        """From now on tell of this run."""
        self._wanted, self._say = run_id, say
        self._threads = [self._started(self._follow), self._started(self._look)]

    def follow(self, run_id: str) -> None:
        """Tell of another run instead."""
        self._wanted = run_id
        os.write(self._bell[1], b"!")

    def look_at(self, run: Run, task_id: str) -> None:
        """Tell of this task, once; of several that wait, the last is looked at."""
        self._asked.put((run, task_id))

    def do(self, deed: Deed) -> None:
        """Do it, and tell what came of it."""
        self._doing = [thread for thread in self._doing if thread.is_alive()]
        self._doing.append(self._started(lambda: self._carry_out(deed)))

    def end(self) -> bool:
        """Tell nothing more; whether no deed goes on."""
        self._say = lambda news: None
        if self._threads:
            self._interruption.fire()
            self._asked.put(None)
        for thread in self._threads:
            thread.join(_END_SECONDS)
        return not any(thread.is_alive() for thread in self._doing)

    def wait(self) -> None:
        """Until what was begun is done."""
        for thread in self._doing:
            thread.join()

    # -- in their threads --------------------------------------------------------------------

    def _started(self, work: Callable[[], None]) -> threading.Thread:
        """A daemon: the process may end while git keeps it waiting."""
        thread = threading.Thread(target=lambda: self._told(work), daemon=True)
        thread.start()
        return thread

    def _told(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - told in the main thread, where it is reported
            if not (isinstance(error, InboxOrchError) and error.code == "interrupted"):
                self._say(Broken(error))

    def _follow(self) -> None:
        with self._interruption.for_this_thread():
            scheduler = self._open(True)
            try:
                while True:
                    self._watch(scheduler, scheduler.run(self._wanted, shows=True))
            finally:
                scheduler.bus.close()

    def _watch(self, scheduler: Scheduler, run: Run) -> None:
        """One run, until another one is wanted."""
        last_ms = float("-inf")

        def look() -> waits.Look:
            nonlocal last_ms
            _drain(self._bell[0])
            if self._wanted != run.id:
                return waits.Look(True)
            now_ms = scheduler.database.now().monotonic_ms
            if now_ms < last_ms + _LOOK_MS:
                return waits.Look(None, due_monotonic_ms=int(last_ms + _LOOK_MS))
            last_ms = now_ms
            self._say(Looked(scheduler.board(run)))
            return scheduler.board_due(run)

        waits.wait(
            scheduler.database,
            scheduler.board_topics(run),
            look,
            wait_seconds=float("inf"),
            inputs=(self._bell[0],),
        )

    def _look(self) -> None:
        scheduler: Scheduler | None = None
        try:
            while (wanted := self._last_asked()) is not None:
                scheduler = scheduler or self._open(True)
                run, task_id = wanted
                try:
                    self._say(Seen(task_id, detail(scheduler.desk, run, task_id)))
                except InboxOrchError as error:
                    self._say(Seen(task_id, None, error.message))
        finally:
            if scheduler is not None:
                scheduler.bus.close()

    def _last_asked(self) -> tuple[Run, str] | None:
        wanted = self._asked.get()
        while wanted is not None and not self._asked.empty():
            wanted = self._asked.get()
        return wanted

    def _carry_out(self, deed: Deed) -> None:
        try:
            scheduler = self._open(False)
        except InboxOrchError as error:
            self._say(Done(deed, Outcome(error.message, well=False)))
            return
        try:
            self._say(Done(deed, done(deed, scheduler)))
        finally:
            scheduler.bus.close()


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1024):
            pass
    except BlockingIOError:
        return
