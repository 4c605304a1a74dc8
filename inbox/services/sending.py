"""What any agent may do to a thread: send it, write on it, cancel it, unseal it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.digests import digest_of, sha256_hex
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_id, check_key, check_name, new_thread_id
from inbox_orch.shared.store.engine import Transaction
from inbox_orch.shared.store.requests import Request

from ..domain import limits, states
from ..domain.limits import check_number
from ..domain.model import Message, Thread, Written
from ..store import cursors, leases, messages, threads
from . import reaping
from .desk import ENDED, Desk, Draft, Heading, Move, message_facts
from .reaping import question_closed

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import Stored


_SENT = states.event_of("send", None, states.PENDING)


class Outgoing(NamedTuple):
    """A thread that is to be sent, as its sender words it.

    `to` is the mailbox, `payload` the text of a JSON object, `attach` paths of files, `files`
    what is in `artifacts` already, `delay_seconds` until it may be claimed. `strict` refuses a
    mailbox that nobody has ever read. `thread_id` is a new id that the caller made, so that the
    first message can name it. `schema` is the text of a JSON Schema for the result.
    """

    to: str
    subject: str
    body: str | None = None
    payload: str | None = None
    attach: Sequence[str] = ()
    priority: int = 0
    delay_seconds: float = 0
    max_deliveries: int = limits.DEFAULT_MAX_DELIVERIES
    sealed: bool = False
    strict: bool = False
    thread_id: str | None = None
    files: Sequence["Stored"] = ()
    schema: str | None = None


def send(
    desk: Desk, outgoing: Outgoing, *, key: str | None = None, agent: str | None = None
) -> Written:
    """Open a thread; the result says in any case whether the recipient is known.

    Errors: `usage`, `key_conflict`, `unknown_recipient`, and those of every write.
    """
    author = desk.acting(agent)
    _check(outgoing)
    if key is not None:
        check_key(key)
    if outgoing.schema is not None:
        from . import accepting

        accepting.refuse_inside(desk)
        outgoing = outgoing._replace(schema=accepting.checked(outgoing.schema))
    draft = desk.draft(outgoing.body, outgoing.payload, outgoing.attach, outgoing.files)
    request = Request("send", author, key, _digest(outgoing, draft))
    thread_id = outgoing.thread_id
    new_thread = new_thread_id() if thread_id is None else check_id(thread_id, "thread")
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, request)
        if earlier is not None:
            return earlier
        reaping.reap_in(desk, tx, (outgoing.to,))
        tx.keep()
        known = cursors.has_reader(tx, outgoing.to)
        if outgoing.strict and not known:
            raise _unknown_recipient(tx, outgoing.to)
        columns = {"id": new_thread, "sender": author, **_columns(outgoing, tx.now.wall_ms)}
        thread, message = _open(desk, tx, columns, draft)
        result = Written(thread, message, recipient_known=known)
        return desk.remember(tx, request, result)


def _check(outgoing: Outgoing) -> None:
    """Error `usage` for what cannot be sent; the content is checked where it is drafted."""
    check_name(outgoing.to, "mailbox")
    limits.check_subject(outgoing.subject)
    low, high = limits.MIN_PRIORITY, limits.MAX_PRIORITY
    check_number("priority", outgoing.priority, low, high, whole=True)
    most = limits.MOST_DELIVERIES
    check_number("max-deliveries", outgoing.max_deliveries, 1, most, whole=True)
    limits.check_delay_seconds("delay", outgoing.delay_seconds)


def _digest(outgoing: Outgoing, draft: Draft) -> str:
    """Of everything that makes two requests the same one."""
    return digest_of(
        {
            "to": outgoing.to,
            "subject": outgoing.subject,
            "priority": outgoing.priority,
            "delay": outgoing.delay_seconds,
            "max_deliveries": outgoing.max_deliveries,
            "sealed": outgoing.sealed,
            **_schema_of(outgoing),
            **draft.facts(),
        }
    )


def _schema_of(outgoing: Outgoing) -> dict[str, Any]:
    """The column of the schema, where there is one."""
    return {} if outgoing.schema is None else {"result_schema": outgoing.schema}


def _columns(outgoing: Outgoing, now_ms: int) -> dict[str, Any]:
    """The columns of the new thread that its sender decides."""
    available_at = now_ms + int(outgoing.delay_seconds * 1000)
    return {
        "subject": outgoing.subject,
        "mailbox": outgoing.to,
        "priority": outgoing.priority,
        "sealed": outgoing.sealed,
        "available_at": available_at,
        "delayed": available_at > now_ms,
        "max_deliveries": outgoing.max_deliveries,
        **_schema_of(outgoing),
    }


def open_thread(
    desk: Desk,
    tx: Transaction,
    outgoing: Outgoing,
    draft: Draft,
    *,
    agent: str,
) -> Thread:
    """`send` in the caller's transaction, who has checked all of it, has drafted the content and
    made the id, has no key, and does not ask who reads the mailbox."""
    reaping.reap_in(desk, tx, (outgoing.to,))
    own = {"id": outgoing.thread_id, "sender": agent}
    columns = {**own, **_columns(outgoing, tx.now.wall_ms)}
    thread, _ = _open(desk, tx, columns, draft)
    return thread


def _open(
    desk: Desk, tx: Transaction, columns: dict[str, Any], draft: Draft
) -> tuple[Thread, Message]:
    """The new thread with its first message and its event."""
    author = columns["sender"]
    times = {"created_at": tx.now.wall_ms, "updated_at": tx.now.wall_ms}
    threads.insert(tx, {"state": states.PENDING, **columns, **times})
    thread = desk.thread_now(tx, columns["id"])
    message = desk.write_message(tx, thread, draft, Heading("task", author))
    desk.record(
        tx,
        _SENT,
        thread,
        actor=author,
        data={
            "from": None,
            "sender": author,
            "subject_sha256": digest_of({"subject": thread.subject}),
            "priority": thread.priority,
            "sealed": thread.sealed,
            "available_at": thread.available_at,
            "max_deliveries": thread.max_deliveries,
            **_schema_facts(columns.get("result_schema")),
            **message_facts(message),
        },
    )
    return thread, message


def _schema_facts(schema: str | None) -> dict[str, Any]:
    """How a schema stands in an event: as bodies do, as digest and length."""
    if schema is None:
        return {}
    content = schema.encode()
    return {"schema_sha256": sha256_hex(content), "schema_bytes": len(content)}


def attach(
    desk: Desk,
    subject: str,
    files: "Sequence[Stored]",
    *,
    body: str,
    result: str,
    sealed: bool = False,
    agent: str | None = None,
) -> Written:
    """Keep files on a new thread of the agent's own that is done, in one transaction.

    `body` is what the thread asks for, `result` the message that has the files; `sealed` hides it
    from others. Its history is that of any thread which was sent, claimed and done.
    Errors: `usage`; `busy` when a file has been cleared away since it was stored; those of every
    write.
    """
    # Only here: who sends need not load them.
    from . import claiming, holding

    author = desk.acting(agent)
    outgoing = Outgoing(author, subject, body, sealed=sealed, thread_id=new_thread_id())
    _check(outgoing)
    draft = desk.draft(body)
    with desk.database.transaction() as tx:
        thread_id = open_thread(desk, tx, outgoing, draft, agent=author).id
        token = claiming.claim(desk, thread_id, agent=author).lease.token
        assert token is not None
        return holding.done(desk, thread_id, token, body=result, files=files)


def reply(
    desk: Desk,
    thread_id: str,
    *,
    body: str,
    attach: Sequence[str] = (),
    key: str | None = None,
    agent: str | None = None,
    files: "Sequence[Stored]" = (),
) -> Written:
    """Write on a thread, held or not. On a blocked one, by an agent other than the asker, it
    answers the question (`answered` in the result).

    Errors: `usage`, `not_found` (also for a sealed thread that the author may not see),
    `key_conflict`, and those of every write.
    """
    author = desk.acting(agent)
    if key is not None:
        check_key(key)
    thread_id = desk.thread_id(thread_id)
    draft = desk.draft(limits.check_body(body), None, attach, files)
    digest = digest_of({"thread": thread_id, **draft.facts()})
    request = Request("reply", author, key, digest)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, request)
        if earlier is not None:
            return earlier
        thread = reaping.reap_thread(desk, tx, _find_for(desk, tx, thread_id, author))
        tx.keep()
        answers = _question_answered_by(tx, thread.question, author)
        message = desk.write_message(tx, thread, draft, Heading("reply", author, answers=answers))
        if answers is None:
            desk.record(tx, "message_added", thread, actor=author, data=message_facts(message))
        else:
            target = states.PENDING if thread.holder is None else states.CLAIMED
            changes, data = question_closed(tx, thread), {"question": answers}
            thread = desk.move(tx, thread, Move("answer", target, author, changes, data, message))
        result = Written(thread, message, answered=answers is not None)
        return desk.remember(tx, request, result)


def cancel(
    desk: Desk, thread_id: str, *, body: str | None = None, agent: str | None = None
) -> Written:
    """Stop a thread, even while it is held. Its holder learns of it by exit 10.

    Repeating it is `already`. Errors: `not_found`, `invalid_state` (done or failed).
    """
    author = desk.acting(agent)
    draft = desk.draft(body)
    with desk.database.transaction() as tx:
        thread = reaping.reap_thread(desk, tx, _find_for(desk, tx, thread_id, author))
        tx.keep()
        if thread.state == states.CANCELLED:
            return Written(thread, already=True)
        states.require("cancel", thread.state, thread.id)
        message = desk.write_message(tx, thread, draft, Heading("cancel", author))
        if thread.lease is not None:
            end = leases.End("cancelled")
            leases.end(tx, thread.id, thread.epoch, end, now_ms=tx.now.wall_ms)
            tx.ring(thread.lease.holder)
        changes, data = ENDED | {"reason": "cancelled"}, {"lease_holder": thread.holder}
        after = desk.move(
            tx, thread, Move("cancel", states.CANCELLED, author, changes, data, message)
        )
        tx.ring(thread.mailbox)
        return Written(after, message, already=False)


def unseal(desk: Desk, thread_id: str, *, agent: str | None = None) -> Written:
    """Open a sealed thread to everyone; only its sender may.

    Errors: `not_found`, `invalid_state` (not the sender).
    """
    author = desk.acting(agent)
    with desk.database.transaction() as tx:
        thread = _find_for(desk, tx, thread_id, author)
        if thread.sender != author:
            raise InboxOrchError(
                "invalid_state",
                f"only {thread.sender}, who sent the thread, may unseal it",
                hint=f"ask {thread.sender} to; who reads its mailbox sees it all the same",
                details={"thread": thread.id, "sender": thread.sender},
            )
        if not thread.sealed:
            return Written(thread, already=True)
        threads.update(
            tx,
            thread.id,
            {"sealed": 0, "updated_at": tx.now.wall_ms},
            expected_state=thread.state,
            expected_epoch=thread.epoch,
        )
        after = desk.thread_now(tx, thread.id)
        desk.record(tx, "thread_unsealed", after, actor=author, data={"from": thread.state})
        return Written(after, already=False)


def _find_for(desk: Desk, tx: Transaction, thread_id: str, author: str) -> Thread:
    """The thread, unless it is sealed to the author. These calls name no mailboxes, so that
    an agent reads what it has read before."""
    thread = desk.find_thread(tx, thread_id, tx.now)
    known = cursors.unknown_to(tx, author, (thread.mailbox,)) == []
    reads = (author, thread.mailbox) if known else (author,)
    return desk.check_visible(tx, thread, author, reads)


def _question_answered_by(tx: Transaction, question: int | None, author: str) -> int | None:
    """The open question that a reply by `author` answers: any but one's own."""
    if question is None:
        return None
    asked = messages.get(tx, question)
    return question if asked is not None and asked.sender != author else None


def _unknown_recipient(tx: Transaction, mailbox: str) -> InboxOrchError:
    import difflib

    near = difflib.get_close_matches(mailbox, cursors.known_mailboxes(tx), n=1)
    return InboxOrchError(
        "unknown_recipient",
        f"the mailbox {mailbox!r} has never been read",
        hint=f"did you mean {near[0]}?" if near else "without --strict it is stored all the same",
        details={"mailbox": mailbox},
    )
