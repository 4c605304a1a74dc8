"""What became of a run, in one value: tasks, attempts, questions, changes, what it cost.

Reads only, but for folding in what happened on the bus. How it looks is the affair of
`orch/pictures`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError

from ..attempts import fold, moving, verify
from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..git import diffs
from ..git.diffs import ChangedFile
from ..runs import costs
from ..runs import run_rows as runs
from ..runs.costs import Cost
from ..runs.desk import Desk
from ..runs.model import WISHES, Attempt, Run
from ..runs.readiness import Picture, Standing
from . import patches, stages
from .needs import first_needed, way_out, what_it_needs
from .patches import Listed
from .work import Work, as_json, works_of

if TYPE_CHECKING:
    from ..stages.decide import Decision


class Changed(NamedTuple):
    """How much one commit changes against another; lines of text files alone."""

    files: int
    added_lines: int
    removed_lines: int


class Told(NamedTuple):
    """One attempt: the `files` that it changed against its base (None where there is no commit, or
    git does not have it any more), what its workers say that it cost; and its `visits`, where it
    goes by a blueprint."""

    key: str
    attempt: Attempt
    end_ms: int
    files: tuple[ChangedFile, ...] | None
    cost: Cost | None
    work: Work | None = None
    visits: tuple[Visit, ...] = ()

    @property
    def unverified(self) -> str | None:
        """Why accepted work was not judged as it should have been, in words."""
        return attempts.details_of(self.attempt).unverified if self.attempt.staged else None

    @property
    def ignored(self) -> str | None:
        """What its gates saw that is not in its commit, in words."""
        return attempts.details_of(self.attempt).ignored if self.attempt.staged else None

    @property
    def decisions(self) -> tuple[Visit, ...]:
        """The visits in which somebody was asked to decide."""
        return tuple(visit for visit in self.visits if visit.kind == "decision")

    @property
    def changed(self) -> Changed | None:
        """How much it changed."""
        if self.files is None:
            return None
        added = sum(file.added or 0 for file in self.files)
        return Changed(len(self.files), added, sum(file.removed or 0 for file in self.files))

    @property
    def commits_are_gone(self) -> bool:
        """Whether it had commits that cannot be looked at any more."""
        return self.files is None and _span(self.attempt) is not None

    @property
    def seconds(self) -> float:
        """How long it took, or has taken up to now."""
        return (self.end_ms - self.attempt.created_at) / 1000

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
            "seconds": self.seconds,
            "commits": self.attempt.commits_ahead,
            "changed": None if self.changed is None else self.changed._asdict(),
            "cost": None if self.cost is None else self.cost.as_json(),
            "work": as_json(self.work),
            **self._staged(),
        }

    def _staged(self) -> dict[str, Any]:
        if not self.attempt.staged:
            return {}
        return {"visits": stages.as_json(self.visits), "unverified": self.unverified}


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


class Need(NamedTuple):
    """A task that goes no further without somebody: `why`, what to do about it, and the question of
    its worker, if it has put one."""

    standing: Standing
    why: str
    way_out: str | None
    exchange: Exchange | None


class Result(NamedTuple):
    """A task that has succeeded; `told` is the attempt that was accepted, if it is told of."""

    standing: Standing
    told: Told | None


class Report(NamedTuple):
    """A run as a whole. `left_out` older attempts are not among those told; `obstacle` is why
    submitted work cannot be looked at now. `decisions` are those that are open, by the ids of their
    tasks; `by_do`: `orch do` has opened the run; `patches` are those of the attempts told of that
    wait, are refused, or were taken back."""

    run: Run
    picture: Picture
    told: tuple[Told, ...]
    exchanges: tuple[Exchange, ...]
    left_out: int
    now_ms: int
    stale: bool
    obstacle: str | None = None
    decisions: Mapping[str, "Decision"] = {}
    by_do: bool = False
    patches: tuple[Listed, ...] = ()

    @property
    def heading(self) -> str:
        return f"{self.run.title} ({self.run.name}): {self.picture.outcome}"

    @property
    def needs(self) -> tuple[Need, ...]:
        """The tasks that go no further without somebody, the most urgent first. In a closed run
        nothing can be done about them as it is."""
        asked = {e.name.rpartition("/")[0]: e for e in self.exchanges if e.answer is None}
        is_closed = self.run.state == "closed"
        found = []
        for standing in sorted(self.picture.standings, key=lambda s: first_needed(s.state)):
            decision = self.decisions.get(standing.task.id)
            why = what_it_needs(standing, decision)
            if why is not None:
                name = self.run.name
                out = None if is_closed else way_out(standing, name, decision, by_do=self.by_do)
                question = asked.get(standing.task.key) if standing.state == "blocked" else None
                found.append(Need(standing, why, out, question))
        return tuple(found)

    @property
    def results(self) -> tuple[Result, ...]:
        """The tasks that have succeeded, in the order of their making."""
        told = {each.attempt.id: each for each in self.told}
        return tuple(
            Result(standing, told.get(str(standing.task.accepted_attempt)))
            for standing in self.picture.standings
            if standing.state == "succeeded"
        )

    @property
    def others(self) -> tuple[Told, ...]:
        """The attempts that are told of and are no task's result, in the order of their tasks."""
        accepted = {each.told.attempt.id for each in self.results if each.told is not None}
        rest = (told for told in self.told if told.attempt.id not in accepted)
        numbers = {s.task.id: s.task.number for s in self.picture.standings}
        return tuple(
            sorted(rest, key=lambda told: (numbers[told.attempt.task_id], told.attempt.number))
        )

    @property
    def asked(self) -> tuple[tuple[str, Visit], ...]:
        """Every decision that was asked for, answered or open, with the name of its attempt."""
        return tuple((told.name, visit) for told in self.told for visit in told.decisions)

    @property
    def staged(self) -> bool:
        """Whether any of the attempts that are told of goes by a blueprint."""
        return any(told.attempt.staged for told in self.told)

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
            "needs": [need.standing.task.key for need in self.needs],
            "questions": [exchange.as_json() for exchange in self.exchanges],
            "cost": self.cost.as_json(),
            "stale": self.stale,
            **({"decisions": self._asked()} if self.staged else {}),
            **({"patches": patches.as_json(self.patches)} if self.patches else {}),
        }

    def _asked(self) -> list[dict[str, Any]]:
        return [{"name": name, "visit": stages.as_json([visit])[0]} for name, visit in self.asked]


