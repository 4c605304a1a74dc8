"""What anybody may do to a thread: send it, write on it, cancel it, unseal it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_id, check_key, check_name, new_thread_id
from inbox_orch.shared.requests import digest_of
from inbox_orch.shared.store.engine import Transaction

from ..domain import limits, states
from ..domain.limits import check_number
from ..domain.model import Message, Thread
from ..store import cursors, leases, messages, threads
from .desk import ENDED, Draft, Written, message_facts
from .reaping import Reaping, question_closed

if TYPE_CHECKING:
    from inbox_orch.shared.artifacts import Stored


class Sending(Reaping):
    """`send`, `reply`, `cancel`, `unseal`."""

    def send(
        self,
        *,
        to: str,
        subject: str,
        body: str | None = None,
        payload: str | None = None,
        attach: Sequence[str] = (),
        priority: int = 0,
        delay_seconds: float = 0,
        max_deliveries: int = limits.DEFAULT_MAX_DELIVERIES,
        sealed: bool = False,
        strict: bool = False,
        key: str | None = None,
        agent: str | None = None,
        thread_id: str | None = None,
        files: "Sequence[Stored]" = (),
    ) -> Written:
        """Open a thread.

        `to` is the mailbox, `payload` the text of a JSON object, `attach` paths of files, `files`
        what is in `artifacts` already, `delay_seconds` until it may be claimed. `strict` refuses a
        mailbox that nobody has ever read; the result says `recipient_known` in any case.
        `thread_id` is a new id that the caller made, so that the first message can name it.
        Errors: `usage`, `key_conflict`, `unknown_recipient`, and those of every write.
        """
        author = self.acting(agent)
        check_name(to, "mailbox")
        limits.check_subject(subject)
        check_number("priority", priority, limits.MIN_PRIORITY, limits.MAX_PRIORITY, whole=True)
        check_number("max-deliveries", max_deliveries, 1, limits.MOST_DELIVERIES, whole=True)
        limits.check_delay_seconds("delay", delay_seconds)
        if key is not None:
            check_key(key)
        draft = self.draft(body, payload, attach, files)
        request = {
            "to": to,
            "subject": subject,
            "priority": priority,
            "delay": delay_seconds,
            "max_deliveries": max_deliveries,
            "sealed": sealed,
            **draft.facts(),
        }
        digest = digest_of(request)
        new_thread = new_thread_id() if thread_id is None else check_id(thread_id, "thread")
        with self.database.transaction() as tx:
            earlier = self.replay(tx, "send", author, key, digest)
            if earlier is not None:
                return earlier
            self.reap_in(tx, (to,))
            tx.keep()
            known = cursors.has_reader(tx, to)
            if strict and not known:
                raise _unknown_recipient(tx, to)
            available_at = tx.now.wall_ms + int(delay_seconds * 1000)
            columns = {
                "id": new_thread,
                "subject": subject,
                "sender": author,
                "mailbox": to,
                "priority": priority,
                "sealed": sealed,
                "available_at": available_at,
                "delayed": available_at > tx.now.wall_ms,
                "max_deliveries": max_deliveries,
            }
            thread, message = self._open(tx, columns, draft)
            result = Written(thread, message, recipient_known=known)
            return self.remember(tx, "send", author, key, digest, result)

    def _open(
        self, tx: Transaction, columns: dict[str, Any], draft: Draft
    ) -> tuple[Thread, Message]:
        """The new thread with its first message and its event."""
        author = columns["sender"]
        times = {"created_at": tx.now.wall_ms, "updated_at": tx.now.wall_ms}
        threads.insert(tx, {"state": states.PENDING, **columns, **times})
        thread = self.thread_now(tx, columns["id"])
        message = self.write_message(tx, thread, draft, kind="task", author=author)
        self.record(
            tx,
            states.event_of("send", None, states.PENDING),
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
                **message_facts(message),
            },
        )
        return thread, message

    def reply(
        self,
        thread_id: str,
        *,
        body: str,
        attach: Sequence[str] = (),
        key: str | None = None,
        agent: str | None = None,
        files: "Sequence[Stored]" = (),
    ) -> Written:
        """Write on a thread, whoever holds it. On a blocked one, by anybody but the asker, it
        answers the question (`answered` in the result).

        Errors: `usage`, `not_found` (also for a sealed thread that the author may not see),
        `key_conflict`, and those of every write.
        """
        author = self.acting(agent)
        if key is not None:
            check_key(key)
        thread_id = self.thread_id(thread_id)
        draft = self.draft(limits.check_body(body), None, attach, files)
        digest = digest_of({"thread": thread_id, **draft.facts()})
        with self.database.transaction() as tx:
            earlier = self.replay(tx, "reply", author, key, digest)
            if earlier is not None:
                return earlier
            thread = self.reap_thread(tx, self._find_for(tx, thread_id, author))
            tx.keep()
            answers = self._question_answered_by(tx, thread.question, author)
            message = self.write_message(
                tx, thread, draft, kind="reply", author=author, answers=answers
            )
            if answers is None:
                self.record(tx, "message_added", thread, actor=author, data=message_facts(message))
            else:
                thread = self.move(
                    tx,
                    thread,
                    "answer",
                    states.PENDING if thread.holder is None else states.CLAIMED,
                    actor=author,
                    changes=question_closed(tx, thread),
                    data={"question": answers},
                    message=message,
                )
            result = Written(thread, message, answered=answers is not None)
            return self.remember(tx, "reply", author, key, digest, result)

    def cancel(
        self, thread_id: str, *, body: str | None = None, agent: str | None = None
    ) -> Written:
        """Stop a thread, whoever holds it. Its holder learns of it by exit 10.

        Repeating it is `already`. Errors: `not_found`, `invalid_state` (done or failed).
        """
        author = self.acting(agent)
        draft = self.draft(body)
        with self.database.transaction() as tx:
            thread = self.reap_thread(tx, self._find_for(tx, thread_id, author))
            tx.keep()
            if thread.state == states.CANCELLED:
                return Written(thread, already=True)
            states.require("cancel", thread.state, thread.id)
            message = self.write_message(tx, thread, draft, kind="cancel", author=author)
            if thread.lease is not None:
                leases.end(
                    tx,
                    thread.id,
                    thread.epoch,
                    ended_by="cancelled",
                    now_ms=tx.now.wall_ms,
                )
                tx.ring(thread.lease.holder)
            after = self.move(
                tx,
                thread,
                "cancel",
                states.CANCELLED,
                actor=author,
                changes=ENDED | {"reason": "cancelled"},
                data={"lease_holder": thread.holder},
                message=message,
            )
            tx.ring(thread.mailbox)
            return Written(after, message, already=False)

    def unseal(self, thread_id: str, *, agent: str | None = None) -> Written:
        """Open a sealed thread to everybody; only its sender may.

        Errors: `not_found`, `invalid_state` (not the sender).
        """
        author = self.acting(agent)
        with self.database.transaction() as tx:
            thread = self._find_for(tx, thread_id, author)
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
            after = self.thread_now(tx, thread.id)
            self.record(tx, "thread_unsealed", after, actor=author, data={"from": thread.state})
            return Written(after, already=False)

    def _find_for(self, tx: Transaction, thread_id: str, author: str) -> Thread:
        """The thread, unless it is sealed to the author. These calls name no mailboxes, so that
        an agent reads what it has read before."""
        thread = self.find_thread(tx, thread_id, tx.now)
        known = cursors.unknown_to(tx, author, (thread.mailbox,)) == []
        reads = (author, thread.mailbox) if known else (author,)
        return self.check_visible(tx, thread, author, reads)

    def _question_answered_by(
        self, tx: Transaction, question: int | None, author: str
    ) -> int | None:
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
        f"nobody has ever read the mailbox {mailbox!r}",
        hint=f"did you mean {near[0]}?" if near else "without --strict it is stored all the same",
        details={"mailbox": mailbox},
    )
