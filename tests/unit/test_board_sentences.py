"""What has happened, in a person's words: one sentence for each thing."""

import pytest

from inbox_orch.orch.board.sentences import SENTENCES, sentences
from inbox_orch.shared.errors import event_kinds
from inbox_orch.shared.store.events import Event

KEYS = {"t1": "parser", "t2": "lexer"}


class Log:
    """Events as they are recorded."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def run(self, kind: str, task: str | None = "t1", thread: str | None = None, **data: object):
        """Of the scheduler."""
        attempt = "a" if kind.startswith("attempt") else None
        return self._add(kind, "leader", thread, "run", task, attempt, data)

    def bus(self, kind: str, actor: str, thread: str = "th1", **data: object):
        """Of a thread."""
        return self._add(kind, actor, thread, None, None, None, data)

    def offered(self, task: str = "t1", thread: str = "th1") -> "Log":
        """All events of one dispatch."""
        self.run("attempt_allocating", task, **{"from": None, "number": 1})
        self.run("task_active", task, **{"from": "pending", "cause": "dispatch"})
        self.run("attempt_provisioned", task, **{"from": "allocating", "number": 1})
        self.bus("thread_sent", "leader", thread)
        return self.run("attempt_offered", task, thread, **{"from": "provisioned", "number": 1})

    def told(self, texts: dict[int, str] | None = None) -> list[str]:
        """What they tell."""
        return [each.text for each in sentences(self.events, KEYS, {"th1": "parser"}, texts or {})]

    def _add(self, kind, actor, thread, run, task, attempt, data) -> "Log":
        number = len(self.events) + 1
        self.events.append(
            Event(number, 1000 * number, kind, actor, thread, None, run, task, attempt, data)
        )
        return self


def test_every_kind_of_event_has_its_words_or_says_that_another_tells_it():
    assert sorted(SENTENCES) == sorted(event_kinds())


def test_an_offer_is_one_thing():
    assert Log().offered().told() == ["`parser` waits for a worker"]


def test_many_offers_at_once_are_one_thing_too():
    log = Log()
    for number in range(5):
        log.offered("t1" if number % 2 else "t2", f"other{number}")

    assert log.told() == ["5 tasks wait for workers"]
    # Where others came before that are not seen any more, it may have been more.
    cut = sentences(log.events, KEYS, {"th1": "parser"}, {}, cut=True)
    assert [each.text for each in cut] == ["5 or more tasks wait for workers"]


def test_who_takes_over_says_from_whom_and_why():
    log = Log().offered()
    log.bus("thread_claimed", "bob", holder="bob")
    log.bus("lease_expired", "_system", holder=None, lease_holder="bob")
    assert log.told()[-1] == "the lease of bob on `parser` ran out"

    log.bus("thread_claimed", "anna", holder="anna")

    assert log.told()[1:] == [
        "bob took `parser`",
        "anna took over `parser` from bob, whose lease ran out",
    ]


def test_a_worker_that_comes_back_takes_over_from_nobody():
    log = Log().offered()
    log.bus("thread_claimed", "bob", holder="bob")
    log.bus("lease_expired", "_system", lease_holder="bob")
    log.bus("thread_claimed", "bob", holder="bob")

    assert log.told()[-1] == "bob took `parser` again, after the lease ran out"


def test_what_a_worker_did_is_told_with_what_came_of_it():
    log = Log().offered()
    log.bus("thread_claimed", "anna", holder="anna")
    log.bus("thread_failed", "anna", holder=None, lease_holder="anna")
    log.run("attempt_failed", thread="th1", reason="it does\nnot compile")
    log.run("task_pending", thread="th1", **{"from": "active", "cause": "attempt failed"})
    log.run("attempt_rejected", thread="th1", reason="no commit")
    log.run("task_failed", thread="th1", **{"from": "active"})

    assert log.told()[2:] == [
        "anna failed at `parser`: it does not compile; it is tried again",
        "the work of anna on `parser` is not accepted: no commit; it is not tried again",
    ]


def test_accepted_work_is_said_once():
    log = Log().offered()
    log.bus("thread_claimed", "anna", holder="anna")
    log.bus("thread_done", "anna", lease_holder="anna")
    for state in ("submitted", "verifying", "succeeded"):
        log.run(f"attempt_{state}", thread="th1")
    log.run("task_succeeded", thread="th1")

    assert log.told()[2:] == [
        "anna has finished `parser`: it is looked at",
        "`parser` is done: the work of anna is accepted",
    ]


def test_of_several_updates_the_last_is_told_with_its_text():
    log = Log().offered()
    log.bus("thread_claimed", "anna", holder="anna")
    for percent in (10, 20):
        log.bus("thread_updated", "anna", holder="anna", progress=percent, message=percent)

    assert log.told({10: "begun", 20: "half\nof it"})[2:] == [
        "anna is at 20 % of `parser`: half of it"
    ]


def test_a_question_and_its_answer_name_who_asked():
    log = Log()
    log.bus("question_asked", "anna", holder="anna", message=4)
    log.bus("question_answered", "leader", holder="anna", message=5)

    assert log.told({4: "which one?"}) == [
        "anna asks about `parser`: which one?",
        "leader answered anna about `parser`",
    ]


@pytest.mark.parametrize("kind, data, said", [
    ("task_pending", {"from": None}, "leader added `parser`"),
    ("task_pending", {"from": "failed", "cause": "retry"}, "leader has `parser` tried again"),
    ("task_cancelled", {"from": "pending"}, "leader cancelled `parser`"),
    ("attempt_ending", {"cause": "cancel"},
     "leader cancelled `parser`; its worker has still to learn of it"),
    ("attempt_ending", {"cause": "too slow"}, "work on `parser` is to stop: too slow"),
    ("base_conflict_found", {"paths": ["a", "b"]},
     "what `parser` builds on does not merge, in a, b"),
    ("work_harvested", {"harvested": {"files": 3}},
     "3 files that a worker had left uncommitted in `parser` went into a commit"),
    ("task_edited", {"changed": ["title", "body"]}, "leader changed `parser`: title, body"),
])  # fmt: skip
def test_what_leaders_and_the_scheduler_do(kind: str, data: dict, said: str):
    assert Log().run(kind, **data).told() == [said]


def test_a_run_is_told_of_as_it_goes_on():
    log = Log()
    for source in (None, "paused", "closed"):
        log.run("run_open", None, **{"from": source})

    assert log.told() == [
        "leader opened the run", "leader lets the run go on", "leader reopened the run"
    ]  # fmt: skip


def test_what_is_about_something_else_does_not_come_between():
    log = Log().offered().offered("t2", "th2")
    log.bus("thread_claimed", "bob", holder="bob")
    log.bus("thread_claimed", "eve", "th2", holder="eve")
    log.bus("lease_expired", "_system", lease_holder="bob")
    log.bus("thread_claimed", "anna", holder="anna")

    assert log.told()[2:] == [
        "bob took `parser`",
        "eve took `lexer`",
        "anna took over `parser` from bob, whose lease ran out",
    ]