def report(desk: Desk, run: Run, *, most: int) -> Report:
    """A run with its newest `most` attempts. What git cannot tell any more is left out."""
    stale = fold.fold_if_writable(desk, run)
    now_ms = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, now_ms)
        every = attempts.of_run(snapshot, run.id)
        shown = every[-most:]
        visits = stages.visits_of(snapshot, shown)
        decisions = stages.decisions_in(snapshot, every)
        by_do = runs.asked_by_key(snapshot, run, WISHES)
        held_up = patches.held_up(snapshot, run)
    files, works = _files_of(desk, picture.run, shown), works_of(desk, shown)
    worked_on = {a.id: stages.threads_of(visits, a) for a in shown}
    threads = desk.bus.threads([name for names in worked_on.values() for name in names])
    told, exchanges = [], []
    for attempt in shown:
        own = [threads[name] for name in worked_on[attempt.id]]
        messages = [message for thread in own for message in _messages_of(desk, thread)]
        span, one = _span(attempt), _attempt_told(picture, attempt, messages, now_ms)
        changed = None if span is None else files.get(span)
        if attempt.id in visits:
            seen = visits[attempt.id]
            one = one._replace(visits=seen, cost=stages.cost_of(seen))
        told.append(one._replace(work=works.get(attempt.id), files=changed))
        exchanges += _exchanges(told[-1].name, messages)
    exchanges.sort(key=lambda exchange: exchange.question.id)
    obstacle, left_out = _obstacle(desk, picture.run), len(every) - len(shown)
    return Report(
        picture.run,
        picture,
        tuple(told),
        tuple(exchanges),
        left_out,
        now_ms,
        stale,
        obstacle,
        decisions,
        by_do,
        tuple(each for each in held_up if each.where.attempt_id in worked_on),
    )


def _obstacle(desk: Desk, run: Run) -> str | None:
    try:
        return verify.obstacle(desk, run)
    except InboxOrchError as error:
        return error.message


def _span(attempt: Attempt) -> tuple[str, str] | None:
    """The base and the last commit of an attempt; None without them."""
    if attempt.head_commit is None or attempt.base_commit is None:
        return None
    return attempt.base_commit, attempt.head_commit


def _files_of(
    desk: Desk, run: Run, shown: Sequence[Attempt]
) -> Mapping[tuple[str, str], tuple[ChangedFile, ...]]:
    """What the attempts have changed, as far as it is there."""
    try:
        repository = desk.repository(run)
    except InboxOrchError:
        return {}
    spans = {span for attempt in shown if (span := _span(attempt)) is not None}
    return diffs.files_between(repository, spans)


def _messages_of(desk: Desk, thread: Thread) -> Sequence[Message]:
    """Of a thread; none while that is sealed, as a reviewer's is."""
    return () if thread.sealed else desk.bus.messages(thread.id)


def _attempt_told(
    picture: Picture, attempt: Attempt, messages: Sequence[Message], now_ms: int
) -> Told:
    results = [message for message in messages if message.kind == "result"]
    end_ms = max(now_ms if attempt.ended_at is None else attempt.ended_at, attempt.created_at)
    return Told(
        picture.of(attempt.task_id).task.key,
        attempt,
        end_ms,
        None,
        costs.cost_in(results[-1].payload) if results else None,
    )


def _exchanges(name: str, messages: Sequence[Message]) -> list[Exchange]:
    answers = {message.answers: message for message in messages if message.answers is not None}
    return [
        Exchange(name, message, answers.get(message.id))
        for message in messages
        if message.kind == "question"
    ]
