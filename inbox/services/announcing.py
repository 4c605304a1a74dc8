"""What hooks announce: messages that are unread and have not been announced yet.

Being announced is not being read: no cursor moves. What was announced stands in a file for each
agent beside the database, outside of it: losing it means to be told twice, and writing it must
never wait for other writers. Nothing that other agents wrote is in an announcement; names and
ids are.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.ids import new_token
from inbox_orch.shared.store.folders import make_private_folder

from ..domain import states
from ..domain.model import Message, Thread
from ..store import cursors, messages, threads
from .desk import Desk

MOST_ANNOUNCED = 100


class News(NamedTuple):
    """Unread messages, oldest first; `marks` is what `announced` remembers of them."""

    agent: str
    mailboxes: tuple[str, ...]
    items: tuple[tuple[Message, Thread], ...]
    truncated: bool
    marks: dict[str, int]


def news(
    desk: Desk, *, mailboxes: Sequence[str] = (), again: bool = False, agent: str | None = None
) -> News:
    """What the agent has not read; without `again` only what was not announced before.

    A task that has been taken already is left out. Error `usage`.
    """
    name = desk.acting(agent)
    reads = desk.reading(name, mailboxes)
    told = {} if again else _told(desk, name)
    now = desk.database.now()
    with desk.database.snapshot() as snapshot:
        positions = cursors.positions(snapshot, name, reads)
        starts = {box: max(at, told.get(box, 0)) for box, at in positions.items()}
        found, moves, more = messages.unread(snapshot, name, reads, starts, MOST_ANNOUNCED)
        by_id = threads.get_many(snapshot, list({m.thread_id for m in found}), now)
    items = tuple(
        (message, by_id[message.thread_id])
        for message in found
        if message.kind != "task" or by_id[message.thread_id].state == states.PENDING
    )
    return News(name, reads, items, more, moves)


def announced(desk: Desk, news: News) -> bool:
    """Remember what is about to be announced; False when that cannot be remembered."""
    marks = _told(desk, news.agent)
    for mailbox, position in news.marks.items():
        marks[mailbox] = max(position, marks.get(mailbox, 0))
    try:
        _remember(desk, news.agent, marks)
    except OSError:
        return False
    return True


def _file(desk: Desk, agent: str) -> str:
    return os.path.join(desk.database.layout.hooks, f"{agent}.json")


def _told(desk: Desk, agent: str) -> dict[str, int]:
    """Up to which message each mailbox was announced; nothing when the file is unreadable."""
    try:
        with open(_file(desk, agent), encoding="utf-8") as file:
            stored = json.load(file)
    except (OSError, ValueError):
        return {}
    # File systems that ignore case give two agents one file.
    if not isinstance(stored, dict) or stored.get("agent") != agent:
        return {}
    return _positions(stored.get("announced"))


def _remember(desk: Desk, agent: str, marks: Mapping[str, int]) -> None:
    path = _file(desk, agent)
    make_private_folder(os.path.dirname(path))
    temporary = f"{path}.{new_token()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"agent": agent, "announced": marks}, file)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _positions(stored: Any) -> dict[str, int]:
    if not isinstance(stored, dict):
        return {}
    return {box: at for box, at in stored.items() if isinstance(at, int)}
