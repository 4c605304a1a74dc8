"""What the holder of a lease does: renew, update, ask, finish, fail, release.

Every function is given the thread and the token, which is judged first (`judging.py`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import refuse_text
from inbox_orch.shared.store.requests import Request

from ..domain import limits, states
from ..domain.model import Artifact, Message, Thread, Written
from ..store import leases, messages, threads
from .desk import ENDED, Desk, Draft, Heading, Move, artifact_facts
from .judging import Held, check_early, hold

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import Stored


# By verb: what the lease was ended by, and the kind of its last message.
_ENDINGS = {
    "done": ("done", "result"),
    "fail": ("failed", "failure"),
    "release": ("released", "release"),
}


def renew(desk: Desk, thread_id: str, token: str, *, lease_seconds: float | None = None) -> Written:
    """Set the lease's end to `lease_seconds` from now (default: its own length).

    Errors: those of every token: `not_found`, `cancelled`, `lease_lost`, `invalid_state`.
    """
    thread_id = desk.thread_id(thread_id)
    if lease_seconds is not None:
        limits.check_lease_seconds(lease_seconds)
    with hold(desk, thread_id, token, durable=False) as held:
        states.require("renew", held.thread.state, held.thread.id)
        thread = _extend(desk, held, lease_seconds, record=True)
        return Written(thread, lease=thread.lease, late=held.late)


def update(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    body: str | None = None,
    progress: int | None = None,
    attach: Sequence[str] = (),
    key: str | None = None,
) -> Written:
    """Tell the sender how it goes (`progress` in per cent); also renews the lease.

    Errors: `usage`, `key_conflict`, and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    if progress is not None:
        limits.check_number("progress", progress, 0, 100, whole=True)
    if body is None and progress is None and not attach:
        raise usage(
            "an update needs a body, a progress or an attachment",
            hint="to extend the lease alone, use `renew`",
        )
    check_early(desk, thread_id, token, attach)
    draft = desk.draft(body, None, attach)
    digest = digest_of({"thread": thread_id, "progress": progress, **draft.facts()})
    with hold(desk, thread_id, token, durable=bool(draft.files)) as held:
        request = Request("update", held.agent, key, digest)
        earlier = desk.replay(held.tx, request)
        if earlier is not None:
            return earlier
        states.require("update", held.thread.state, held.thread.id)
        _extend(desk, held, None, record=False)
        message = desk.write_message(
            held.tx, held.thread, draft, Heading("progress", held.agent, progress=progress)
        )
        changes = {} if progress is None else {"progress": progress}
        data = {"progress": progress, "late": held.late}
        move = Move("update", held.thread.state, held.agent, changes, data, message)
        thread = desk.move(held.tx, held.thread, move)
        result = Written(thread, message, thread.lease, late=held.late)
        return desk.remember(held.tx, request, result)


class Question:
    """What a holder asks: `options` to choose from, and after how many seconds it goes on without
    an answer, if ever."""

    def __init__(
        self,
        body: str,
        options: Sequence[str] = (),
        deadline_seconds: float | None = None,
    ) -> None:
        self.body = body
        self.options = options
        self.deadline_seconds = deadline_seconds


def ask(
    desk: Desk, thread_id: str, token: str, question: Question, *, key: str | None = None
) -> Written:
    """Ask the sender; the thread is blocked until somebody else replies, or until the deadline.
    Repeating the open question is `already`.

    Errors: `usage`, `key_conflict`, `invalid_state` (another question is open), and those of
    every token.
    """
    thread_id = desk.thread_id(thread_id)
    deadline_seconds = question.deadline_seconds
    refuse_text(question.options, "options")
    offered = limits.check_options(tuple(question.options))
    if deadline_seconds is not None:
        limits.check_delay_seconds("deadline", deadline_seconds, 0.001)
    draft = desk.draft(limits.check_body(question.body))
    asked = {"thread": thread_id, "options": offered, "deadline": deadline_seconds}
    digest = digest_of({**asked, **draft.facts()})
    with hold(desk, thread_id, token) as held:
        request = Request("ask", held.agent, key, digest)
        earlier = desk.replay(held.tx, request)
        if earlier is not None:
            return earlier
        open_question = _same_open_question(held, draft, offered)
        if open_question is not None:
            result = Written(held.thread, open_question, late=held.late, already=True)
        else:
            result = _put(desk, held, draft, offered, deadline_seconds)
        return desk.remember(held.tx, request, result)


