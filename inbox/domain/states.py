"""The states of a thread and every transition between them, as data.

The guards of the services, the test of the CHECK constraints and the page in `docs/` are all
made from these tables.
"""

from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

PENDING, CLAIMED, BLOCKED = "pending", "claimed", "blocked"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"

LIVE_STATES = (PENDING, CLAIMED, BLOCKED)
FINAL_STATES = (DONE, FAILED, CANCELLED)
THREAD_STATES = LIVE_STATES + FINAL_STATES


class Transition(NamedTuple):
    """One allowed change. `source` is None for a thread that does not exist yet."""

    verb: str
    source: str | None
    target: str
    event: str
    when: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition("send", None, PENDING, "thread_sent", ""),
    Transition("claim", PENDING, CLAIMED, "thread_claimed", "available, in one's mailboxes"),
    Transition("renew", CLAIMED, CLAIMED, "lease_renewed", ""),
    Transition("renew", BLOCKED, BLOCKED, "lease_renewed", ""),
    Transition("update", CLAIMED, CLAIMED, "thread_updated", ""),
    Transition("update", BLOCKED, BLOCKED, "thread_updated", ""),
    Transition("ask", CLAIMED, BLOCKED, "question_asked", ""),
    Transition("answer", BLOCKED, CLAIMED, "question_answered", "the lease lives"),
    Transition("answer", BLOCKED, PENDING, "question_answered", "the lease expired meanwhile"),
    Transition("unanswered", BLOCKED, CLAIMED, "question_expired", "the lease lives"),
    Transition("unanswered", BLOCKED, PENDING, "question_expired", "the lease expired meanwhile"),
    Transition("expire", CLAIMED, PENDING, "lease_expired", "deliveries left"),
    Transition("expire", CLAIMED, FAILED, "lease_expired", "no delivery left"),
    Transition("expire", BLOCKED, BLOCKED, "lease_expired", "the question stays open"),
    Transition("release", CLAIMED, PENDING, "thread_released", ""),
    Transition("release", BLOCKED, PENDING, "thread_released", "the question is withdrawn"),
    Transition("fail", CLAIMED, PENDING, "thread_deferred", "--retry-in, deliveries left"),
    Transition("fail", BLOCKED, PENDING, "thread_deferred", "--retry-in, deliveries left"),
    Transition("fail", CLAIMED, FAILED, "thread_failed", "no --retry-in, or no delivery left"),
    Transition("fail", BLOCKED, FAILED, "thread_failed", "no --retry-in, or no delivery left"),
    Transition("done", CLAIMED, DONE, "thread_done", ""),
    Transition("done", BLOCKED, DONE, "thread_done", "the question is withdrawn"),
    Transition("cancel", PENDING, CANCELLED, "thread_cancelled", ""),
    Transition("cancel", CLAIMED, CANCELLED, "thread_cancelled", "held by any agent"),
    Transition("cancel", BLOCKED, CANCELLED, "thread_cancelled", "held by any agent"),
)

_TARGETS = {
    (t.verb, t.source): frozenset(
        u.target for u in TRANSITIONS if (u.verb, u.source) == (t.verb, t.source)
    )
    for t in TRANSITIONS
}
_EVENTS = {(t.verb, t.source, t.target): t.event for t in TRANSITIONS}


def may(verb: str, state: str) -> bool:
    """Whether `verb` is possible in `state`."""
    return (verb, state) in _TARGETS


def require(verb: str, state: str, thread_id: str) -> None:
    """Error `invalid_state` unless `verb` is possible in `state`."""
    if not may(verb, state):
        raise InboxOrchError(
            "invalid_state",
            f"thread {thread_id} is {state}: `{verb}` does not apply to it",
            hint=_hint(state),
            details={"thread": thread_id, "state": state},
        )


def event_of(verb: str, source: str | None, target: str) -> str:
    """The kind of the event that records a transition of the table; asserts that it is one."""
    return _EVENTS[verb, source, target]


def _hint(state: str) -> str:
    if state in FINAL_STATES:
        return "the thread is final; send a new one to go on"
    if state == PENDING:
        return "claim it first"
    if state == BLOCKED:
        return "a question is open; wait for the answer, or finish, fail or release the thread"
    return "`inbox show` tells who holds it"
