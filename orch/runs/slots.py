"""How many attempts may live at once: in a run, and in each mailbox of it."""

from collections.abc import Iterable

from .config import config_of
from .model import Run
from .readiness import Picture


class Slots:
    """The slots that are free beside attempts that live, by the mailboxes of those."""

    def __init__(self, run: Run, live: Iterable[str]) -> None:
        self._most = run.max_parallel
        self._most_in = config_of(run).mailboxes
        self._taken: dict[str, int] = {}
        for mailbox in live:
            self._taken[mailbox] = self._taken.get(mailbox, 0) + 1

    def copy(self) -> "Slots":
        """Slots of their own, equal to these, to try something out."""
        twin = Slots.__new__(Slots)
        twin._most, twin._most_in, twin._taken = self._most, self._most_in, dict(self._taken)
        return twin

    def bounded(self) -> bool:
        """Whether there is any limit at all."""
        return self._most is not None or bool(self._most_in)

    def full(self) -> bool:
        """Whether the run takes no attempt more, in whichever mailbox."""
        return self._most is not None and sum(self._taken.values()) >= self._most

    def take(self, mailbox: str) -> bool:
        """Take a slot for one attempt more in a mailbox; False when there is none."""
        if not self.free(mailbox):
            return False
        self._taken[mailbox] = self._taken.get(mailbox, 0) + 1
        return True

    def free(self, mailbox: str) -> bool:
        """Whether one attempt more may live in a mailbox."""
        most = self._most_in.get(mailbox)
        return not self.full() and (most is None or self._taken.get(mailbox, 0) < most)

    def limit_of(self, mailbox: str) -> str:
        """Which limit keeps an attempt out of a mailbox, in words."""
        if self.full():
            return f"at most {self._most} at once in this run"
        return f"at most {self._most_in[mailbox]} at once in mailbox {mailbox}"


def may_move(picture: Picture, live: Iterable[str]) -> bool:
    """Whether a run can go on without a decision: a worker is at work, or an attempt could be
    dispatched, now or after a back-off. `live` are the mailboxes of the live attempts: one that
    is blocked keeps its slot, and may keep all the others out."""
    if any(standing.state == "active" for standing in picture.standings):
        return True
    slots = Slots(picture.run, live)
    return picture.run.state == "open" and any(
        standing.state in ("ready", "backing_off") and slots.free(standing.task.mailbox)
        for standing in picture.standings
    )
