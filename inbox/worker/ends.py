"""What can be written to one claimed thread at its end, each a handover that can be tried again."""

import random
from collections.abc import Callable

from ..bus import Bus
from ..domain.leases import backoff_seconds
from ..domain.model import Thread
from ..domain.working import Standing, Verdict
from . import handover
from .handover import Handover, Remains
from .plan import Plan


class Ends:
    """Those of one lease."""

    def __init__(self, bus: Bus, plan: Plan, thread: Thread, token: str) -> None:
        self._bus, self._plan = bus, plan
        self._thread, self._token = thread, token

    def of(
        self, decision: Verdict, seen: Standing, remains: Remains, *, again: bool = False
    ) -> Handover:
        """What a command that has ended comes to; one that is done may not be accepted. `again`:
        that it has failed is no failure of the task, which is offered once more."""
        retry_in = self._plan.retry_in_seconds
        if decision is Verdict.RELEASE:
            return self.given_back(seen, remains)
        if decision is Verdict.DONE:
            return handover.done(self._bus, self._thread, self._token, remains)
        if decision is Verdict.BACK_OFF or (again and retry_in is None):
            retry_in = self.backoff_seconds()
        return handover.failed(self._bus, self._thread.id, self._token, remains, retry_in)

    def not_accepted(self, remains: Remains, reason: str, *, again: bool) -> Handover:
        """Its result is not as the thread's schema has it: failed, or, where that is no failure of
        the task, offered `again`."""
        about = (self._bus, self._thread.id, self._token, remains)
        retry_in = self._plan.retry_in_seconds
        if again:
            return handover.offered_again(*about, retry_in or 0, reason)
        return handover.failed(*about, retry_in, reason)

    def given_back(self, seen: Standing | None, remains: Remains | None) -> Handover:
        """Because the worker ends; an open question of it may stay open."""
        asks = seen is not None and seen.question_open
        back = handover.left_open if asks and self._plan.keeps_questions else handover.released
        return back(self._bus, self._thread.id, self._token, remains)

    def attached(self, remains: Remains) -> Callable[[], None]:
        """Only its output; whatever becomes of the thread is said elsewhere."""
        return handover.attach(self._bus, self._thread.id, self._token, remains)

    def not_started(self, reason: str, retry_in_seconds: float | None) -> Handover:
        """The command could not be run at all."""
        about = (self._bus, self._thread.id, self._token)
        return handover.not_started(*about, reason, retry_in_seconds)

    def backoff_seconds(self) -> float:
        """How long it waits for its next try."""
        return backoff_seconds(self._thread.deliveries, random.random())
