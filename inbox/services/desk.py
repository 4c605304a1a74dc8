"""What every service stands on: the open database, the artifacts, who is acting."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import (
    MOST_CANDIDATES,
    ambiguous,
    beginning_of_id,
    check_id,
    check_name,
    refuse_text,
)
from inbox_orch.shared.store import events, requests
from inbox_orch.shared.store.engine import Engine, Transaction
from inbox_orch.shared.store.locate import locate
from inbox_orch.shared.store.sqlite.connecting import Opening
from inbox_orch.shared.store.sqlite.database import Database

from ..domain import limits, states
from ..domain.model import Artifact, Message, Thread, Written
from ..domain.routing import destinations
from ..store import cursors, messages, threads

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import ArtifactStore, Stored

# How much of an id is enough to tell which one is meant, and among how many threads.
_LEAST_OF_AN_ID, _MOST_OF_AN_ID = 8, 30
_NEWEST_LOOKED_AT = 200

SYSTEM = "_system"  # no agent can have this name

# Columns of a thread that is held no more and that has no open question.
ENDED: dict[str, object] = {
    "holder": None,
    "question": None,
    "question_deadline": None,
    "delayed": 0,
}


class Draft(NamedTuple):
    """The part of a message that its author gives."""

    body: str = ""
    payload: str | None = None
    # Only the inner name is a string: Python compiles a whole one, and its first call of the
    # compiler costs every command 1 ms.
    files: tuple["Stored", ...] = ()

    @property
    def sha256(self) -> str:
        """Of the body's bytes."""
        return sha256_hex(self.body.encode())

    def facts(self) -> dict[str, Any]:
        """What identifies the content, for the comparison of two requests."""
        return {
            "body": self.sha256,
            "payload": self.payload,
            "files": [[f.name, f.sha256] for f in self.files],
        }


class Heading:
    """What stands over a message: its kind and its author, and what only some kinds have.

    `options` and `deadline` belong to a question, `progress` (per cent) to an update; `answers`
    is the id of the question that is closed by it.
    """

    def __init__(
        self,
        kind: str,
        author: str,
        options: tuple[str, ...] = (),
        deadline: int | None = None,
        progress: int | None = None,
        answers: int | None = None,
    ) -> None:
        self.kind = kind
        self.author = author
        self.options = options
        self.deadline = deadline
        self.progress = progress
        self.answers = answers


class Move:
    """One transition of a thread by a verb: to which state, by whom, and what it brings along.

    `changes` are columns of the thread; `data` and the `message` stand in the event.
    """

    def __init__(
        self,
        verb: str,
        target: str,
        actor: str,
        changes: Mapping[str, Any] = {},
        data: Mapping[str, Any] = {},
        message: Message | None = None,
    ) -> None:
        self.verb = verb
        self.target = target
        self.actor = actor
        self.changes = changes
        self.data = data
        self.message = message


