"""Rows of `message`, `destination` and `artifact`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from inbox_orch.shared.store.engine import Row, Session

from ..domain.model import Artifact, Message
from .threads import visibility

_BEHIND_ALL = 2**63 - 1

_COLUMNS = (
    "m.id, m.thread_id, m.kind, m.sender, m.body, m.body_sha256, m.body_bytes, m.payload,"
    " m.options, m.deadline, m.progress, m.answers, m.epoch, m.created_at"
)

_SELECT = (
    f"SELECT {_COLUMNS}, (SELECT group_concat(d.mailbox, ' ') FROM destination AS d"
    " WHERE d.message_id = m.id) FROM message AS m"
)


def insert(tx: Session, message: Message) -> int:
    """Store a message (its `id` is ignored) with its destinations; returns its id."""
    number = tx.add(
        "INSERT INTO message (thread_id, kind, sender, body, body_sha256, body_bytes, payload,"
        " options, deadline, progress, answers, epoch, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            message.thread_id,
            message.kind,
            message.sender,
            message.body,
            message.body_sha256,
            message.body_bytes,
            message.payload,
            json.dumps(message.options, ensure_ascii=False) if message.options else None,
            message.deadline,
            message.progress,
            message.answers,
            message.epoch,
            message.created_at,
        ),
    )
    tx.run_many(
        "INSERT INTO destination (mailbox, message_id) VALUES (?, ?)",
        [(mailbox, number) for mailbox in message.to],
    )
    return number


def insert_artifact(tx: Session, thread_id: str, artifact: Artifact) -> None:
    """Name a stored file on a thread."""
    tx.run(
        "INSERT INTO artifact (thread_id, message_id, name, sha256, bytes, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            thread_id,
            artifact.message_id,
            artifact.name,
            artifact.sha256,
            artifact.bytes,
            artifact.created_at,
        ),
    )


def get(tx: Session, message_id: int) -> Message | None:
    """One message."""
    rows = _messages(tx, "m.id = ?", (message_id,), "m.id", 1)
    return rows[0] if rows else None


def last_of_kind(tx: Session, thread_id: str, kind: str) -> Message | None:
    """The newest message of this kind on a thread."""
    rows = _messages(tx, "m.thread_id = ? AND m.kind = ?", (thread_id, kind), "m.id DESC", 1)
    return rows[0] if rows else None


def of_thread(
    tx: Session,
    thread_id: str,
    *,
    after: int = 0,
    limit: int = -1,
    newest_first: bool = False,
) -> list[Message]:
    """Messages of a thread with ids above `after`, in order; the newest ones if so asked."""
    order = "m.id DESC" if newest_first else "m.id"
    found = _messages(tx, "m.thread_id = ? AND m.id > ?", (thread_id, after), order, limit)
    return found[::-1] if newest_first else found


def every(tx: Session) -> Iterator[Message]:
    """All messages in order, one in memory at a time."""
    for row in tx.stream(f"{_SELECT} ORDER BY m.id"):
        yield _message(row, _artifacts(tx, [row[0]]).get(row[0], ()))


def first_and_newest(tx: Session, thread_id: str, newest: int) -> tuple[list[Message], bool]:
    """The first message of a thread and so many of the newest, in order; whether some in
    between are left out."""
    found = of_thread(tx, thread_id, limit=newest + 2, newest_first=True)
    if len(found) <= newest + 1:
        return found, False
    return of_thread(tx, thread_id, limit=1) + found[-newest:], True


def last_id(tx: Session, thread_id: str, *, by: str) -> int:
    """The id of an author's newest message on a thread; 0 when there is none."""
    row = tx.one(
        # Not max(id): it reads the rows of the whole thread, this the newest ones alone.
        "SELECT id FROM message WHERE thread_id = ? AND sender = ? ORDER BY id DESC LIMIT 1",
        (thread_id, by),
    )
    return 0 if row is None else int(row[0])


def written_by_others(
    tx: Session, thread_id: str, agent: str, after: int, limit: int
) -> list[Message]:
    """Messages of a thread that agents other than `agent` wrote after `after`."""
    return _messages(
        tx,
        "m.thread_id = ? AND m.id > ? AND m.sender <> ?",
        (thread_id, after, agent),
        "m.id",
        limit,
    )


def answered_after(tx: Session, thread_id: str, after: int) -> bool:
    """Whether a question of the thread was settled by a message behind `after`."""
    row = tx.only(
        "SELECT EXISTS (SELECT 1 FROM message"
        " WHERE thread_id = ? AND id > ? AND answers IS NOT NULL)",
        (thread_id, after),
    )
    return bool(row[0])


def artifacts_of(tx: Session, thread_id: str) -> list[Artifact]:
    """Every artifact of a thread, oldest first."""
    rows = tx.all(
        "SELECT name, sha256, bytes, message_id, created_at, pruned FROM artifact"
        " WHERE thread_id = ? ORDER BY id",
        (thread_id,),
    )
    return [_artifact(row) for row in rows]


def artifact_named(tx: Session, thread_id: str, name: str) -> Artifact | None:
    """The newest artifact of a thread with this name."""
    row = tx.one(
        "SELECT name, sha256, bytes, message_id, created_at, pruned FROM artifact"
        " WHERE thread_id = ? AND name = ? ORDER BY id DESC LIMIT 1",
        (thread_id, name),
    )
    return None if row is None else _artifact(row)


