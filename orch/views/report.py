"""What became of a run, in one value: tasks, attempts, questions, changes, what it cost.

Reads only, but for folding in what happened on the bus. How it looks is the affair of
`orch/pictures`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Message
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError

from ..attempts import fold, moving
from ..attempts import rows as attempts
from ..git.repository import Changed, Repository
from ..runs import costs
from ..runs.costs import Cost
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..runs.readiness import Picture
from .work import Work, as_json, works_of


class Told(NamedTuple):
    """One attempt: what it changed against its base, what its worker says that it cost."""

    key: str
    attempt: Attempt
    end_ms: int
    changed: Changed | None
    cost: Cost | None
    work: Work | None = None

    @property
    def harvested(self) -> attempts.Harvested | None:
        """What was committed for its worker, if anything was."""
        return attempts.details_of(self.attempt).harvested

    @property
    def name(self) -> str:
        """`lexer/2`."""
        return f"{self.key}/{self.attempt.number}"

    def as_json(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt.id,
            "task": self.attempt.task_id,
            "key": self.key,
            "number": self.attempt.number,
            "state": self.attempt.state,
            "reason": self.attempt.reason,
            "begin": rfc3339(self.attempt.created_at),
            "end": rfc3339(self.attempt.ended_at),
            "seconds": (self.end_ms - self.attempt.created_at) / 1000,
            "commits": self.attempt.commits_ahead,
            "changed": None if self.changed is None else self.changed._asdict(),
            "cost": None if self.cost is None else self.cost.as_json(),
            "work": as_json(self.work),
        }


class Exchange(NamedTuple):
    """A worker's question, and what ended it: an answer, or its deadline."""

    name: str
    question: Message
    answer: Message | None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question.as_json(),
            "answer": None if self.answer is None else self.answer.as_json(),
        }


class Report(NamedTuple):
    """A run as a whole. `left_out` older attempts are not among those told."""

    run: Run
    picture: Picture
    told: tuple[Told, ...]
    exchanges: tuple[Exchange, ...]
    left_out: int
    now_ms: int
    stale: bool

    @property
    def heading(self) -> str:
        return f"{self.run.title} ({self.run.name}): {self.picture.outcome}"

    @property
    def cost(self) -> Cost:
        """Of all attempts that are told of."""
        return costs.total(told.cost for told in self.told if told.cost is not None)

    @property
    def counts(self) -> dict[str, int]:
        """How many tasks stand how."""
        found: dict[str, int] = {}
        for standing in self.picture.standings:
            found[standing.state] = found.get(standing.state, 0) + 1
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "outcome": self.picture.outcome,
            "counts": self.counts,
            "items": [told.as_json() for told in self.told],
            "truncated": self.left_out > 0,
            "next_cursor": None,
            "questions": [exchange.as_json() for exchange in self.exchanges],
            "cost": self.cost.as_json(),
            "stale": self.stale,
        }


def report(desk: Desk, run: Run, *, most: int) -> Report:
    """A run with its newest `most` attempts. What git cannot tell any more is left out."""
    stale = fold.fold_if_writable(desk, run)
    now_ms = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, now_ms)
        every = attempts.of_run(snapshot, run.id)
    shown = every[-most:]
    repository = _repository_if_there(desk, picture.run)
    works = works_of(desk, shown)
    told, exchanges = [], []
    for attempt in shown:
        messages = _messages_of(desk, attempt)
        one = _attempt_told(picture, attempt, messages, repository, now_ms)
        told.append(one._replace(work=works.get(attempt.id)))
        exchanges += _exchanges(told[-1].name, messages)
    exchanges.sort(key=lambda exchange: exchange.question.id)
    left_out = len(every) - len(shown)
    return Report(picture.run, picture, tuple(told), tuple(exchanges), left_out, now_ms, stale)


def _repository_if_there(desk: Desk, run: Run) -> Repository | None:
    try:
        return desk.repository(run)
    except InboxOrchError:
        return None


def _messages_of(desk: Desk, attempt: Attempt) -> Sequence[Message]:
    """Of its thread; none while that is sealed, as a reviewer's is."""
    if attempt.thread_id is None:
        return ()
    thread = desk.bus.threads([attempt.thread_id])[attempt.thread_id]
    return () if thread.sealed else desk.bus.messages(thread.id)


def _attempt_told(
    picture: Picture,
    attempt: Attempt,
    messages: Sequence[Message],
    repository: Repository | None,
    now_ms: int,
) -> Told:
    changed = None
    if repository is not None and attempt.head_commit and attempt.base_commit:
        changed = repository.changed(attempt.head_commit, attempt.base_commit)
    results = [message for message in messages if message.kind == "result"]
    end_ms = max(now_ms if attempt.ended_at is None else attempt.ended_at, attempt.created_at)
    return Told(
        picture.of(attempt.task_id).task.key,
        attempt,
        end_ms,
        changed,
        costs.cost_in(results[-1].payload) if results else None,
    )


def _exchanges(name: str, messages: Sequence[Message]) -> list[Exchange]:
    answers = {message.answers: message for message in messages if message.answers is not None}
    return [
        Exchange(name, message, answers.get(message.id))
        for message in messages
        if message.kind == "question"
    ]