def _put(
    desk: Desk,
    held: Held,
    draft: Draft,
    options: tuple[str, ...],
    deadline_seconds: float | None,
) -> Written:
    """Put a new question: its message, and the thread blocked by it."""
    states.require("ask", held.thread.state, held.thread.id)
    deadline = (
        None if deadline_seconds is None else held.tx.now.wall_ms + int(deadline_seconds * 1000)
    )
    heading = Heading("question", held.agent, options=options, deadline=deadline)
    message = desk.write_message(held.tx, held.thread, draft, heading)
    changes = {"question": message.id, "question_deadline": deadline}
    data = {"deadline": deadline, "late": held.late}
    move = Move("ask", states.BLOCKED, held.agent, changes, data, message)
    thread = desk.move(held.tx, held.thread, move)
    return Written(thread, message, late=held.late, already=False)


def done(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    body: str | None = None,
    payload: str | None = None,
    attach: Sequence[str] = (),
    files: "Sequence[Stored]" = (),
) -> Written:
    """Finish with a result. An exact repeat is `already`.

    Errors: `usage`, `result_refused` (by the thread's schema), and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    check_early(desk, thread_id, token, attach)
    draft = desk.draft(body, payload, attach, files)
    digest = digest_of({"verb": "done", **draft.facts()})
    with hold(desk, thread_id, token, digest) as held:
        schema = None if held.repeat else threads.result_schema(held.tx, held.thread)
        if schema is None:
            return _done(desk, held, draft, digest)
    # Only here: most threads have none. Judging takes its time, so the others do not wait for it
    # behind this transaction; the schema of a thread never changes.
    from . import accepting

    accepting.refuse_inside(desk)
    accepting.accept(thread_id, schema, draft)
    with hold(desk, thread_id, token, digest) as held:
        return _done(desk, held, draft, digest)


def _done(desk: Desk, held: Held, draft: Draft, digest: str) -> Written:
    """The thread's end with this result; the repeat of one is answered as it was."""
    if held.repeat is not None:
        return Written(held.thread, held.repeat, late=held.thread.late, already=True)
    return _finish(desk, held, Move("done", states.DONE, held.agent, ENDED), draft, digest)


class Failure:
    """A bad end. `retry_in_seconds`: hand the thread back for another try while deliveries are
    left. `fatal` tells a scheduler not to retry. `files` are in `artifacts` already."""

    def __init__(
        self,
        body: str,
        retry_in_seconds: float | None = None,
        fatal: bool = False,
        files: "Sequence[Stored]" = (),
    ) -> None:
        self.body = body
        self.retry_in_seconds = retry_in_seconds
        self.fatal = fatal
        self.files = files


def fail(desk: Desk, thread_id: str, token: str, failure: Failure) -> Written:
    """Finish badly, or hand back for another try. An exact repeat is `already`.

    Errors: `usage`, and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    retry_in_seconds, fatal = failure.retry_in_seconds, failure.fatal
    if retry_in_seconds is not None:
        limits.check_delay_seconds("retry-in", retry_in_seconds)
        if fatal:
            raise usage("--fatal and --retry-in exclude each other")
    draft = desk.draft(limits.check_body(failure.body), None, (), failure.files)
    digest = digest_of(
        {"verb": "fail", "retry_in": retry_in_seconds, "fatal": fatal, **draft.facts()}
    )
    with hold(desk, thread_id, token, digest) as held:
        if held.repeat is not None:
            return Written(held.thread, held.repeat, late=held.thread.late, already=True)
        target, changes = states.FAILED, ENDED | {"fatal": fatal, "reason": "failed"}
        if retry_in_seconds is not None:
            if held.thread.deliveries >= held.thread.max_deliveries:
                changes = ENDED | {"reason": "exhausted"}
            else:
                target = states.PENDING
                changes = _back_to_queue(held, retry_in_seconds, "failed")
        return _finish(desk, held, Move("fail", target, held.agent, changes), draft, digest)


def release(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    delay_seconds: float = 0,
    body: str | None = None,
) -> Written:
    """Hand back untouched: the delivery is given back. An exact repeat is `already`.

    Errors: `usage`, and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    limits.check_delay_seconds("delay", delay_seconds)
    draft = desk.draft(body)
    digest = digest_of({"verb": "release", "delay": delay_seconds, **draft.facts()})
    with hold(desk, thread_id, token, digest) as held:
        if held.repeat is not None:
            return Written(held.thread, held.repeat, late=held.late, already=True)
        changes = _back_to_queue(held, delay_seconds, "released")
        if held.lease.counted:
            changes["deliveries"] = held.thread.deliveries - 1
        else:
            changes["uncounted"] = 1
        move = Move("release", states.PENDING, held.agent, changes)
        return _finish(desk, held, move, draft, digest)


