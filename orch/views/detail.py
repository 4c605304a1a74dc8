"""One task seen from near: what `show` tells of it, what it cost, what it has changed, the ends of
what it has left to read. Only looks; what cannot be had now is left out, with the reason."""

from collections.abc import Mapping
from typing import NamedTuple

from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.shared.errors import InboxOrchError

from ..git.diffs import ChangedFile
from ..runs import costs
from ..runs.costs import Cost
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from . import changes, logs, show, stages
from .logs import Log
from .show import TaskShown

MOST_LOGS = 2


class Detail(NamedTuple):
    """A task from near. `costs` are what the workers of its attempts say that they cost, by the
    attempts' ids; `thread` is that of its newest attempt, and `progress` what was last said there
    of how it goes. `files` are what `changed` (`lexer/2`) changes, None where nothing can be
    compared, which `unchanged` then explains; `logs` are the last texts of the newest attempt."""

    shown: TaskShown
    costs: Mapping[str, Cost]
    thread: Thread | None
    progress: Message | None
    changed: str | None
    files: tuple[ChangedFile, ...] | None
    unchanged: str | None
    logs: tuple[Log, ...]

    @property
    def cost(self) -> Cost:
        """Of all attempts."""
        return costs.total(self.costs.values())

    @property
    def attempt(self) -> Attempt | None:
        """The newest."""
        return self.shown.attempts[-1] if self.shown.attempts else None


def detail(desk: Desk, run: Run, name: str) -> Detail:
    """A task by its key or id. Error `not_found`."""
    shown = show.show_task(desk, run, name)
    newest = shown.attempts[-1] if shown.attempts else None
    thread = _thread(desk, newest)
    progress = None if thread is None else desk.bus.last_message(thread.id, "progress")
    changed, files, unchanged = _changes(desk, run, shown)
    return Detail(
        shown,
        _costs(desk, shown),
        thread,
        progress,
        changed,
        files,
        unchanged,
        () if newest is None else _logs(desk, run, newest),
    )


def _thread(desk: Desk, attempt: Attempt | None) -> Thread | None:
    """None, too, while it is sealed, as a reviewer's is."""
    if attempt is None or attempt.thread_id is None:
        return None
    thread = desk.bus.threads([attempt.thread_id])[attempt.thread_id]
    return None if thread.sealed else thread


def _costs(desk: Desk, shown: TaskShown) -> dict[str, Cost]:
    """Of the results: a worker's failure says nothing of it. Of what goes by a blueprint that of
    all visits."""
    said = {name: work.message for name, work in shown.works.items() if name not in shown.visits}
    found = {
        name: costs.cost_in(message.payload)
        for name, message in said.items()
        if message is not None
    }
    found |= {name: stages.cost_of(visits) for name, visits in shown.visits.items()}
    return {name: cost for name, cost in found.items() if cost is not None}


def _changes(
    desk: Desk, run: Run, shown: TaskShown
) -> tuple[str | None, tuple[ChangedFile, ...] | None, str | None]:
    if not shown.attempts or run.repository is None:
        return None, None, None
    try:
        _, found = changes.changes(desk, shown.standing.task.id, run.id)
        return found.listed.name, tuple(found.files()), None
    except InboxOrchError as error:
        return None, None, error.message


def _logs(desk: Desk, run: Run, attempt: Attempt) -> tuple[Log, ...]:
    try:
        found = logs.sources(desk, run, attempt)[-MOST_LOGS:]
        return tuple(logs.read(desk, run, source) for source in found)
    except InboxOrchError:  # a reviewer's thread that is sealed to the caller
        return ()
