"""Folding events: what they lead to, and every way in which they can contradict each other."""

import pytest

from inbox_orch.inbox.domain import folding, states
from inbox_orch.inbox.domain.folding import Content, Fact, fold

SENT = {"from": None, "to": "pending", "epoch": 0, "deliveries": 0, "holder": None}
SENT |= {"max_deliveries": 2}
CLAIMED = {"from": "pending", "to": "claimed", "epoch": 1, "deliveries": 1, "holder": "w1"}
CLAIMED |= {"counted": True}
ENDED = {"from": "claimed", "epoch": 1, "deliveries": 1, "holder": None, "lease_holder": "w1"}
DONE = {**ENDED, "to": "done"}
EXPIRED = {**ENDED, "to": "pending"}
RELEASED = {**ENDED, "to": "pending", "deliveries": 0}


def log(*events):
    return [Fact(seq, kind, data) for seq, (kind, data) in enumerate(events, start=1)]


def contradictions(*events):
    return [text for _, text in fold(log(*events)).contradictions]


def test_events_lead_to_the_state_the_lease_and_the_contents():
    body = {"message": 7, "message_kind": "task", "body_sha256": "ab", "body_bytes": 3}
    file = {"name": "log", "sha256": "cd", "bytes": 9}
    folded = fold(
        log(
            ("thread_sent", SENT | body | {"artifacts": [file]}),
            ("thread_claimed", CLAIMED),
            ("thread_done", DONE),
        )
    )

    assert folded.contradictions == []
    assert (folded.state, folded.epoch, folded.deliveries, folded.holder) == ("done", 1, 1, None)
    assert folded.leases == [folding.FoldedLease(1, "w1", True, "done")]
    assert folded.messages == {7: Content("task", "ab", 3)}
    assert folded.artifacts == [Content("log", "cd", 9)]


def test_a_release_gives_a_counted_delivery_back_and_no_other():
    again = {**CLAIMED, "epoch": 2, "deliveries": 0, "counted": False}
    released = {**RELEASED, "epoch": 2}
    log_ = [("thread_sent", SENT), ("thread_claimed", CLAIMED), ("thread_released", RELEASED)]

    assert contradictions(*log_, ("thread_claimed", again), ("thread_released", released)) == []


def test_events_that_are_not_the_bus_s_own_are_passed_by():
    assert contradictions(("attempt_offered", {}), ("thread_sent", SENT)) == []


@pytest.mark.parametrize(
    "events, said",
    [
        ([("thread_claimed", CLAIMED)], "says that the thread was pending; it was None"),
        ([("thread_sent", SENT), ("thread_done", DONE)], "was claimed; it was pending"),
        (
            [("thread_sent", SENT), ("thread_done", {**DONE, "from": "pending"})],
            "from pending to done is no transition",
        ),
        (
            [("thread_sent", SENT), ("thread_claimed", CLAIMED), ("thread_claimed", CLAIMED)],
            "gives out a second lease",
        ),
        (
            [("thread_sent", SENT), ("thread_claimed", {**CLAIMED, "epoch": 2})],
            "says epoch 2; it follows 1",
        ),
        (
            [("thread_sent", SENT), ("thread_claimed", {**CLAIMED, "deliveries": 0})],
            "says deliveries 0; it follows 1",
        ),
        (
            [("thread_sent", {**SENT, "max_deliveries": 0}), ("thread_claimed", CLAIMED)],
            "is delivery 1 of at most 0",
        ),
        (
            [
                ("thread_sent", SENT),
                ("thread_claimed", CLAIMED),
                ("lease_expired", {**EXPIRED, "lease_holder": "w2"}),
            ],
            "ends the lease of w2; w1 held it",
        ),
        (
            [
                ("thread_sent", SENT),
                ("thread_claimed", CLAIMED),
                ("thread_done", DONE),
                ("thread_done", DONE),
            ],
            "was claimed; it was done",
        ),
        ([("cancel_seen", SENT)], "comes before the thread was sent"),
        ([("thread_sent", SENT), ("thread_pruned", SENT)], "says that the thread is pending"),
        (
            [("thread_sent", SENT), ("message_added", {**SENT, "to": "done"})],
            "says that the thread is done; it is pending",
        ),
    ],
)
def test_a_log_that_contradicts_itself_is_noticed(events, said):
    assert any(said in text for text in contradictions(*events)), contradictions(*events)


def test_a_renewal_that_nobody_s_lease_allows_is_noticed():
    asked = {**CLAIMED, "from": "claimed", "to": "blocked"}
    expired = {**ENDED, "from": "blocked", "to": "blocked"}
    renewed = {**expired, "from": "blocked", "to": "blocked"}
    found = contradictions(
        ("thread_sent", SENT),
        ("thread_claimed", CLAIMED),
        ("question_asked", asked),
        ("lease_expired", expired),
        ("lease_renewed", renewed),
    )

    assert found == ["lease_renewed makes the thread blocked, but nobody holds it"]


def test_every_event_of_the_table_of_transitions_is_folded():
    assert {t.event for t in states.TRANSITIONS} <= folding.BUS_EVENTS


def test_every_event_that_leaves_the_held_states_ends_a_lease():
    leaving = {
        t.event
        for t in states.TRANSITIONS
        if t.source == states.CLAIMED and t.target not in (states.CLAIMED, states.BLOCKED)
    }

    assert leaving == folding.ENDINGS.keys()
