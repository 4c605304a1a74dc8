"""Files that an agent keeps on a thread of its own, for which nobody else has to do anything."""

from typing import TYPE_CHECKING

from ..domain.model import Written
from . import claiming, holding, sending
from .desk import Desk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inbox_orch.shared.store.artifacts import Stored


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

    `body` is what the thread asks for, `result` the message that has the files. `sealed` hides it
    from others. Its history is that of any thread which was sent, claimed and done.
    Errors: `usage`; `busy` when a file has been cleared away since it was stored; those of every
    write.
    """
    author = desk.acting(agent)
    outgoing = sending.Outgoing(to=author, subject=subject, body=body, sealed=sealed)
    with desk.database.transaction():
        thread_id = sending.send(desk, outgoing, agent=author).thread.id
        token = claiming.claim(desk, thread_id, agent=author).lease.token
        assert token is not None
        return holding.done(desk, thread_id, token, body=result, files=files)
