"""Following what happens until it is over: the logs of an attempt, the events of a run. Sleeps as
every wait does, never by the clock alone."""

from collections.abc import Generator, Sequence

from inbox_orch.inbox.domain.limits import parse_cursor
from inbox_orch.inbox.services.waiting import visible_events
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.events import Event

from ..attempts import fold, timing
from ..attempts import rows as attempts
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.limits import MAX_WAIT_SECONDS
from ..runs.model import Attempt, Run
from ..views import logs
from ..views.logs import Source

_BATCH = 500


def logs_of(
    desk: Desk, run: Run, attempt: Attempt, *, follow: bool
) -> Generator[tuple[Attempt, list[Source]], None, None]:
    """An attempt as it is now, and what there is to read; with `follow` then what is new, each
    time something is, until the attempt has ended. Errors: those of `logs.sources`."""
    told: set[str] = set()

    def look() -> waits.Look:
        fold.fold_if_writable(desk, run)
        with desk.database.snapshot() as snapshot:
            present = attempts.get(snapshot, attempt.id)
        assert present is not None, "attempts are never removed"
        new = [s for s in logs.sources(desk, run, present) if logs.identity(s) not in told]
        moved = present.thread_id != thread  # to a visit with another, which is to be heard
        if new or moved or not follow or not present.live:
            return waits.Look((present, new))
        return timing.due(desk, run)

    thread = attempt.thread_id
    while True:
        topics = [events.run_topic(run.id)]
        topics += [] if thread is None else [events.thread_topic(thread)]
        seconds = MAX_WAIT_SECONDS if follow else 0
        found = waits.wait(desk.database, topics, look, wait_seconds=seconds)
        if found is None:
            continue
        assert isinstance(found, tuple)
        present, new = found
        thread = present.thread_id
        told.update(map(logs.identity, new))
        yield present, new
        if not follow or not present.live:
            return


def events_of(
    desk: Desk, run: Run, *, after: str | None, kinds: Sequence[str], seconds: float
) -> Generator[tuple[int, list[Event]], None, None]:
    """The events of a run after that of the id `after`, by default from the first, and then for
    `seconds` what comes, until the run is closed: each time up to which number it was looked, and
    those that the caller may see. Error `usage`."""
    seq = 0 if after is None else parse_cursor(after)
    deadline = desk.database.now().monotonic_ms + seconds * 1000
    matching = events.Matching(run_id=run.id, kinds=kinds)

    def look() -> waits.Look:
        fold.fold_if_writable(desk, run)
        with desk.database.snapshot() as snapshot:
            present = runs.get(snapshot, run.id)
            batch = events.after(snapshot, seq, limit=_BATCH, matching=matching)
            shown = visible_events(desk.bus.desk, snapshot, batch, desk.actor(run), ())
            end = events.latest(snapshot)
        over = len(batch) < _BATCH and (present is None or present.state == "closed")
        if batch or over:
            return waits.Look((batch[-1].seq if len(batch) == _BATCH else end, shown, over))
        return timing.due(desk, run)

    over = False
    while not over:
        left = max(0, deadline - desk.database.now().monotonic_ms) / 1000
        found = waits.wait(desk.database, (events.run_topic(run.id),), look, wait_seconds=left)
        if found is None:
            return
        assert isinstance(found, tuple)
        seq, shown, over = found
        yield seq, shown


def keys_of(desk: Desk, run: Run) -> dict[str, str]:
    """The keys of a run's tasks by their ids."""
    with desk.database.snapshot() as snapshot:
        return {task_id: key for key, task_id in tasks.ids_by_key(snapshot, run.id).items()}
