"""A run as a trace: what began and ended when, folded from its events. Pure.

The ids are made from those of the run and its attempts, so that whoever folds the same events gets
the same spans, whenever that is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex

from ..runs.states import ATTEMPT_ENDED, TASK_FINAL

_PHASES = {
    "allocating": "provision",
    "offered": "wait.queue",
    "blocked": "wait.answer",
    "submitted": "wait.verdict",
    "verifying": "verify",
}
"""The states of an attempt that are spans of their own."""

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Those of a ULID."""

BAD = ("failed", "rejected", "timed_out", "lost", "provision_failed")
"""The ends of attempts that are errors."""


class Happened(NamedTuple):
    """An event as a trace needs it; `at` in wall-clock milliseconds."""

    seq: int
    at: int
    kind: str
    task_id: str | None
    attempt_id: str | None
    data: Mapping[str, Any]


class Span(NamedTuple):
    """Something that has begun and ended, both in wall-clock milliseconds. `seq` is the event that
    ended it; `task_id` and `attempt_id` are what it is about, None for the run."""

    id: str
    parent: str | None
    name: str
    begin_ms: int
    end_ms: int
    seq: int
    task_id: str | None = None
    attempt_id: str | None = None
    state: str | None = None
    reason: str | None = None
    attributes: Mapping[str, str | int | float | bool | Sequence[str]] = {}

    @property
    def failed(self) -> bool:
        """Whether it is an error."""
        return self.state in BAD


class Folded(NamedTuple):
    """The spans that have ended, in the order of their ends, and how often what has happened: the
    ends of attempts, those of tasks, and questions."""

    spans: list[Span]
    attempts: Counter[str]
    tasks: Counter[str]
    questions: int


def trace_id(run_id: str) -> str:
    """The 128 bits of the run's ULID, in 32 hexadecimal digits."""
    number = 0
    for digit in run_id:
        number = number * 32 + _DIGITS.index(digit)
    return f"{number:032x}"


def span_id(*what: object) -> str:
    """16 hexadecimal digits for one thing of a run."""
    return sha256_hex(" ".join(map(str, what)).encode())[:16]


def run_span(run_id: str) -> str:
    """The id of the span that all others are below."""
    return span_id("run", run_id)


def attempt_span(attempt_id: str) -> str:
    """The id of an attempt's span."""
    return span_id("attempt", attempt_id)


def fold(run_id: str, happened: Iterable[Happened]) -> Folded:
    """The events of one run, from the first on."""
    folding = _Folding(run_id)
    spans = [span for event in happened for span in folding.take(event)]
    return Folded(spans, folding.attempts, folding.tasks, folding.questions)


class _Begun(NamedTuple):
    """Since when an attempt is what it is."""

    state: str
    at: int
    seq: int


