"""Who gets a message, who sees a thread, what may follow what, and when a lease is over."""

from itertools import product

import pytest

from inbox_orch.inbox.domain import leases, routing, states
from inbox_orch.shared.clock import Moment
from inbox_orch.shared.errors import InboxOrchError

# -- leases ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "boot_id, monotonic_ms, over",
    [
        ("here", 999, False),
        ("here", 1000, True),
        ("here", 1001, True),
        ("another", 0, True),
        ("Here", 999, True),
    ],
)
def test_a_lease_is_over_at_its_deadline_and_with_its_boot(boot_id, monotonic_ms, over):
    assert leases.is_expired("here", 1000, Moment(0, monotonic_ms, boot_id)) is over


@pytest.mark.parametrize("wall_ms", [0, 10**15])
def test_no_wall_clock_ends_a_lease(wall_ms):
    assert not leases.is_expired("here", 1000, Moment(wall_ms, 999, "here"))


@pytest.mark.parametrize(
    "deliveries, seconds", [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (17, 300), (5000, 300)]
)
def test_the_back_off_doubles_from_5_seconds_to_300(deliveries, seconds):
    assert leases.backoff_seconds(deliveries, 1) == seconds
    assert leases.backoff_seconds(deliveries, 0) == seconds / 2
    assert leases.backoff_seconds(deliveries, 0.5) == seconds * 0.75


# -- routing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, author, holder, expected",
    [
        ("task", "lead", None, ("box",)),
        ("task", "lead", "worker", ("box",)),
        ("reply", "lead", None, ("box",)),
        ("reply", "lead", "worker", ("worker",)),
        ("reply", "third", None, ("lead",)),
        ("reply", "third", "lead", ("lead",)),
        ("reply", "third", "worker", ("lead", "worker")),
        ("reply", "worker", "worker", ("lead",)),
        ("progress", "worker", "worker", ("lead",)),
        ("question", "worker", "worker", ("lead",)),
        ("result", "worker", None, ("lead",)),
    ],
)
def test_a_message_goes_to_the_other_side_of_its_thread(kind, author, holder, expected):
    found = routing.destinations(kind, author, sender="lead", mailbox="box", holder=holder)

    assert found == expected


def sees(agent, *, sealed=True, mailboxes=(), holders=("past", "present")):
    return routing.visible(
        sealed=sealed,
        sender="lead",
        mailbox="box",
        holders=holders,
        agent=agent,
        mailboxes=mailboxes,
    )


@pytest.mark.parametrize("agent", [None, "lead", "stranger"])
def test_a_thread_that_is_not_sealed_is_shown_to_everybody(agent):
    assert sees(agent, sealed=False, holders=())


@pytest.mark.parametrize("agent", ["lead", "past", "present"])
def test_a_sealed_thread_is_shown_to_its_sender_and_its_holders(agent):
    assert sees(agent)


def test_a_sealed_thread_is_shown_to_who_reads_its_mailbox_and_to_nobody_else():
    assert sees("stranger", mailboxes=("other", "box"))
    assert not sees("stranger", mailboxes=("other",))
    assert not sees(None, mailboxes=("box",))


# -- states ----------------------------------------------------------------------------------

VERBS = sorted({t.verb for t in states.TRANSITIONS})
ALLOWED = {
    "claim": {"pending"},
    "renew": {"claimed", "blocked"},
    "update": {"claimed", "blocked"},
    "ask": {"claimed"},
    "answer": {"blocked"},
    "unanswered": {"blocked"},
    "expire": {"claimed", "blocked"},
    "release": {"claimed", "blocked"},
    "fail": {"claimed", "blocked"},
    "done": {"claimed", "blocked"},
    "cancel": {"pending", "claimed", "blocked"},
    "send": set(),
}
HINTS = {
    "pending": "claim it first",
    "claimed": "`inbox show` tells who holds it",
    "blocked": "a question is open; wait for the answer, or finish, fail or release the thread",
    **dict.fromkeys(
        ("done", "failed", "cancelled"), "the thread is final; send a new one to go on"
    ),
}


@pytest.mark.parametrize("verb, state", list(product(VERBS, states.THREAD_STATES)))
def test_every_verb_in_every_state_is_allowed_or_refused_as_the_table_says(verb, state):
    assert states.may(verb, state) is (state in ALLOWED[verb])
    if state in ALLOWED[verb]:
        states.require(verb, state, "T")
        return
    with pytest.raises(InboxOrchError) as caught:
        states.require(verb, state, "T")
    assert caught.value.as_json() == {
        "code": "invalid_state",
        "message": f"thread T is {state}: `{verb}` does not apply to it",
        "hint": HINTS[state],
        "retryable": False,
        "details": {"thread": "T", "state": state},
    }


@pytest.mark.parametrize("transition", states.TRANSITIONS)
def test_every_transition_has_its_event(transition):
    found = states.event_of(transition.verb, transition.source, transition.target)

    assert found == transition.event


def test_a_transition_that_is_not_in_the_table_has_no_event():
    with pytest.raises(KeyError):
        states.event_of("done", "pending", "done")
