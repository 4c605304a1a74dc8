"""The trace of a run, and how much of it has been exported: a cursor, as that of a reader.

It moves after the collector has taken the spans, so that none is lost when the process is killed
in between; they are exported once more then, under the same ids. Knows nothing of the protocol.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.inbox.services.waiting import visible_events
from inbox_orch.shared.store import events
from inbox_orch.shared.store.events import Event
from inbox_orch.shared.store.gate import Gate

from ..attempts import fold
from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..patches.hiding import hidden
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.costs import cost_in
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from ..views import spans, stages, work
from ..views.spans import Folded, Happened, Span

READER = "_otel"
"""Whose cursor says what has been exported; no agent can be called so."""

_BATCH = 2000
_MOST_SPANS = 512
_MOST_LETTERS = 300


class Trace(NamedTuple):
    """What is to be exported of a run: the spans that have ended since the last export, sums over
    the whole run by metric and attribute, and up to which event."""

    run: Run
    id: str
    spans: tuple[Span, ...]
    sums: Mapping[tuple[str, str, str], int]
    position: int
    now_ms: int

    def batches(self) -> Iterator[tuple[list[Span], int]]:
        """The spans, some hundred at a time, and up to which event each batch goes; what one event
        has ended stays together."""
        batch: list[Span] = []
        for span in self.spans:
            if len(batch) >= _MOST_SPANS and span.seq != batch[-1].seq:
                yield batch, batch[-1].seq
                batch = []
            batch.append(span)
        yield batch, self.position


def trace(desk: Desk, run: Run, *, again: bool = False) -> Trace:
    """The trace of a run as far as it was not exported yet; with `again` all of it. Errors: those
    of every write."""
    fold.fold_if_writable(desk, run)
    happened, position = _happened(desk, run)
    with desk.database.snapshot() as snapshot:
        run = runs.get(snapshot, run.id) or run
        start = 0 if again else runs.cursor(snapshot, READER, run.id)
        of_run = {task.id: task for task in tasks.of_run(snapshot, run.id, bodies=False)}
        every = {attempt.id: attempt for attempt in attempts.of_run(snapshot, run.id)}
    folded = spans.fold(run.id, happened)
    new = [span for span in folded.spans if span.seq > start]
    told = tuple(_Telling(desk, run, of_run, every).tell(new))
    sums = _sums(folded, every.values())
    return Trace(run, spans.trace_id(run.id), told, sums, position, desk.database.now().wall_ms)


def mark_exported(desk: Desk, run: Run, position: int) -> None:
    """Note that everything up to this event was exported."""
    with desk.database.transaction(durable=False) as tx:
        runs.advance_cursor(tx, READER, run.id, position, tx.now.wall_ms)


def exporting(desk: Desk) -> Gate:
    """The lock that whoever exports holds, so that two leaders do not export the same."""
    return Gate(desk.database.layout.tracing)


def _happened(desk: Desk, run: Run) -> tuple[list[Happened], int]:
    """The events of a run, up to the first that its leader may not see yet; and the number of the
    last one."""
    found: list[Happened] = []
    position = 0
    while True:
        with desk.database.snapshot() as snapshot:
            matching = events.Matching(run_id=run.id)
            batch = events.after(snapshot, position, limit=_BATCH, matching=matching)
            shown = {
                e.seq for e in visible_events(desk.bus.desk, snapshot, batch, desk.actor(run), ())
            }
        for event in batch:
            if event.seq not in shown:
                return found, position
            found.append(_as_happened(event))
            position = event.seq
        if len(batch) < _BATCH:
            return found, position


def _as_happened(event: Event) -> Happened:
    return Happened(event.seq, event.at, event.kind, event.task_id, event.attempt_id, event.data)


class _Telling:
    """Spans with what is known of their tasks and attempts."""

    def __init__(
        self, desk: Desk, run: Run, of_run: Mapping[str, Task], every: Mapping[str, Attempt]
    ) -> None:
        self._desk, self._run, self._tasks, self._attempts = desk, run, of_run, every
        self._secrets = secrets_of(config_of(run))

    def tell(self, new: Sequence[Span]) -> Iterator[Span]:
        """Each span, and before that of an attempt those of its checks."""
        ended = [self._attempts[str(s.attempt_id)] for s in new if s.name == "attempt"]
        works = work.works_of(self._desk, ended)
        with self._desk.database.snapshot() as snapshot:
            visits = stages.visits_of(snapshot, ended)
        for span in new:
            attributes = {**self._about_run(), **self._about_task(span), **span.attributes}
            if span.attempt_id is not None:
                attributes |= self._about_attempt(self._attempts[span.attempt_id])
            told = span._replace(attributes=attributes, reason=self._text(span.reason))
            if span.name == "attempt":
                attempt = self._attempts[str(span.attempt_id)]
                yield from self._checks(told, attempt)
                told = told._replace(
                    attributes={**attributes, **_about_work(works, attempt, visits)}
                )
            yield told

    def _about_run(self) -> dict[str, Any]:
        return {"orch.run.id": self._run.id, "orch.run.name": self._run.name}

    def _about_task(self, span: Span) -> dict[str, Any]:
        if span.parent is None:
            return {"orch.run.title": self._text(self._run.title), "orch.leader": self._run.leader}
        task = self._tasks.get(str(span.task_id))
        if task is None:
            return {}  # it was removed
        return {
            "orch.task.key": task.key,
            "orch.task.title": self._text(task.title),
            "orch.task.kind": task.kind,
        }

    def _about_attempt(self, attempt: Attempt) -> dict[str, Any]:
        return {
            "orch.attempt.id": attempt.id,
            "orch.attempt.number": attempt.number,
            "orch.mailbox": attempt.mailbox,
        }

    def _checks(self, span: Span, attempt: Attempt) -> Iterator[Span]:
        """Those of an attempt, laid end to end so that the last ends when it does: how long each
        took is known, not when it began."""
        checks = attempts.details_of(attempt).checks or ()
        end = float(span.end_ms)
        for number, check in reversed(list(enumerate(checks))):
            begin = max(float(span.begin_ms), end - check.seconds * 1000)
            said: dict[str, Any] = {
                "orch.check.command": self._text(check.command),
                "orch.check.passed": check.passed,
                **(
                    {}
                    if check.ending.exit_status is None
                    else {"process.exit.code": check.ending.exit_status}
                ),
            }
            yield span._replace(
                id=spans.span_id("check", attempt.id, number),
                parent=span.id,
                name="check",
                begin_ms=int(begin),
                end_ms=int(end),
                state="succeeded" if check.passed else "failed",
                reason=None if check.passed else self._text(check.sentence),
                attributes={**span.attributes, **said},
            )
            end = begin

    def _text(self, text: str | None) -> str | None:
        """A text for others, without secrets."""
        return None if text is None else hidden(text, self._secrets)[:_MOST_LETTERS]


def _about_work(
    works: Mapping[str, work.Work], attempt: Attempt, visits: Mapping[str, Sequence[Visit]]
) -> dict[str, Any]:
    found: dict[str, Any] = {"orch.attempt.state": attempt.state}
    if attempt.head_commit is not None:
        found["vcs.ref.head.revision"] = attempt.head_commit
    done = works.get(attempt.id)
    if done is None:
        return found
    found |= {"orch.deliveries": done.deliveries, "orch.lost_leases": done.lost_leases}
    if done.worker is not None:
        found["orch.worker"] = done.worker
    cost = None if done.message is None else cost_in(done.message.payload)
    cost = stages.cost_of(visits[attempt.id]) if attempt.id in visits else cost
    said = (
        {}
        if cost is None
        else {
            "gen_ai.usage.input_tokens": cost.input_tokens,
            "gen_ai.usage.output_tokens": cost.output_tokens,
            "orch.cost_usd": cost.usd,
        }
    )
    return found | {name: value for name, value in said.items() if value is not None}


def _sums(folded: Folded, every: Any) -> dict[tuple[str, str, str], int]:
    """What is counted over the whole run: metric, attribute and its value."""
    checks = [c.passed for a in every for c in attempts.details_of(a).checks or ()]
    sums = {
        ("orch.attempts", "orch.attempt.state", state): n for state, n in folded.attempts.items()
    }
    sums |= {("orch.tasks", "orch.task.state", state): n for state, n in folded.tasks.items()}
    if folded.questions:
        sums["orch.questions", "", ""] = folded.questions
    for passed in set(checks):
        words = "true" if passed else "false"
        sums["orch.checks", "orch.check.passed", words] = checks.count(passed)
    return sums