class _Folding:
    """Where a fold is."""

    def __init__(self, run_id: str) -> None:
        self.run_id, self._root = run_id, run_span(run_id)
        self.attempts: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.questions = 0
        self._opened_ms: int | None = None
        self._over = False
        self._begun: dict[str, int] = {}  # when each attempt did
        self._phase: dict[str, _Begun] = {}
        self._visits: dict[str, Happened] = {}  # the beginnings of those that live, by attempt
        self._states: dict[str, str] = {}  # of the tasks
        self._unfinished = 0  # of the tasks
        self._last_end: dict[str, int] = {}  # of each task's attempts

    def take(self, event: Happened) -> Iterator[Span]:
        """The spans that end with the next event."""
        if self._opened_ms is None:
            self._opened_ms = event.at
        thing, _, state = event.kind.partition("_")
        if event.attempt_id is not None and thing == "attempt" and event.data.get("to") == state:
            yield from self._attempt(event, event.attempt_id, state)
        elif event.attempt_id is not None and thing == "visit":
            yield from self._visit(event, event.attempt_id)
        elif event.task_id is not None and event.kind == "task_removed":
            self._unfinished -= self._states.pop(event.task_id, "succeeded") not in TASK_FINAL
        elif event.task_id is not None and thing == "task" and event.data.get("to") == state:
            self._task(event.task_id, state)
        all_final = bool(self._states) and self._unfinished == 0
        if not self._over and (event.kind == "run_closed" or all_final):
            self._over = True
            yield self._run(event)

    def _attempt(self, event: Happened, attempt_id: str, state: str) -> Iterator[Span]:
        before = self._phase.pop(attempt_id, None)
        if before is not None and before.state in _PHASES and before.state != state:
            yield self._phase_span(event, attempt_id, before)
        if state == "blocked":
            self.questions += 1
        if state == "allocating":
            self._begun[attempt_id] = event.at
            ended_ms = self._last_end.pop(str(event.task_id), None)
            if ended_ms is not None:
                number = span_id("retry", attempt_id)
                yield self._span(event, number, "wait.retry", ended_ms)
        if state in ATTEMPT_ENDED:
            yield from self._visit_over(event, attempt_id, state)
            self.attempts[state] += 1
            self._last_end[str(event.task_id)] = event.at
            yield self._attempt_span(event, attempt_id, state)
        else:
            self._phase[attempt_id] = _Begun(state, event.at, event.seq)

    def _visit(self, event: Happened, attempt_id: str) -> Iterator[Span]:
        if event.kind == "visit_ended":
            yield from self._visit_over(event, attempt_id, str(event.data.get("state")))
            return
        self._visits[attempt_id] = event
        if event.data.get("kind") == "decision":
            self.questions -= 1  # that it is blocked was no question of a worker's

    def _visit_over(self, event: Happened, attempt_id: str, state: str) -> Iterator[Span]:
        """The span of the visit that lived, which ends by itself or with its attempt."""
        begun = self._visits.pop(attempt_id, None)
        if begun is None:
            return
        said, data = begun.data, event.data
        number = span_id("visit", attempt_id, said.get("visit"))
        about = {
            "orch.stage": said.get("stage"),
            "orch.visit": said.get("visit"),
            "orch.visit.nth": said.get("nth"),
            "orch.visit.kind": said.get("kind"),
            "orch.visit.state": state,
            "orch.visit.verdict": data.get("verdict"),
            "orch.worker": data.get("worker"),
        }
        yield self._span(event, number, "visit", begun.at)._replace(
            parent=attempt_span(attempt_id),
            attempt_id=attempt_id,
            state="failed" if state == "error" else state,
            reason=data.get("why") or data.get("reason"),
            attributes={name: value for name, value in about.items() if value is not None},
        )

    def _phase_span(self, event: Happened, attempt_id: str, phase: _Begun) -> Span:
        name = _PHASES[phase.state]
        number = span_id(name, attempt_id, phase.seq)
        span = self._span(event, number, name, phase.at)
        return span._replace(parent=attempt_span(attempt_id), attempt_id=attempt_id)

    def _attempt_span(self, event: Happened, attempt_id: str, state: str) -> Span:
        begun = self._begun.pop(attempt_id, event.at)
        span = self._span(event, attempt_span(attempt_id), "attempt", begun)
        return span._replace(attempt_id=attempt_id, state=state, reason=event.data.get("reason"))

    def _span(self, event: Happened, number: str, name: str, begin_ms: int) -> Span:
        # The wall clock may have been set back.
        begin = min(begin_ms, event.at)
        return Span(number, self._root, name, begin, event.at, event.seq, event.task_id)

    def _task(self, task_id: str, state: str) -> None:
        was_final = self._states.get(task_id, "succeeded") in TASK_FINAL
        self._states[task_id] = state
        self._unfinished += was_final - (state in TASK_FINAL)
        if state in TASK_FINAL:
            self.tasks[state] += 1

    def _run(self, event: Happened) -> Span:
        bad = any(state == "failed" for state in self._states.values())
        span = self._span(
            event, self._root, "run", event.at if self._opened_ms is None else self._opened_ms
        )
        counts = Counter(self._states.values())
        said: dict[str, str | int] = {f"orch.tasks.{state}": n for state, n in counts.items()}
        return span._replace(
            parent=None, task_id=None, state="failed" if bad else "succeeded", attributes=said
        )