class Unread(NamedTuple):
    """The next unread messages of several mailboxes, merged by id; how far each mailbox's cursor
    may move once they are read (only those that move); whether there are more to be shown."""

    messages: list[Message]
    moves: dict[str, int]
    more: bool


def unread(
    tx: Session,
    agent: str,
    mailboxes: Sequence[str],
    cursors: dict[str, int],
    limit: int,
) -> Unread:
    """What `agent` has not read of these mailboxes.

    Own messages are passed over, and so is the cursor. A mailbox ends before the first message
    of a sealed thread that the agent may not see: its cursor must not skip that one, and what
    comes behind it would be shown again and again.
    """
    waiting: dict[str, list[int]] = {}
    hidden: dict[str, int] = {}
    for mailbox in mailboxes:
        rows = _unread_of(tx, agent, mailboxes, mailbox, cursors.get(mailbox, 0), limit + 1)
        shown = list(takewhile(itemgetter(1), rows))
        waiting[mailbox] = [row[0] for row in shown]
        if len(shown) < len(rows):
            hidden[mailbox] = rows[len(shown)][0]
    candidates = sorted({number for numbers in waiting.values() for number in numbers})
    chosen = candidates[:limit]
    moves = {}
    for mailbox, numbers in waiting.items():
        left = [n for n in numbers if not chosen or n > chosen[-1]]
        stop = min([*left, hidden.get(mailbox, _BEHIND_ALL)])
        move = _newest_before(tx, mailbox, stop)
        if move > cursors.get(mailbox, 0):
            moves[mailbox] = move
    marks = ", ".join("?" * len(chosen))
    found = _messages(tx, f"m.id IN ({marks})", tuple(chosen), "m.id", -1) if chosen else []
    return Unread(found, moves, len(candidates) > limit)


def unread_count(
    tx: Session,
    agent: str,
    mailboxes: Sequence[str],
    mailbox: str,
    cursor: int,
    most: int,
) -> int:
    """How many messages of one of the agent's mailboxes `unread` would show, up to `most`."""
    rows = _unread_of(tx, agent, mailboxes, mailbox, cursor, most)
    return sum(1 for _ in takewhile(itemgetter(1), rows))


def _unread_of(
    tx: Session,
    agent: str,
    reads: Sequence[str],
    mailbox: str,
    cursor: int,
    limit: int,
) -> list[tuple[int, bool]]:
    """(message, whether the agent may see it) of the unread ones of a mailbox, by id."""
    condition, parameters = visibility(agent, reads)
    rows = tx.all(
        f"SELECT d.message_id, {condition} FROM destination AS d"
        " JOIN message AS m ON m.id = d.message_id JOIN thread AS t ON t.id = m.thread_id"
        " WHERE d.mailbox = ? AND d.message_id > ? AND m.sender <> ?"
        " ORDER BY d.message_id LIMIT ?",
        (*parameters, mailbox, cursor, agent, limit),
    )
    return [(row[0], bool(row[1])) for row in rows]


def _newest_before(tx: Session, mailbox: str, stop: int) -> int:
    """The newest message of a mailbox with an id below `stop`, 0 when there is none."""
    row = tx.only(
        "SELECT max(message_id) FROM destination WHERE mailbox = ? AND message_id < ?",
        (mailbox, stop),
    )
    return int(row[0] or 0)


def _messages(
    tx: Session,
    where: str,
    parameters: tuple[object, ...],
    order: str,
    limit: int,
) -> list[Message]:
    rows = tx.all(f"{_SELECT} WHERE {where} ORDER BY {order} LIMIT ?", (*parameters, limit))
    attached = _artifacts(tx, [row[0] for row in rows])
    return [_message(row, attached.get(row[0], ())) for row in rows]


def _artifacts(tx: Session, message_ids: Iterable[int]) -> dict[int, tuple[Artifact, ...]]:
    found: dict[int, tuple[Artifact, ...]] = {}
    wanted = list(message_ids)
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        rows = tx.all(
            "SELECT name, sha256, bytes, message_id, created_at, pruned FROM artifact"
            f" WHERE message_id IN ({', '.join('?' * len(part))}) ORDER BY message_id, id",
            part,
        )
        for row in rows:
            found[row[3]] = (*found.get(row[3], ()), _artifact(row))
    return found


def _artifact(row: Row) -> Artifact:
    name, sha256, size, message_id, created_at, pruned = row
    return Artifact(name, sha256, size, message_id, created_at, bool(pruned))


def _message(row: Row, artifacts: tuple[Artifact, ...]) -> Message:
    return Message(
        id=row[0],
        thread_id=row[1],
        kind=row[2],
        sender=row[3],
        to=tuple(sorted((row[14] or "").split())),
        body=row[4],
        body_sha256=row[5],
        body_bytes=row[6],
        payload=row[7],
        options=tuple(json.loads(row[8])) if row[8] else (),
        deadline=row[9],
        progress=row[10],
        answers=row[11],
        epoch=row[12],
        created_at=row[13],
        artifacts=artifacts,
    )
