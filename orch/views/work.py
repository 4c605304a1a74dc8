"""Who has worked on attempts, how often they were handed out, what was said last. Only looks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.shared.clock import rfc3339

from ..attempts import visit_rows
from ..attempts.visits import Visit
from ..patches.hiding import hidden
from ..runs.desk import Desk
from ..runs.model import Attempt
from . import stages

_LAST_WORDS = ("result", "failure")
_SHOWN = ("kind", "sender", "created_at", "body", "body_truncated")


class Work(NamedTuple):
    """The work on an attempt. `workers` are all who ever held it, in order; `lost_leases` how many
    leases have run out; `message` the last result or failure; `changed_at` when it last changed,
    clean-up left aside (wall-clock milliseconds). Where it goes by a blueprint, `authors` are those
    who have written it, in order, `holder` is who has it now, and `message` an author's."""

    workers: tuple[str, ...]
    deliveries: int
    lost_leases: int
    message: Message | None
    changed_at: int
    authors: tuple[str, ...] | None = None
    holder: str | None = None

    @property
    def worker(self) -> str | None:
        """Who holds it, or did last; by a blueprint, who holds it, or else has written it."""
        names = self.authors or self.workers
        return self.holder or (names[-1] if names else None)

    @property
    def words(self) -> str | None:
        """The worker, and whose work it has gone on with."""
        names = self.workers if self.authors is None else self.authors
        before = [name for name in names if name != self.worker]
        return f"{self.worker}, after {', '.join(before)}" if before else self.worker

    @property
    def last_words(self) -> str | None:
        """What was said last, on one line of at most 200 characters."""
        if self.message is None or self.message.body is None:
            return None
        line = " ".join(hidden(self.message.body[:1000]).split())
        return line if len(line) <= 200 else line[:199] + "…"

    def as_json(self) -> dict[str, Any]:
        said = None if self.message is None else self.message.as_json()
        return {
            "worker": self.worker,
            "workers": list(self.workers),
            "deliveries": self.deliveries,
            "lost_leases": self.lost_leases,
            "message": None if said is None else {name: said[name] for name in _SHOWN},
            "changed_at": rfc3339(self.changed_at),
        }


def as_json(work: Work | None) -> dict[str, Any] | None:
    """What JSON has of the work on an attempt; null for one that was never handed out."""
    return None if work is None else work.as_json()


def works_of(desk: Desk, attempts: Iterable[Attempt]) -> dict[str, Work]:
    """The work on those of the attempts that have a thread, by their ids: on all threads of an
    attempt, but for those on which somebody decides."""
    with_thread = {a.id: a for a in attempts if a.thread_id is not None}
    visited = _visits_of(desk, with_thread.values())
    worked_on = {a.id: stages.threads_of(visited, a) for a in with_thread.values()}
    wanted = [name for names in worked_on.values() for name in names]
    threads, holders = desk.bus.threads(wanted), desk.bus.holders(wanted)
    found = {}
    for attempt in with_thread.values():
        own = [threads[name] for name in worked_on[attempt.id]]
        held = [holders[thread.id] for thread in own if thread.id in holders]
        every = [name for each in held for name in each.names]
        names = tuple(dict.fromkeys(reversed(every)))[::-1]
        written = stages.written_in(visited.get(attempt.id, ()))
        work = Work(
            names,
            sum(thread.deliveries for thread in own),
            sum(each.lost for each in held),
            _newest(desk, _written_on(own, written)) or _newest(desk, own),
            changed_at(attempt),
        )
        found[attempt.id] = _with_authors(work, own, written) if attempt.staged else work
    return found


def _visits_of(desk: Desk, attempts: Iterable[Attempt]) -> dict[str, list[Visit]]:
    """The visits of those of the attempts that go by a blueprint, by their ids."""
    staged = [attempt.id for attempt in attempts if attempt.staged]
    if not staged:
        return {}
    with desk.database.snapshot() as snapshot:
        return visit_rows.briefly_of(snapshot, staged)


def _with_authors(work: Work, own: Sequence[Thread], written: Sequence[Visit]) -> Work:
    every = [visit.worker for visit in written if visit.worker]
    authors = tuple(dict.fromkeys(reversed(every)))[::-1]
    holder = next((thread.holder for thread in own if thread.holder is not None), None)
    return work._replace(authors=authors, holder=holder)


def _written_on(own: Sequence[Thread], written: Sequence[Visit]) -> list[Thread]:
    """Those of the threads on which the work was written."""
    names = {visit.thread_id for visit in written}
    return [thread for thread in own if thread.id in names]


def _newest(desk: Desk, threads: Sequence[Thread]) -> Message | None:
    """What was said last on any of the threads."""
    said = [message for thread in threads if (message := _said_last(desk, thread)) is not None]
    return max(said, key=lambda message: message.id, default=None)


def changed_at(attempt: Attempt) -> int:
    """When an attempt last changed, in wall-clock milliseconds: that its worktree was taken away
    or its work integrated is no change of it."""
    return attempt.updated_at if attempt.ended_at is None else attempt.ended_at


def workers_of(desk: Desk, threads: Mapping[str, Thread]) -> dict[str, str]:
    """Who holds each of the threads, or, of one that is over, held it last."""
    over = [t.id for t in threads.values() if t.finished_at is not None and t.epoch]
    found = {t.id: t.holder for t in threads.values() if t.holder is not None}
    held = desk.bus.holders(over) if over else {}
    return {**{name: each.names[-1] for name, each in held.items()}, **found}


def _said_last(desk: Desk, thread: Thread) -> Message | None:
    """None while the thread is sealed, as a reviewer's is."""
    if thread.sealed:
        return None
    said = [desk.bus.last_message(thread.id, kind) for kind in _LAST_WORDS]
    return max((m for m in said if m is not None), key=lambda m: m.id, default=None)
