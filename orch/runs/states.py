"""The states of runs, tasks and attempts and every transition between them, as data."""

from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

RUN_STATES = ("open", "paused", "cancelling", "closed")
TASK_STATES = ("pending", "active", "blocked", "succeeded", "failed", "cancelled", "skipped")
TASK_FINAL = ("succeeded", "failed", "cancelled", "skipped")
ATTEMPT_LIVE = (
    "allocating",
    "provisioned",
    "offered",
    "running",
    "blocked",
    "submitted",
    "verifying",
    "ending",
)
ATTEMPT_ENDED = (
    "succeeded",
    "rejected",
    "failed",
    "timed_out",
    "lost",
    "cancelled",
    "provision_failed",
)
ATTEMPT_STATES = ATTEMPT_LIVE + ATTEMPT_ENDED
WITH_WORKER = ("offered", "running", "blocked")
"""States that follow the thread, and may change among one another by folding."""

NEEDS_WORKTREE = ("provisioned", *WITH_WORKER, "submitted", "verifying")
"""States in which the worktree of an attempt, if it has one, must be there."""

COUNTED_AS_WORK = ("failed", "rejected", "timed_out")
COUNTED_AS_INFRASTRUCTURE = ("lost", "provision_failed")


class Transition(NamedTuple):
    """One allowed change of a run, a task or an attempt; `source` None: it is made."""

    source: str | None
    target: str
    by: str


RUN_TRANSITIONS = (
    Transition(None, "open", "run init"),
    Transition("open", "paused", "run pause"),
    Transition("paused", "open", "run resume"),
    Transition("open", "cancelling", "run cancel"),
    Transition("paused", "cancelling", "run cancel"),
    Transition("cancelling", "closed", "its last attempt has ended"),
    Transition("open", "closed", "run close"),
    Transition("paused", "closed", "run close"),
    Transition("closed", "open", "run reopen"),
)

TASK_TRANSITIONS = (
    Transition(None, "pending", "task add"),
    Transition("pending", "active", "dispatch opens an attempt"),
    Transition("active", "blocked", "the worker's ask"),
    Transition("blocked", "active", "the answer, or its deadline"),
    Transition("active", "succeeded", "an attempt is accepted"),
    Transition("blocked", "succeeded", "an attempt is accepted (folding may skip states)"),
    Transition("active", "pending", "the attempt ended badly, retries remain"),
    Transition("blocked", "pending", "the attempt ended badly, retries remain"),
    Transition("active", "failed", "retries exhausted, or a fatal failure"),
    Transition("blocked", "failed", "retries exhausted, or a fatal failure"),
    Transition("active", "cancelled", "its attempt was cancelled"),
    Transition("blocked", "cancelled", "its attempt was cancelled"),
    Transition("pending", "cancelled", "cancel"),
    Transition("pending", "skipped", "skip"),
    Transition("blocked", "skipped", "it is split: its parts take its place"),
    Transition("pending", "succeeded", "adopt"),
    Transition("failed", "succeeded", "adopt"),
    Transition("cancelled", "succeeded", "adopt"),
    Transition("failed", "pending", "retry"),
    Transition("cancelled", "pending", "retry"),
    Transition("succeeded", "pending", "retry --force; its work conflicts when integrated"),
)

_BY_THREAD = tuple(
    Transition(source, target, "the thread's state")
    for source in WITH_WORKER
    for target in (*WITH_WORKER, "submitted", "failed", "lost", "ending")
    if source != target
)