class Desk:
    """An open database and the calling agent: what every function of the bus is given first."""

    def __init__(self, database: Engine, agent: str | None = None) -> None:
        self.database = database
        self.agent = None if agent is None else check_name(agent, "agent")
        self._noted: set[tuple[str, str]] = set()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        agent: str | None = None,
        database_id: str | None = None,
        opening: Opening,
    ) -> Self:
        """Open the database at `path`, or the one that the working directory leads to.

        `agent` is the name under which calls act; `database_id` refuses any other database.
        Errors: `no_database`, `wrong_database`, `schema_newer`, `corrupt`, `read_only`, `usage`.
        """
        option = None if path is None else os.fspath(path)
        location = locate(option, os.environ.get("INBOX_DB"))
        database = Database.open(location.path, opening, expected_id=database_id)
        try:
            return cls(database, agent)
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Self:
        self.database.check_usable()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Join several calls into one transaction: all of them happen, or none.

        Waits must not be called inside it.
        """
        return self.database.transaction()

    @property
    def artifacts(self) -> "ArtifactStore":
        """The files beside the database; loaded only by those who have to do with files."""
        from inbox_orch.shared.store.artifacts import ArtifactStore

        return ArtifactStore(self.database.layout.artifacts)

    @property
    def now_ms(self) -> int:
        """The present moment on the wall clock of this bus, in milliseconds."""
        return self.database.now().wall_ms

    # -- who ---------------------------------------------------------------------------------

    def acting(self, agent: str | None) -> str:
        """The agent of this call; error `usage` when there is none."""
        name = agent if agent is not None else self.agent
        if name is None:
            raise usage(
                "this needs an agent name",
                hint="give --agent NAME or set INBOX_AGENT",
            )
        return check_name(name, "agent")

    @classmethod
    def reading(cls, agent: str, mailboxes: Iterable[str]) -> tuple[str, ...]:
        """The mailboxes that an agent reads: its own and those named."""
        return tuple(dict.fromkeys((agent, *cls.named_mailboxes(mailboxes))))

    @staticmethod
    def named_mailboxes(mailboxes: Iterable[str]) -> tuple[str, ...]:
        """The mailboxes of an option, each once; error `usage`."""
        refuse_text(mailboxes, "mailboxes")
        named = tuple(dict.fromkeys(check_name(m, "mailbox") for m in mailboxes))
        if len(named) > limits.MAX_MAILBOXES:
            raise usage(f"at most {limits.MAX_MAILBOXES} mailboxes can be read at once")
        return named

    # -- content -----------------------------------------------------------------------------

    def draft(
        self,
        body: str | None,
        payload: str | None = None,
        attach: Sequence[str] = (),
        files: "Sequence[Stored]" = (),
    ) -> Draft:
        """Check the content and copy the attachments in; nothing is in the database yet."""
        refuse_text(attach, "attach")
        if body is not None:
            limits.check_body(body)
        if payload is not None:
            limits.check_payload(payload)
        if len(attach) + len(files) > limits.MAX_ATTACHMENTS:
            raise usage(f"at most {limits.MAX_ATTACHMENTS} files can be attached at once")
        stored = (*files, *(self.artifacts.add_file(path) for path in attach))
        names = [s.name for s in stored]
        if len(set(names)) != len(names):
            raise usage("two attachments have the same name", hint="rename one of them")
        return Draft(body or "", payload, stored)

    # -- writing -----------------------------------------------------------------------------

    def write_message(
        self, tx: Transaction, thread: Thread, draft: Draft, heading: Heading
    ) -> Message:
        """Store a message with its artifacts, and wake its destinations after the commit."""
        to = destinations(
            heading.kind,
            heading.author,
            sender=thread.sender,
            mailbox=thread.mailbox,
            holder=thread.holder,
        )
        message = Message(
            id=0,
            thread_id=thread.id,
            kind=heading.kind,
            sender=heading.author,
            to=tuple(sorted(to)),
            body=draft.body,
            body_sha256=draft.sha256,
            body_bytes=len(draft.body.encode()),
            payload=draft.payload,
            options=heading.options,
            deadline=heading.deadline,
            progress=heading.progress,
            answers=heading.answers,
            epoch=thread.epoch or None,
            created_at=tx.now.wall_ms,
        )
        message = message._replace(id=messages.insert(tx, message))
        artifacts = self.write_artifacts(tx, thread.id, message.id, draft.files)
        tx.ring(*to)
        return message._replace(artifacts=artifacts)

    def write_artifacts(
        self,
        tx: Transaction,
        thread_id: str,
        message_id: int | None,
        files: "Sequence[Stored]",
    ) -> tuple[Artifact, ...]:
        """Name stored files on a thread."""
        named = []
        for stored in files:
            if not self.artifacts.has(stored):
                # Collected between the copy and this transaction; the caller repeats the call.
                raise InboxOrchError(
                    "busy",
                    f"the copy of {stored.name} was cleared away meanwhile",
                    hint="repeat the command",
                )
            artifact = Artifact(
                stored.name, stored.sha256, stored.size, message_id, tx.now.wall_ms, False
            )
            messages.insert_artifact(tx, thread_id, artifact)
            named.append(artifact)
        return tuple(named)

    def move(self, tx: Transaction, thread: Thread, move: Move) -> Thread:
        """Make one transition of the table, guarded, with its event; returns the thread after it.

        Error `invalid_state` when the table does not have it.
        """
        states.require(move.verb, thread.state, thread.id)
        columns: dict[str, Any] = {**move.changes, "state": move.target}
        columns["updated_at"] = tx.now.wall_ms
        if move.target in states.FINAL_STATES:
            columns["finished_at"] = tx.now.wall_ms
        changed = threads.update(
            tx,
            thread.id,
            columns,
            expected_state=thread.state,
            expected_epoch=thread.epoch,
        )
        assert changed, "the thread changed under the write lock"
        after = self.thread_now(tx, thread.id)
        self.record(
            tx,
            states.event_of(move.verb, thread.state, move.target),
            after,
            actor=move.actor,
            data={"from": thread.state, **move.data, **message_facts(move.message)},
        )
        if move.target == states.PENDING:
            tx.ring(thread.mailbox)
        return after

    def record(
        self,
        tx: Transaction,
        kind: str,
        thread: Thread,
        *,
        actor: str,
        data: Mapping[str, Any],
    ) -> None:
        """Append an event about a thread. Every one carries what folding needs: the state,
        epoch, deliveries and holder after the change."""
        state = {
            "to": thread.state,
            "epoch": thread.epoch,
            "deliveries": thread.deliveries,
            "holder": thread.holder,
        }
        about = events.About(thread_id=thread.id, mailbox=thread.mailbox)
        events.append(tx, kind, actor, {**state, **data}, about)

    def thread_now(self, tx: Transaction, thread_id: str) -> Thread:
        """A thread that is known to exist."""
        thread = threads.get(tx, thread_id, tx.now)
        assert thread is not None
        return thread

    def find_thread(self, tx: Any, thread_id: str, now: Moment) -> Thread:
        """The thread with this id; error `not_found`."""
        wanted = self.thread_id(thread_id)
        thread = threads.get(tx, wanted, now)
        if thread is None:
            near = self._near_thread(tx, wanted)
            raise not_found("thread", wanted, hint=near or "`inbox list` shows the threads")
        return thread

    def thread_id(self, text: str) -> str:
        """The id as it is stored, of the only thread that this agent may see and that begins so.
        Errors: `usage`, which lists them, when there are several; `not_found`, with the thread that
        may be meant."""
        try:
            return check_id(text, "thread")
        except InboxOrchError as refusal:
            with self.database.snapshot() as snapshot:
                begun = self._threads_beginning(snapshot, text)
                if len(begun) == 1:
                    return begun[0]
                if begun:
                    raise ambiguous("thread", text, begun) from refusal
                refusal.hint = self._near_thread(snapshot, text) or refusal.hint
            raise

    def _threads_beginning(self, tx: Any, text: str) -> list[str]:
        """The ids of threads that this agent may see and that begin so, the newest first."""
        beginning = beginning_of_id(text)
        if beginning is None:
            return []
        from ..store import names

        reads = () if self.agent is None else (self.agent,)
        found = names.threads(tx, beginning, (), self.agent, reads, MOST_CANDIDATES + 1)
        return [row[0] for row in found]

    def _near_thread(self, tx: Any, text: str) -> str | None:
        """A hint at a thread that is nearly called so."""
        wanted = text.strip().upper()
        if not (_LEAST_OF_AN_ID <= len(wanted) <= _MOST_OF_AN_ID and wanted.isascii()):
            return None
        from inbox_orch.shared.shell.nearest import nearest

        from ..store import names

        reads = () if self.agent is None else (self.agent,)
        newest = names.threads(tx, "", (), self.agent, reads, _NEWEST_LOOKED_AT)
        near = nearest(wanted, [row[0] for row in newest], likeness=0.9)
        return None if near is None else f"did you mean {near}?"

    def check_visible(
        self, tx: Any, thread: Thread, agent: str | None, reads: Sequence[str]
    ) -> Thread:
        """The thread; error `not_found` when it is sealed to this agent."""
        if not threads.is_visible(tx, thread, agent, reads):
            raise not_found("thread", thread.id, hint="it may be sealed: give --agent")
        return thread

    # -- keys --------------------------------------------------------------------------------

    def replay(self, tx: Transaction, request: requests.Request) -> Written | None:
        """The first result of an earlier call with this key; error `key_conflict`."""
        found = requests.first_result(tx, request)
        if found is None:
            return None
        from .freezing import thaw

        return thaw(found)._replace(replayed=True)

    def remember(self, tx: Transaction, request: requests.Request, result: Written) -> Written:
        """Store the first result under its key, if there is one; returns the result."""
        if request.key is None:
            return result
        from .freezing import freeze

        requests.store(tx, request, freeze(result), tx.now.wall_ms, thread_id=result.thread.id)
        return result._replace(replayed=False)

    def note_reader(self, agent: str, mailboxes: Sequence[str]) -> None:
        """Remember who reads a mailbox, so that `send` can say whether it is read."""
        if self._noted.issuperset((agent, mailbox) for mailbox in mailboxes):
            return
        with self.database.snapshot() as snapshot:
            unknown = cursors.unknown_to(snapshot, agent, mailboxes)
        if unknown:
            with self.database.transaction(durable=False) as tx:
                cursors.note_reader(tx, agent, unknown, tx.now.wall_ms)
        elif not self.database.in_transaction:
            # Inside a transaction of the caller's, what was seen may still be taken back.
            self._noted.update((agent, mailbox) for mailbox in mailboxes)


def message_facts(message: Message | None) -> dict[str, Any]:
    """How a message stands in an event: bodies and artifacts as digest and length."""
    if message is None:
        return {}
    return {
        "message": message.id,
        "message_kind": message.kind,
        "body_sha256": message.body_sha256,
        "body_bytes": message.body_bytes,
        "artifacts": [artifact_facts(a) for a in message.artifacts],
    }


def artifact_facts(artifact: Artifact) -> dict[str, Any]:
    """How an artifact stands in an event."""
    return {"name": artifact.name, "sha256": artifact.sha256, "bytes": artifact.bytes}
