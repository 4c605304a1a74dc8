"""What the holder of a lease does: renew, update, ask, finish, fail, release.

Every method presents the thread and the token. The order in which a token is judged is the
contract's (guarantee 1) and stands in `_judge` alone.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import refuse_text
from inbox_orch.shared.store.engine import Transaction

from ..domain import limits, states
from ..domain.model import Artifact, Message, Thread
from ..store import leases, messages, threads
from ..store.leases import LeaseRow
from . import reaping
from .desk import ENDED, Desk, Draft, Written, artifact_facts
from .reaping import question_is_overdue

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import Stored


class Held(NamedTuple):
    """A call by the holder: inside its transaction, the token judged.

    `repeat` is set when the call is an exact repeat of the one that ended the lease.
    """

    tx: Transaction
    thread: Thread
    lease: LeaseRow
    late: bool
    repeat: Message | None

    @property
    def agent(self) -> str:
        """The holder."""
        return self.lease.holder


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
    _check_early(desk, thread_id, token, attach)
    draft = desk.draft(body, None, attach)
    digest = digest_of({"thread": thread_id, "progress": progress, **draft.facts()})
    with hold(desk, thread_id, token, durable=bool(draft.files)) as held:
        earlier = desk.replay(held.tx, "update", held.agent, key, digest)
        if earlier is not None:
            return earlier
        states.require("update", held.thread.state, held.thread.id)
        _extend(desk, held, None, record=False)
        message = desk.write_message(
            held.tx, held.thread, draft, kind="progress", author=held.agent, progress=progress
        )
        thread = desk.move(
            held.tx,
            held.thread,
            "update",
            held.thread.state,
            actor=held.agent,
            changes={} if progress is None else {"progress": progress},
            data={"progress": progress, "late": held.late},
            message=message,
        )
        result = Written(thread, message, thread.lease, late=held.late)
        return desk.remember(held.tx, "update", held.agent, key, digest, result)


def ask(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    body: str,
    options: Sequence[str] = (),
    deadline_seconds: float | None = None,
    key: str | None = None,
) -> Written:
    """Ask the sender; the thread is blocked until another agent replies, or for
    `deadline_seconds`. Repeating the open question is `already`.

    Errors: `usage`, `key_conflict`, `invalid_state` (another question is open), and those of
    every token.
    """
    thread_id = desk.thread_id(thread_id)
    refuse_text(options, "options")
    offered = limits.check_options(tuple(options))
    if deadline_seconds is not None:
        limits.check_delay_seconds("deadline", deadline_seconds, 0.001)
    draft = desk.draft(limits.check_body(body))
    digest = digest_of(
        {
            "thread": thread_id,
            "options": offered,
            "deadline": deadline_seconds,
            **draft.facts(),
        }
    )
    with hold(desk, thread_id, token) as held:
        earlier = desk.replay(held.tx, "ask", held.agent, key, digest)
        if earlier is not None:
            return earlier
        open_question = _same_open_question(desk, held, draft, offered)
        if open_question is not None:
            result = Written(held.thread, open_question, late=held.late, already=True)
            return desk.remember(held.tx, "ask", held.agent, key, digest, result)
        states.require("ask", held.thread.state, held.thread.id)
        deadline = (
            None if deadline_seconds is None else held.tx.now.wall_ms + int(deadline_seconds * 1000)
        )
        message = desk.write_message(
            held.tx,
            held.thread,
            draft,
            kind="question",
            author=held.agent,
            options=offered,
            deadline=deadline,
        )
        thread = desk.move(
            held.tx,
            held.thread,
            "ask",
            states.BLOCKED,
            actor=held.agent,
            changes={"question": message.id, "question_deadline": deadline},
            data={"deadline": deadline, "late": held.late},
            message=message,
        )
        result = Written(thread, message, late=held.late, already=False)
        return desk.remember(held.tx, "ask", held.agent, key, digest, result)


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

    Errors: `usage`, and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    _check_early(desk, thread_id, token, attach)
    draft = desk.draft(body, payload, attach, files)
    digest = digest_of({"verb": "done", **draft.facts()})
    with hold(desk, thread_id, token, digest) as held:
        if held.repeat is not None:
            return Written(held.thread, held.repeat, late=held.thread.late, already=True)
        return _finish(desk, held, "done", states.DONE, draft, "result", digest, ENDED)


def fail(
    desk: Desk,
    thread_id: str,
    token: str,
    *,
    body: str,
    retry_in_seconds: float | None = None,
    fatal: bool = False,
    files: "Sequence[Stored]" = (),
) -> Written:
    """Finish badly. With `retry_in_seconds`: hand back for another try while deliveries are
    left. `fatal` tells a scheduler not to retry. An exact repeat is `already`.

    Errors: `usage`, and those of every token.
    """
    thread_id = desk.thread_id(thread_id)
    if retry_in_seconds is not None:
        limits.check_delay_seconds("retry-in", retry_in_seconds)
        if fatal:
            raise usage("--fatal and --retry-in exclude each other")
    draft = desk.draft(limits.check_body(body), None, (), files)
    digest = digest_of(
        {"verb": "fail", "retry_in": retry_in_seconds, "fatal": fatal, **draft.facts()}
    )
    with hold(desk, thread_id, token, digest) as held:
        if held.repeat is not None:
            return Written(held.thread, held.repeat, late=held.thread.late, already=True)
        if retry_in_seconds is None:
            changes = ENDED | {"fatal": fatal, "reason": "failed"}
            return _finish(desk, held, "fail", states.FAILED, draft, "failure", digest, changes)
        if held.thread.deliveries >= held.thread.max_deliveries:
            changes = ENDED | {"reason": "exhausted"}
            return _finish(desk, held, "fail", states.FAILED, draft, "failure", digest, changes)
        changes = _back_to_queue(held, retry_in_seconds, "failed")
        return _finish(desk, held, "fail", states.PENDING, draft, "failure", digest, changes)


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
        return _finish(desk, held, "release", states.PENDING, draft, "release", digest, changes)


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


# -- judging a token ---------------------------------------------------------------------


@contextlib.contextmanager
def hold(
    desk: Desk,
    thread_id: str,
    token: str,
    digest: str | None = None,
    *,
    durable: bool = True,
    ended_too: bool = False,
) -> Iterator[Held]:
    """One transaction of a holder. A cancelled thread's holder is told, and that it has
    been told is recorded, in the same transaction.

    Others act on what is recorded besides the call itself, so that has to be on the disk,
    even where the call need not be.
    """
    with desk.database.transaction(durable=durable) as tx:
        thread = desk.find_thread(tx, thread_id, tx.now)
        lease = _judge(desk, tx, thread, token)
        lasting = tx.durable or not (lease is None or question_is_overdue(thread, tx.now))
        if lasting and lease is not None:
            yield _decide(desk, tx, thread, lease, digest, ended_too)
            return
        if lasting and not thread.cancel_seen:
            _note_cancel_seen(desk, tx, thread, token)
    if not lasting:
        # Nothing has been written; how a commit is made must be known before it begins.
        with hold(desk, thread_id, token, digest, ended_too=ended_too) as held:
            yield held
        return
    raise cancelled(thread)


def _judge(desk: Desk, tx: Transaction, thread: Thread, token: str) -> LeaseRow | None:
    """The lease of a token that is the thread's last one; None when the thread has been
    cancelled. Error `lease_lost` for any other token."""
    lease = leases.by_token(tx, token)
    last = lease is not None and (lease.thread_id, lease.epoch) == (thread.id, thread.epoch)
    if last and thread.state == states.CANCELLED:
        return None
    if lease is None or not last or lease.ended_by == "expired":
        raise lease_lost(thread, lease)
    return lease


def _decide(
    desk: Desk,
    tx: Transaction,
    thread: Thread,
    lease: LeaseRow,
    digest: str | None,
    ended_too: bool,
) -> Held:
    if lease.ended_by is not None:
        if digest is not None and digest == lease.end_digest:
            assert lease.end_message is not None
            message = messages.get(tx, lease.end_message)
            return Held(tx, thread, lease, thread.late, message)
        if ended_too:
            return Held(tx, thread, lease, False, None)
        raise InboxOrchError(
            "invalid_state",
            f"this lease of thread {thread.id} has ended: it was {lease.ended_by}",
            hint="claim the thread again to go on, if it is pending",
            details={"thread": thread.id, "state": thread.state, "ended_by": lease.ended_by},
        )
    thread = reaping.reap_question(desk, tx, thread)
    tx.keep()
    return Held(tx, thread, lease, lease.expired(tx.now), None)


def _note_cancel_seen(desk: Desk, tx: Transaction, thread: Thread, token: str) -> None:
    threads.update(
        tx,
        thread.id,
        {"cancel_seen": 1},
        expected_state=thread.state,
        expected_epoch=thread.epoch,
    )
    lease = leases.by_token(tx, token)
    assert lease is not None
    desk.record(tx, "cancel_seen", thread, actor=lease.holder, data={"from": thread.state})


def _check_early(desk: Desk, thread_id: str, token: str, attach: Sequence[str]) -> None:
    """Judge the token before a large file is copied in for nothing."""
    if attach:
        with desk.database.snapshot() as snapshot:
            thread = desk.find_thread(snapshot, thread_id, desk.database.clock.now())
            lease = leases.by_token(snapshot, token)
        if lease is None or (lease.thread_id, lease.epoch) != (thread.id, thread.epoch):
            raise lease_lost(thread, lease)


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


def _finish(
    desk: Desk,
    held: Held,
    verb: str,
    target: str,
    draft: Draft,
    kind: str,
    digest: str,
    changes: dict[str, object],
) -> Written:
    """End the lease with its last message; what the request was is kept for a repeat."""
    states.require(verb, held.thread.state, held.thread.id)
    message = desk.write_message(held.tx, held.thread, draft, kind=kind, author=held.agent)
    leases.end(
        held.tx,
        held.thread.id,
        held.lease.epoch,
        ended_by={"done": "done", "fail": "failed", "release": "released"}[verb],
        now_ms=held.tx.now.wall_ms,
        digest=digest,
        message_id=message.id,
    )
    final = target in states.FINAL_STATES
    thread = desk.move(
        held.tx,
        held.thread,
        verb,
        target,
        actor=held.agent,
        changes=changes | ({"late": held.late} if final else {}),
        data={
            "late": held.late,
            "lease_holder": held.agent,
            "reason": changes.get("reason"),
            "available_at": changes.get("available_at"),
            "fatal": bool(changes.get("fatal")),
        },
        message=message,
    )
    return Written(thread, message, late=held.late, already=False)


def _same_open_question(
    desk: Desk, held: Held, draft: Draft, options: tuple[str, ...]
) -> Message | None:
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


def lease_lost(thread: Thread, lease: LeaseRow | None) -> InboxOrchError:
    """The token is not the thread's any more: exit 7, with who has it now, or how it ended."""
    expires_at = None if thread.lease is None else rfc3339(thread.lease.expires_at)
    now = f"held by {thread.holder}" if thread.holder else thread.state
    if thread.state == states.FAILED and thread.reason:
        now += f" ({thread.reason})"
    return InboxOrchError(
        "lease_lost",
        f"the token is not the current one of thread {thread.id}, which is now {now}",
        hint="stop working on it; nothing was changed. `claim` gets a new lease if it is pending",
        details={
            "thread": thread.id,
            "state": thread.state,
            "reason": thread.reason,
            "holder": thread.holder,
            "epoch": thread.epoch,
            "token_epoch": None if lease is None else lease.epoch,
            "expires_at": expires_at,
        },
    )


def cancelled(thread: Thread) -> InboxOrchError:
    """The thread was cancelled under its holder: exit 10."""
    return InboxOrchError(
        "cancelled",
        f"thread {thread.id} was cancelled",
        hint="stop working on it; what you have not handed in is not wanted any more",
        details={"thread": thread.id, "reason": thread.reason},
    )
