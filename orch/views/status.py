"""How a run stands, for people and programs: status, what is ready, what is blocked."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import fold, moving, verify
from ..attempts import rows as attempts
from ..attempts.visits import OPERATOR
from ..runs import readiness
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.readiness import Standing
from . import stages, work
from .needs import first_needed, what_it_needs
from .stages import Place

if TYPE_CHECKING:
    from ..stages.decide import Answered, Decision

_INTEREST = (
    "blocked",
    "failed",
    "base_conflict",
    "active",
    "unreachable",
    "backing_off",
    "ready",
    "waiting",
    "cancelled",
    "skipped",
    "succeeded",
)
"""Standings, those first that a leader wants to see first."""

OVER_WELL = ("succeeded", "skipped", "cancelled")
"""Standings of tasks of which a brief status has only the number."""

_MOST_WHY = 200
"""Characters of a reason in a brief status."""

_MOST_PACKET_BYTES = 1024
"""Of what there is to know before a decision, so much stands in a list."""


class Question(NamedTuple):
    """A worker's open question; or, with what may be answered, a decision that a blueprint asks
    somebody for."""

    task: Task
    attempt: Attempt
    thread: Thread
    message: Message
    decision: "Decision | None" = None

    @property
    def options(self) -> tuple[str, ...]:
        """What may be answered; empty where any text will do."""
        return self.message.options if self.decision is None else self.decision.answers

    def as_json(self, *, whole: bool = False) -> dict[str, Any]:
        """As it stands in a list: of what there is to know before a decision the beginning. With
        `whole`, all of that."""
        decision = {} if self.decision is None else {"decision": self._decision(self.decision)}
        return {
            "task": self.task.id,
            "key": self.task.key,
            "attempt": self.attempt.id,
            "number": self.attempt.number,
            "thread": self.thread.id,
            "asked_by": self.message.sender,
            "message": self._message(whole),
            "deadline": rfc3339(self.message.deadline),
            **decision,
        }

    def _message(self, whole: bool) -> dict[str, Any]:
        if self.decision is None or whole:
            return self.message.as_json(full=self.decision is not None)
        said = self.message.as_json()
        begun = str(said["body"] or "").encode()[:_MOST_PACKET_BYTES].decode("utf-8", "ignore")
        truncated = said["body_truncated"] or begun != said["body"]
        return {**said, "body": begun, "body_truncated": truncated, "payload": None}

    def _decision(self, decision: "Decision") -> dict[str, Any]:
        return {**decision.as_json(), "meanings": stages.meanings_of(decision)}


class Row(NamedTuple):
    """One task in the status: how it stands, its newest attempt, that one's thread, and who is at
    work on it, or was when it ended; by a blueprint, who wrote it, where nobody is at it. `place`
    is where the attempt is in its blueprint, None without one."""

    standing: Standing
    attempt: Attempt | None
    thread: Thread | None
    worker: str | None = None
    place: Place | None = None

    @property
    def needs(self) -> str | None:
        """What keeps it from going on without somebody, in words."""
        return what_it_needs(self.standing, None if self.place is None else self.place.decision)

    @property
    def unverified(self) -> str | None:
        """Why the work that was accepted was not judged as it should have been, in words."""
        attempt = self.attempt
        if attempt is None or not attempt.staged or attempt.state != "succeeded":
            return None
        return attempts.details_of(attempt).unverified

    def as_json(self) -> dict[str, Any]:
        return {
            **self.standing.as_json(),
            "attempt": None if self.attempt is None else self.attempt.as_json(),
            "holder": None if self.thread is None else self.thread.holder,
            "progress": None if self.thread is None else self.thread.progress,
            "worker": self.worker,
            **self._place(),
        }

    def _place(self) -> dict[str, Any]:
        return {} if self.place is None else self.place.as_json()

    def brief_json(self) -> dict[str, Any]:
        """What has to be known of it to decide what to do."""
        needs = self.needs
        return {
            "key": self.standing.task.key,
            "standing": self.standing.state,
            "attempts": self.standing.task.attempts,
            "holder": None if self.thread is None else self.thread.holder,
            "progress": None if self.thread is None else self.thread.progress,
            "why": None if needs is None else needs[:_MOST_WHY],
            **self._place(),
        }


class Status(NamedTuple):
    """A run with all of its tasks. `stale`: what happened on the bus could not be folded in,
    because the database cannot be written here. `obstacle` is why submitted work cannot be
    looked at now. `left_out`: how many tasks that are not among the rows stand how; `unasked`: how
    many of those that were not asked for."""

    run: Run
    outcome: str
    rows: tuple[Row, ...]
    stale: bool
    obstacle: str | None
    next_cursor: str
    now_ms: int
    left_out: Mapping[str, int] = {}
    unasked: Mapping[str, int] = {}

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks stand how, those that are left out too."""
        counts = Counter(row.standing.state for row in self.rows)
        counts.update(self.left_out)
        counts.update(self.unasked)
        return dict(counts)

    @property
    def by_need(self) -> tuple[Row, ...]:
        """The rows, those first that go no further without somebody."""
        return tuple(sorted(self.rows, key=lambda row: first_needed(row.standing.state)))

    def only(self, wanted: Collection[str]) -> "Status":
        """The tasks that stand so; the counts stay those of all."""
        rows = tuple(row for row in self.rows if row.standing.state in wanted)
        others = Counter(
            row.standing.state for row in self.rows if row.standing.state not in wanted
        )
        return self._replace(rows=rows, unasked=others)

    def limited(self, most: int) -> "Status":
        """At most so many rows, in the order of their making: first of all the tasks that need
        attention, then those in hand, those that come next, and those that are settled."""
        if len(self.rows) <= most:
            return self
        by_interest = sorted(self.rows, key=lambda row: _INTEREST.index(row.standing.state))
        kept = sorted(by_interest[:most], key=lambda row: row.standing.task.number)
        left_out = Counter(row.standing.state for row in by_interest[most:])
        return self._replace(rows=tuple(kept), left_out=left_out)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "outcome": self.outcome,
            "counts": self.counts,
            "items": [row.as_json() for row in self.rows],
            "needs": [s.task.key for s in self._needy()],
            "truncated": bool(self.left_out),
            "next_cursor": self.next_cursor,
            "stale": self.stale,
            "obstacle": self.obstacle,
        }

    def brief_json(self) -> dict[str, Any]:
        """The same as a few words for each task, those first that need somebody."""
        return {
            "run": self.run.name,
            "outcome": self.outcome,
            "counts": self.counts,
            "items": [row.brief_json() for row in self.by_need],
            "needs": [s.task.key for s in self._needy()],
            "truncated": bool(self.left_out),
            "next_cursor": self.next_cursor,
            "stale": self.stale,
            "obstacle": self.obstacle,
        }

    def _needy(self) -> Iterator[Standing]:
        return (r.standing for r in self.by_need if what_it_needs(r.standing) is not None)