ATTEMPT_TRANSITIONS = (
    Transition(None, "allocating", "dispatch"),
    Transition("allocating", "provisioned", "the worktree is there"),
    Transition("allocating", "provision_failed", "the worktree could not be made"),
    Transition("provisioned", "offered", "the thread is sent"),
    Transition("provisioned", "verifying", "a stage of its blueprint begins"),
    Transition("provisioned", "blocked", "its blueprint asks for a decision"),
    Transition("provisioned", "ending", "cancel, before the first thread of its blueprint"),
    *_BY_THREAD,
    Transition("submitted", "verifying", "orch looks for itself"),
    Transition("submitted", "offered", "the next stage of its blueprint"),
    Transition("submitted", "blocked", "its blueprint asks for a decision"),
    Transition("submitted", "failed", "its blueprint ends so"),
    Transition("verifying", "provisioned", "a stage is over, and no thread was sent yet"),
    Transition("verifying", "submitted", "the verifier died, or a stage is over"),
    Transition("verifying", "failed", "its blueprint ends so"),
    Transition("verifying", "succeeded", "accepted"),
    Transition("verifying", "rejected", "not accepted"),
    Transition("verifying", "lost", "the worktree is gone"),
    Transition("submitted", "lost", "the worktree is gone"),
    Transition("submitted", "ending", "cancel"),
    Transition("verifying", "ending", "cancel"),
    Transition("ending", "ending", "cancel, while it was ending for another reason"),
    Transition("ending", "cancelled", "its holder knows, or is gone"),
    Transition("ending", "timed_out", "its holder knows, or is gone"),
)

VISIT_STATES = ("live", "succeeded", "failed", "error", "skipped", "lost", "void", "cancelled")
VISIT_KINDS = ("agent", "gates", "action", "council", "decision")
"""What is done in a visit: an agent works, gates or an action run, seats vote, somebody decides."""

VISIT_TRANSITIONS = (
    Transition(None, "live", "its stage is entered"),
    Transition("live", "succeeded", "what was asked for is there"),
    Transition("live", "failed", "it is not, or a gate found failures"),
    Transition("live", "error", "it could not be judged"),
    Transition("live", "skipped", "there was nothing to do it with"),
    Transition("live", "lost", "no delivery left: its workers died or gave it back"),
    Transition("live", "void", "what it was about is no more"),
    Transition("live", "cancelled", "the attempt ended"),
)

TABLES = {
    "run": RUN_TRANSITIONS,
    "task": TASK_TRANSITIONS,
    "attempt": ATTEMPT_TRANSITIONS,
    "visit": VISIT_TRANSITIONS,
}

ATTEMPT_OF_THREAD = {"pending": "offered", "claimed": "running", "blocked": "blocked"}


def attempt_state_for(thread_state: str, reason: str | None) -> str:
    """What the state of its thread makes of an attempt that is with a worker."""
    if thread_state in ATTEMPT_OF_THREAD:
        return ATTEMPT_OF_THREAD[thread_state]
    if thread_state == "done":
        return "submitted"
    if thread_state == "cancelled":
        return "ending"
    return "lost" if reason == "exhausted" else "failed"


def staged_state_for(thread_state: str, *, deciding: bool) -> str:
    """The same for an attempt that goes by a blueprint: what became of the thread of a visit, or of
    a decision, leaves it to the next stage."""
    if deciding:
        return "blocked" if thread_state in ATTEMPT_OF_THREAD else "submitted"
    if thread_state in ATTEMPT_OF_THREAD:
        return ATTEMPT_OF_THREAD[thread_state]
    return "ending" if thread_state == "cancelled" else "submitted"


MOVES = {kind: {(t.source, t.target) for t in table} for kind, table in TABLES.items()}
"""The transitions of each table, from where to where."""


def require(kind: str, source: str | None, target: str) -> None:
    """Assert that the table has the transition: asking for another one is a bug."""
    assert (source, target) in MOVES[kind], f"{kind}: {source} -> {target} is not in the table"


_RUN_HINTS = {
    "closed": "`orch run reopen` opens it again",
    "cancelling": "it is closed once its last attempt has ended; reopen it then",
    "paused": "`orch run resume` goes on with it",
}


def refuse(kind: str, name: str, state: str, verb: str, hint: str | None = None) -> InboxOrchError:
    """A call that the present state does not allow: exit 4."""
    if hint is None and kind == "run":
        hint = _RUN_HINTS.get(state)
    return InboxOrchError(
        "invalid_state",
        f"{kind} {name} is {state}: `{verb}` does not apply to it",
        hint=hint or f"`orch {'run show' if kind == 'run' else 'status'}` tells how things stand",
        details={"kind": kind, "name": name, "state": state},
    )
