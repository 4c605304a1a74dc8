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

from inbox_orch.shared.folders import make_private_folder
from inbox_orch.shared.ids import new_token

from ..domain import states
from ..domain.model import Message, Thread
from ..store import cursors, messages, threads
from .reading import Reading

MOST_ANNOUNCED = 100


class News(NamedTuple):
    """Unread messages, oldest first; `marks` is what `announced` remembers of them."""

    agent: str
    mailboxes: tuple[str, ...]
    items: tuple[tuple[Message, Thread], ...]
    truncated: bool
    marks: dict[str, int]


class Announcing(Reading):
    """`hook`."""

    def news(
        self, *, mailboxes: Sequence[str] = (), again: bool = False, agent: str | None = None
    ) -> News:
        """What the agent has not read; without `again` only what was not announced before.

        A task that somebody has taken already is left out. Error `usage`.
        """
        name = self.acting(agent)
        reads = self.reading(name, mailboxes)
        told = {} if again else self._told(name)
        now = self.database.clock.now()
        with self.database.snapshot() as connection:
            positions = cursors.positions(connection, name, reads)
            starts = {box: max(at, told.get(box, 0)) for box, at in positions.items()}
            found, moves, more = messages.unread(connection, name, reads, starts, MOST_ANNOUNCED)
            by_id = threads.get_many(connection, list({m.thread_id for m in found}), now)
        items = tuple(
            (message, by_id[message.thread_id])
            for message in found
            if message.kind != "task" or by_id[message.thread_id].state == states.PENDING
        )
        return News(name, reads, items, more, moves)

    def announced(self, news: News) -> bool:
        """Remember what is about to be announced; False when that cannot be remembered."""
        marks = self._told(news.agent)
        for mailbox, position in news.marks.items():
            marks[mailbox] = max(position, marks.get(mailbox, 0))
        try:
            self._remember(news.agent, marks)
        except OSError:
            return False
        return True

    def _file(self, agent: str) -> str:
        return os.path.join(self.database.layout.hooks, f"{agent}.json")

    def _told(self, agent: str) -> dict[str, int]:
        """Up to which message each mailbox was announced; nothing when the file is unreadable."""
        try:
            with open(self._file(agent), encoding="utf-8") as file:
                stored = json.load(file)
        except (OSError, ValueError):
            return {}
        # File systems that ignore case give two agents one file.
        if not isinstance(stored, dict) or stored.get("agent") != agent:
            return {}
        return _positions(stored.get("announced"))

    def _remember(self, agent: str, marks: Mapping[str, int]) -> None:
        path = self._file(agent)
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
