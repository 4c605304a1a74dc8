"""Names that begin in some way: for shells that complete and for "did you mean".

Looks only; nothing is reaped, no cursor moves. What is sealed to the agent is not named.
"""

from collections.abc import Sequence

from ..store import messages, names
from . import reading
from .desk import Desk


def threads_beginning(
    desk: Desk,
    beginning: str,
    *,
    states: Sequence[str] = (),
    mailboxes: Sequence[str] = (),
    limit: int,
) -> list[tuple[str, str]]:
    """(id, state and subject) of the newest threads; all states when none is named."""
    reads = desk.named_mailboxes(mailboxes)
    reads = reads if desk.agent is None else desk.reading(desk.agent, reads)
    with desk.database.snapshot() as snapshot:
        found = names.threads(snapshot, beginning.upper(), states, desk.agent, reads, limit)
    return [(thread, f"{state}: {subject}") for thread, state, subject in found]


def mailboxes_beginning(desk: Desk, beginning: str, limit: int) -> list[str]:
    """Mailboxes that have a thread or were ever read."""
    with desk.database.snapshot() as snapshot:
        return names.mailboxes(snapshot, beginning, limit)


def agents_beginning(desk: Desk, beginning: str, limit: int) -> list[str]:
    """Agents that have ever read a mailbox or sent a thread."""
    with desk.database.snapshot() as snapshot:
        return names.agents(snapshot, beginning, limit)


def artifacts_of(desk: Desk, thread_id: str, *, mailboxes: Sequence[str] = ()) -> list[str]:
    """The names of a thread's artifacts; error `not_found`."""
    with desk.database.snapshot() as snapshot:
        thread = reading.visible_thread(desk, snapshot, thread_id, mailboxes, None)
        return sorted({a.name for a in messages.artifacts_of(snapshot, thread.id)})
