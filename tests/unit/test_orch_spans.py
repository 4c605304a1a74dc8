"""A run's events folded into a trace."""

from typing import Any

from ulid import ULID

from inbox_orch.orch.views.spans import (
    Folded,
    Happened,
    Span,
    attempt_span,
    fold,
    run_span,
    span_id,
    trace_id,
)

RUN = "01M8M96J4JYFYY6ZGE8V2NFH0K"


class Log:
    """Events, one after the other."""

    def __init__(self) -> None:
        self.events: list[Happened] = []

    def add(self, at: int, kind: str, task: str | None = "T", **data: Any) -> "Log":
        attempt = data.pop("attempt", "A") if kind.startswith("attempt") else None
        facts = {"to": kind.partition("_")[2], **data}
        event = Happened(len(self.events) + 1, at, kind, task, attempt, facts)
        self.events.append(event)
        return self

    def attempt(self, *states: tuple[int, str], attempt: str = "A", task: str = "T") -> "Log":
        for at, state in states:
            self.add(at, f"attempt_{state}", task, attempt=attempt, reason="because")
        return self

    @property
    def folded(self) -> Folded:
        return fold(RUN, self.events)


def opened() -> Log:
    return Log().add(0, "run_open", None).add(10, "task_pending")


def brief(spans: list[Span]) -> list[tuple[Any, ...]]:
    return [(span.name, span.begin_ms, span.end_ms) for span in spans]


WHOLE = (
    *((20, "allocating"), (30, "provisioned"), (31, "offered"), (50, "running"), (60, "blocked")),
    *((90, "running"), (95, "submitted"), (97, "verifying"), (99, "succeeded")),
)


def test_an_attempt_is_a_span_with_its_waits_below_it():
    spans = opened().attempt(*WHOLE).add(99, "task_succeeded").folded.spans

    assert brief(spans) == [
        ("provision", 20, 30),
        ("wait.queue", 31, 50),
        ("wait.answer", 60, 90),
        ("wait.verdict", 95, 97),
        ("verify", 97, 99),
        ("attempt", 20, 99),
        ("run", 0, 99),
    ]
    assert {span.parent for span in spans[:5]} == {attempt_span("A")}
    assert (spans[5].id, spans[5].parent) == (attempt_span("A"), run_span(RUN))
    assert (spans[6].id, spans[6].parent, spans[6].failed) == (run_span(RUN), None, False)
    assert len({span.id for span in spans}) == 7
    assert [span.seq for span in spans] == [4, 6, 8, 10, 11, 11, 12]


def test_the_trace_is_the_run_and_the_ids_are_always_the_same():
    log = opened().attempt(*WHOLE)

    assert trace_id(RUN) == ULID.from_str(RUN).hex
    assert trace_id("0" * 25 + "Z") == "0" * 30 + "1f"
    assert trace_id("7" + "Z" * 25) == "f" * 32
    assert log.folded == log.folded
    assert span_id("attempt", "A") != span_id("attempt", "B")
    assert len(span_id("a")) == 16


def test_what_is_put_back_and_verified_again_is_two_spans():
    states = ((1, "allocating"), (2, "submitted"), (3, "verifying"), (5, "submitted"))
    log = opened().attempt(*states, (6, "verifying"), (9, "rejected"))

    assert brief(log.folded.spans)[1:] == [
        ("wait.verdict", 2, 3),
        ("verify", 3, 5),
        ("wait.verdict", 5, 6),
        ("verify", 6, 9),
        ("attempt", 1, 9),
    ]
    assert log.folded.spans[-1].failed
    assert log.folded.spans[-1].reason == "because"


def test_between_two_tries_a_task_waits():
    log = opened().attempt((20, "allocating"), (40, "failed")).add(40, "task_pending")
    log.attempt((70, "allocating"), (80, "lost"), attempt="B").add(80, "task_failed")

    spans = log.folded.spans
    assert ("wait.retry", 40, 70) in brief(spans)
    assert brief(spans)[-1] == ("run", 0, 80)
    assert spans[-1].failed
    assert spans[-1].attributes == {"orch.tasks.failed": 1}


def test_a_run_is_over_once():
    log = opened().add(20, "task_skipped").add(30, "task_pending").add(40, "task_cancelled")
    log.add(50, "run_closed", None).add(60, "run_open", None).add(70, "run_closed", None)

    assert brief(log.folded.spans) == [("run", 0, 20)]


def test_a_run_with_a_task_that_never_starts_is_over_when_it_is_closed():
    log = opened().add(11, "task_pending", "U").add(20, "task_failed")
    assert log.folded.spans == []
    log.add(30, "run_closed", None)
    assert brief(log.folded.spans) == [("run", 0, 30)]


def test_a_task_that_is_removed_is_not_waited_for():
    log = opened().add(11, "task_pending", "U").add(20, "task_succeeded")
    log.add(25, "task_removed", "U", to=None)

    assert brief(log.folded.spans) == [("run", 0, 25)]


def test_a_clock_that_is_set_back_makes_no_span_of_less_than_nothing():
    log = opened().attempt((20, "allocating"), (5, "provisioned"), (3, "offered"), (1, "failed"))

    assert brief(log.folded.spans) == [
        ("provision", 5, 5),
        ("wait.queue", 1, 1),
        ("attempt", 1, 1),
    ]


def test_it_counts_attempts_tasks_and_questions():
    log = opened().attempt(*WHOLE).add(99, "task_succeeded")
    log.attempt((100, "allocating"), (101, "failed"), attempt="B")

    folded = log.folded
    assert folded.attempts == {"succeeded": 1, "failed": 1}
    assert folded.tasks == {"succeeded": 1}
    assert folded.questions == 1


def test_what_tells_of_no_change_of_a_state_is_no_end_of_one():
    log = opened().attempt(*WHOLE)
    log.add(100, "attempt_adopted", to="succeeded").add(101, "attempt_integrated", to="succeeded")
    log.add(102, "task_edited", to="pending")

    assert len(log.folded.spans) == 6


def test_thousands_of_tasks_take_linear_time():
    log = Log().add(0, "run_open", None)
    for number in range(20_000):
        log.add(1, "task_pending", f"T{number}")
    for number in range(20_000):
        log.add(2, "task_succeeded", f"T{number}")

    assert brief(log.folded.spans) == [("run", 0, 2)]