def attach_output(
    desk: Desk, thread_id: str, token: str, files: "Sequence[Stored]"
) -> tuple[Artifact, ...]:
    """Attach what a worker's command left behind, also after the command itself has ended
    the lease with this token.

    Errors: `not_found`, `cancelled`, `lease_lost`.
    """
    with hold(desk, desk.thread_id(thread_id), token, ended_too=True) as held:
        artifacts = desk.write_artifacts(held.tx, held.thread.id, None, files)
        desk.record(
            held.tx,
            "artifacts_attached",
            held.thread,
            actor=held.agent,
            data={
                "from": held.thread.state,
                "artifacts": [artifact_facts(a) for a in artifacts],
            },
        )
        return artifacts


# -- common steps ------------------------------------------------------------------------


def _extend(desk: Desk, held: Held, lease_seconds: float | None, *, record: bool) -> Thread:
    lease_ms = held.lease.lease_ms if lease_seconds is None else int(lease_seconds * 1000)
    expires_at = leases.renew(held.tx, held.lease.token, lease_ms, held.tx.now)
    thread = desk.thread_now(held.tx, held.thread.id)
    if record:
        desk.record(
            held.tx,
            states.event_of("renew", thread.state, thread.state),
            thread,
            actor=held.agent,
            data={"from": thread.state, "expires_at": expires_at, "late": held.late},
        )
    return thread


def _finish(desk: Desk, held: Held, move: Move, draft: Draft, digest: str) -> Written:
    """End the lease with its last message, and make the move, which gets that message; what the
    request was is kept for a repeat."""
    states.require(move.verb, held.thread.state, held.thread.id)
    ended_by, kind = _ENDINGS[move.verb]
    message = desk.write_message(held.tx, held.thread, draft, Heading(kind, held.agent))
    end = leases.End(ended_by, digest, message.id)
    leases.end(held.tx, held.thread.id, held.lease.epoch, end, now_ms=held.tx.now.wall_ms)
    move.message = message
    move.data = {
        "late": held.late,
        "lease_holder": held.agent,
        "reason": move.changes.get("reason"),
        "available_at": move.changes.get("available_at"),
        "fatal": bool(move.changes.get("fatal")),
    }
    if move.target in states.FINAL_STATES:
        move.changes = {**move.changes, "late": held.late}
    thread = desk.move(held.tx, held.thread, move)
    return Written(thread, message, late=held.late, already=False)


def _same_open_question(held: Held, draft: Draft, options: tuple[str, ...]) -> Message | None:
    if held.thread.question is None:
        return None
    asked = messages.get(held.tx, held.thread.question)
    assert asked is not None
    same = (asked.sender, asked.body_sha256, asked.options) == (
        held.agent,
        draft.sha256,
        options,
    )
    return asked if same else None


def _back_to_queue(held: Held, delay_seconds: float, reason: str) -> dict[str, object]:
    available_at = held.tx.now.wall_ms + int(delay_seconds * 1000)
    return ENDED | {
        "available_at": available_at,
        "delayed": available_at > held.tx.now.wall_ms,
        "reason": reason,
    }