class Ready(NamedTuple):
    """What can be dispatched, and what could be if the work it depends on merged. `stale`: what
    happened on the bus could not be folded in."""

    items: tuple[Standing, ...]
    base_conflicts: tuple[Standing, ...]
    stale: bool
    left_out: int = 0

    def limited(self, most: int) -> "Ready":
        """The first of them."""
        return self._replace(items=self.items[:most], left_out=max(0, len(self.items) - most))

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [standing.as_json() for standing in self.items],
            "truncated": self.left_out > 0,
            "next_cursor": None,
            "base_conflicts": [
                {"task": s.task.id, "key": s.task.key, "paths": list(s.conflict_paths)}
                for s in self.base_conflicts
            ],
            "stale": self.stale,
        }


def status(desk: Desk, run: Run) -> Status:
    """Every task of a run, after folding in what the bus says."""
    stale = fold.fold_if_writable(desk, run)
    now_ms = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        run = runs.get(snapshot, run.id) or run
        picture = moving.picture(desk, snapshot, run, now_ms)
        newest = attempts.latest_by_task(snapshot, run.id)
        wanted = [str(a.thread_id) for a in newest.values() if a.thread_id is not None]
        threads = desk.bus.threads(wanted)
        cursor = str(events.latest(snapshot))
        workers = work.workers_of(desk, threads)
        places = stages.places_of(snapshot, newest.values())
    rows = tuple(
        _row(standing, newest.get(standing.task.id), threads, workers, places)
        for standing in picture.standings
    )
    return Status(run, picture.outcome, rows, stale, verify.obstacle(desk, run), cursor, now_ms)


def _row(
    standing: Standing,
    attempt: Attempt | None,
    threads: Mapping[str, Thread],
    workers: Mapping[str, str],
    places: Mapping[str, Place],
) -> Row:
    thread = None if attempt is None else threads.get(str(attempt.thread_id))
    place = None if attempt is None else places.get(attempt.id)
    # What is to be tried again is nobody's for now.
    ended = thread is None or standing.task.state == "pending"
    worker = None if ended or thread is None else workers.get(thread.id)
    if place is not None and thread is not None and not ended:
        now = None if _is_decided_on(thread) else thread.holder
        worker = now or place.author or worker
    return Row(standing, attempt, thread, worker, place)


def _is_decided_on(thread: Thread) -> bool:
    """Whether somebody decides there, or has decided, instead of working."""
    return thread.mailbox == OPERATOR


def ready(desk: Desk, run: Run) -> Ready:
    """The tasks that `dispatch` would take, in its order, and those that only lack a base."""
    stale = fold.fold_if_writable(desk, run)
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
    order = readiness.dispatch_order(picture.standings, picture.dependencies)
    return Ready(
        tuple(picture.of(task.id) for task in order),
        tuple(s for s in picture.standings if s.state == "base_conflict"),
        stale,
    )


