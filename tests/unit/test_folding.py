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


def test_a_thread_begins_with_nothing():
    folded = fold([])

    assert (folded.state, folded.epoch, folded.deliveries, folded.max_deliveries) == (None, 0, 0, 0)
    assert (folded.pruned, folded.cancel_seen) == (False, False)
    assert (folded.leases, folded.messages, folded.artifacts) == ([], {}, [])


def test_the_first_event_of_a_thread_must_be_that_it_was_sent():
    unsent = {"to": None, "epoch": 0, "deliveries": 0, "holder": None}

    assert contradictions(("message_added", unsent)) == [
        "message_added comes before the thread was sent"
    ]


def test_a_thread_may_be_delivered_as_often_as_it_says_and_no_more():
    events = [("thread_sent", {**SENT, "max_deliveries": 1}), ("thread_claimed", CLAIMED)]
    once_more = {**CLAIMED, "epoch": 2, "deliveries": 2}

    assert contradictions(*events) == []
    assert contradictions(*events, ("lease_expired", EXPIRED), ("thread_claimed", once_more)) == [
        "thread_claimed is delivery 2 of at most 1"
    ]


def test_what_is_pruned_stays_pruned_and_may_be_pruned_again():
    pruned = {**DONE, "from": None, "artifacts": [{"name": "log", "sha256": "ab", "bytes": 1}]}
    folded = fold(
        log(
            ("thread_sent", SENT),
            ("thread_claimed", CLAIMED),
            ("thread_done", DONE),
            ("thread_pruned", pruned),
            ("message_added", pruned),
            ("thread_pruned", pruned),
        )
    )

    assert folded.contradictions == []
    assert folded.pruned is True
    assert folded.artifacts == [Content("log", "ab", 1)], "only what the message brought"
    assert folded.cancel_seen is False


def test_a_cancel_is_seen_by_the_holder_once():
    cancelled = {**ENDED, "to": "cancelled"}
    events = [
        ("thread_sent", SENT),
        ("thread_claimed", CLAIMED),
        ("thread_cancelled", cancelled),
        ("cancel_seen", cancelled),
    ]
    folded = fold(log(*events))

    assert (folded.contradictions, folded.cancel_seen, folded.pruned) == ([], True, False)
    assert fold(log(*events, ("cancel_seen", cancelled))).contradictions == [
        (5, "cancel_seen occurs a second time")
    ]


def test_only_a_cancel_may_come_to_a_thread_that_nobody_holds():
    cancelled = {**SENT, "from": "pending", "to": "cancelled"}
    expired = {**SENT, "from": "pending", "to": "pending"}

    assert contradictions(("thread_sent", SENT), ("thread_cancelled", cancelled)) == []
    assert "lease_expired ends a lease; there is none" in contradictions(
        ("thread_sent", SENT), ("lease_expired", expired)
    )


def test_a_thread_that_goes_back_to_the_queue_while_it_is_held_is_noticed():
    asked = {**CLAIMED, "from": "claimed", "to": "blocked"}
    answered = {**CLAIMED, "from": "blocked", "to": "pending"}

    assert contradictions(
        ("thread_sent", SENT),
        ("thread_claimed", CLAIMED),
        ("question_asked", asked),
        ("question_answered", answered),
    ) == ["question_answered makes the thread pending, but w1 holds it"]


def test_a_lease_without_a_holder_is_told_by_a_question_mark():
    folded = fold(log(("thread_sent", SENT), ("thread_claimed", {**CLAIMED, "holder": None})))

    assert folded.holder == "?"
    assert folded.contradictions == [(2, "thread_claimed says holder None; it follows ?")]


def test_a_message_that_is_recorded_twice_is_noticed():
    body = {"message": 7, "message_kind": "task", "body_sha256": "ab", "body_bytes": 3}

    assert fold(
        log(("thread_sent", SENT | body), ("message_added", SENT | body))
    ).contradictions == [(2, "message_added records message 7 a second time")]


@pytest.mark.parametrize("number", [None, "3"])
def test_a_number_that_is_missing_is_noticed_and_counts_as_none(number):
    body = {"message": 7, "message_kind": "task", "body_sha256": "ab", "body_bytes": number}
    folded = fold(log(("thread_sent", SENT | body)))

    assert folded.contradictions == [(1, "thread_sent has no number body_bytes")]
    assert folded.messages == {7: Content("task", "ab", 0)}


def test_a_file_without_a_length_is_like_no_file():
    listed = {"artifacts": [{"name": "a", "sha256": "b"}, "no object"]}

    assert fold(log(("thread_sent", SENT | listed))).artifacts == [Content("a", "b", -1)]
    assert fold(log(("thread_sent", SENT | {"artifacts": "none"}))).artifacts == []


def test_a_state_that_is_no_text_is_no_state():
    assert contradictions(("thread_sent", {**SENT, "to": 1})) == [
        "thread_sent from None to None is no transition of the table"
    ]
