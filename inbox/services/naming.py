"""Names that begin in some way: for shells that complete and for "did you mean".

Looks only; nothing is reaped, no cursor moves. What is sealed to the agent is not named.
"""

from collections.abc import Sequence

from ..store import messages, names
from .reading import Reading


class Naming(Reading):
    """Threads, mailboxes, agents, artifacts by the beginning of their names."""

    def threads_beginning(
        self,
        beginning: str,
        *,
        states: Sequence[str] = (),
        mailboxes: Sequence[str] = (),
        limit: int,
    ) -> list[tuple[str, str]]:
        """(id, state and subject) of the newest threads; all states when none is named."""
        reads = self.named_mailboxes(mailboxes)
        reads = reads if self.agent is None else self.reading(self.agent, reads)
        with self.database.snapshot() as snapshot:
            found = names.threads(snapshot, beginning.upper(), states, self.agent, reads, limit)
        return [(thread, f"{state}: {subject}") for thread, state, subject in found]

    def mailboxes_beginning(self, beginning: str, limit: int) -> list[str]:
        """Mailboxes that have a thread or were ever read."""
        with self.database.snapshot() as snapshot:
            return names.mailboxes(snapshot, beginning, limit)

    def agents_beginning(self, beginning: str, limit: int) -> list[str]:
        """Agents that have ever read a mailbox or sent a thread."""
        with self.database.snapshot() as snapshot:
            return names.agents(snapshot, beginning, limit)

    def artifacts_of(self, thread_id: str, *, mailboxes: Sequence[str] = ()) -> list[str]:
        """The names of a thread's artifacts; error `not_found`."""
        with self.database.snapshot() as snapshot:
            thread = self._visible_thread(snapshot, thread_id, mailboxes, None)
            return sorted({a.name for a in messages.artifacts_of(snapshot, thread.id)})
