"""The error codes and kinds of events of the bus. Pure."""

from inbox_orch.shared.errors import Code

from . import states

ERRORS = {
    "result_refused": Code(
        2,
        20,
        "the thread's schema does not accept the result; `details` has what is wrong, and the "
        "lease stays",
    ),
    "already_claimed": Code(
        4,
        10,
        "another agent holds the thread; `details` says who and until when",
    ),
    "wrong_mailbox": Code(4, 20, "the thread is in a mailbox that was not named"),
    "invalid_state": Code(
        4,
        30,
        "the thread, task, attempt or run is in a state that does not allow it",
    ),
    "unknown_recipient": Code(4, 50, "`send --strict`: that mailbox has never been read"),
    "not_logged_in": Code(
        6, 105, "the agent that `--with` names is not logged in; the hint says how that is done"
    ),
    "lease_lost": Code(7, 10, "the token is not the thread's current one: stop working on it"),
    "timeout": Code(
        8,
        10,
        "the wait is over and nothing came; call again, nothing is missed in between",
        retryable=True,
    ),
    "nothing_available": Code(8, 20, "there is nothing to claim now", retryable=True),
    "cancelled": Code(10, 10, "the thread that you hold was cancelled: stop working on it"),
    "problems_found": Code(11, 70, "`doctor` found problems; `data` lists them"),
}

UNMOVED: dict[str, tuple[str, ...]] = {
    "message_added": states.THREAD_STATES,
    "artifacts_attached": states.THREAD_STATES,
    "thread_unsealed": states.THREAD_STATES,
    "cancel_seen": (states.CANCELLED,),
    "thread_pruned": states.FINAL_STATES,
}
"""Kinds of events that change neither the state of a thread nor its lease, and the states that
it may be in."""

EVENTS = (*dict.fromkeys(t.event for t in states.TRANSITIONS), *UNMOVED)
