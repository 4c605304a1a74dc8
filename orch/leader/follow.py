"""Following what happens until it is over: the logs of an attempt, the events of a run. Sleeps as
every wait does, never by the clock alone."""

from collections.abc import Generator

from inbox_orch.shared.store import events, waits

from ..attempts import fold, timing
from ..attempts import rows as attempts
from ..runs.desk import Desk
from ..runs.limits import MAX_WAIT_SECONDS
from ..runs.model import Attempt, Run
from ..views import logs
from ..views.logs import Source


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
        if new or not follow or not present.live:
            return waits.Look((present, new))
        return timing.due(desk, run)

    thread = attempt.thread_id
    topics = [events.run_topic(run.id), *([] if thread is None else [events.thread_topic(thread)])]
    while True:
        seconds = MAX_WAIT_SECONDS if follow else 0
        found = waits.wait(desk.database, topics, look, wait_seconds=seconds)
        if found is None:
            continue
        assert isinstance(found, tuple)
        present, new = found
        told.update(map(logs.identity, new))
        yield present, new
        if not follow or not present.live:
            return