def questions(desk: Desk, run: Run) -> list[Question]:
    """The open questions of a run, oldest first."""
    with desk.database.snapshot() as snapshot:
        blocked = [
            (a, tasks.by_id(snapshot, a.task_id))
            for a in attempts.live_of_run(snapshot, run.id)
            if a.state == "blocked" and a.thread_id is not None
        ]
        threads = desk.bus.threads([str(a.thread_id) for a, _ in blocked])
        found: list[Question] = []
        for attempt, task in blocked:
            thread = threads[str(attempt.thread_id)]
            if attempt.deciding:
                found += _decision(desk, snapshot, task, attempt, thread)
                continue
            asked = None if thread.question is None else desk.bus.message(thread.question)
            if asked is not None:
                found.append(Question(task, attempt, thread, asked))
    return sorted(found, key=lambda q: q.message.id)


def _decision(
    desk: Desk, tx: Session, task: Task, attempt: Attempt, thread: Thread
) -> Iterator[Question]:
    """The open decision of an attempt that waits for one."""
    from ..stages import decide

    asked = desk.bus.messages(thread.id)
    decision = decide.open_in(tx, attempt)
    if decision is not None and asked:
        yield Question(task, attempt, thread, asked[0], decision)


def answer(
    desk: Desk,
    run: Run,
    task_name: str,
    *,
    body: str,
    key: str | None = None,
    decided: "Answered | None" = None,
) -> dict[str, Any]:
    """Answer the open question of a task's worker; with `decided`, settle the decision that its
    blueprint asks for.

    Errors: `usage`, `not_found`, `invalid_state` (no question, or no decision, is open, or the
    leader itself has put it), `policy_denied`, `key_conflict`. Raises `Refused` for a plan of parts
    that cannot be taken in.
    """
    fold.fold(desk, run)
    actor = desk.actor(run)
    with desk.database.transaction() as tx:
        task = desk.task(tx, run, task_name)
        said = {} if decided is None else {"decided": decided.as_request()}
        digest = digest_of({"run": run.id, "task": task.id, "body": body, **said})
        earlier = desk.replay(tx, "answer", actor, key, digest)
        if earlier is not None:
            return earlier.as_json()
        attempt = attempts.live_of_task(tx, task.id)
        if decided is not None or (attempt is not None and attempt.deciding):
            settled = _settle(desk, tx, run, task, decided)
            data = {"task": task.id, "key": task.key, **settled}
            return desk.remember(tx, "answer", actor, key, digest, data).as_json()
        thread = _asking(desk, tx, task)
        written = desk.bus.reply(thread, body=body, agent=run.leader)
        if not written.answered:
            # A reply by the asker answers nothing: raising takes it back.
            raise InboxOrchError(
                "invalid_state",
                f"the question of task {task.key} was put by the run's leader",
                hint=f"orch answers as {run.leader} too; "
                f"inbox reply {thread} --agent NAME --body TEXT",
                details={"task": task.id, "key": task.key, "thread": thread},
            )
        data = {"task": task.id, "key": task.key, **written.as_json()}
        answer = desk.remember(tx, "answer", actor, key, digest, data)
    fold.fold(desk, run)
    return answer.as_json()


def _settle(
    desk: Desk, tx: Transaction, run: Run, task: Task, decided: "Answered | None"
) -> dict[str, Any]:
    """Settle the open decision of a task. Errors: `usage` (it is not said how), `invalid_state`."""
    from ..stages import decide

    attempt = attempts.live_of_task(tx, task.id)
    decision = None if attempt is None else decide.open_in(tx, attempt)
    if attempt is None or decision is None:
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} is {task.state}: it waits for no decision",
            hint="`orch blocked` lists what is open",
            details={"task": task.id, "key": task.key, "state": task.state},
        )
    if decided is None:
        raise usage(
            f"task {task.key} waits for a decision, not for a text",
            hint=f"add --decide with one of: {', '.join(decision.answers)}",
        )
    return decide.answer(desk, tx, run, attempt, decided)


def _asking(desk: Desk, tx: Transaction, task: Task) -> str:
    """The thread of the task's open question; error `invalid_state`."""
    attempt = attempts.live_of_task(tx, task.id)
    if attempt is not None and attempt.state == "blocked":
        thread = str(attempt.thread_id)
        # Another leader, or the question's deadline, may have been quicker than the folding.
        if desk.bus.threads([thread])[thread].state == "blocked":
            return thread
    raise InboxOrchError(
        "invalid_state",
        f"task {task.key} is {task.state}: no question of it is open",
        hint="`orch blocked` lists the open questions",
        details={"task": task.id, "key": task.key, "state": task.state},
    )
