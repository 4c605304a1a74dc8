"""Folding the event log: what the events of one thread say its state must be.

Pure: events in, a folded thread and the contradictions found on the way out. Nothing is taken
from an event that can be worked out from those before it; what the event says is compared.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from . import states
from .vocabulary import EVENTS, UNMOVED

# How an event ends the lease, as `lease.ended_by` has it.
ENDINGS = {
    "lease_expired": "expired",
    "thread_released": "released",
    "thread_deferred": "failed",
    "thread_failed": "failed",
    "thread_done": "done",
    "thread_cancelled": "cancelled",
}
_PATHS = {(t.event, t.source, t.target) for t in states.TRANSITIONS}
BUS_EVENTS = frozenset(EVENTS)

Data = Mapping[str, Any]


class Fact(NamedTuple):
    """One event as folding needs it."""

    seq: int
    kind: str
    data: Data


class FoldedLease(NamedTuple):
    """A lease as the events tell it; `ended_by` is None while it is live."""

    epoch: int
    holder: str
    counted: bool
    ended_by: str | None = None


class Content(NamedTuple):
    """A body or an artifact as digest and length. `name` is a message's kind or a file's name."""

    name: str
    sha256: str
    bytes: int


class FoldedThread:
    """A thread as far as its events have been folded."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.epoch = 0
        self.deliveries = 0
        self.max_deliveries = 0
        self.pruned = False
        self.cancel_seen = False
        self.leases: list[FoldedLease] = []
        self.messages: dict[int, Content] = {}
        self.artifacts: list[Content] = []
        self.contradictions: list[tuple[int, str]] = []

    @property
    def lease(self) -> FoldedLease | None:
        """The live lease."""
        last = self.leases[-1] if self.leases else None
        return last if last is not None and last.ended_by is None else None

    @property
    def holder(self) -> str | None:
        """Who holds the live lease."""
        return None if self.lease is None else self.lease.holder

    def apply(self, fact: Fact) -> None:
        """Go on with the next event of the thread, in the order of the log."""
        target = self._text(fact, "to")
        if fact.kind in UNMOVED:
            self._stay(fact, target)
        else:
            self._move(fact, target)
        self._compare(fact, "epoch", self.epoch)
        self._compare(fact, "deliveries", self.deliveries)
        self._compare(fact, "holder", self.holder)
        self._take_contents(fact)

    # -- the state ---------------------------------------------------------------------------

    def _stay(self, fact: Fact, target: str | None) -> None:
        if self.state is None:
            self._object(fact, "comes before the thread was sent")
        elif target != self.state or self.state not in UNMOVED[fact.kind]:
            self._object(fact, f"says that the thread is {target}; it is {self.state}")
        if fact.kind == "thread_pruned":
            # Not once only: what was written on a pruned thread is pruned in its turn.
            self.pruned = True
        if fact.kind == "cancel_seen":
            self._once(fact, self.cancel_seen)
            self.cancel_seen = True

    def _move(self, fact: Fact, target: str | None) -> None:
        source = fact.data.get("from")
        if source != self.state:
            self._object(fact, f"says that the thread was {source}; it was {self.state}")
        if (fact.kind, source, target) not in _PATHS:
            self._object(fact, f"from {source} to {target} is no transition of the table")
        if fact.kind == "thread_sent":
            self.max_deliveries = self._number(fact, "max_deliveries")
        if fact.kind == "thread_claimed":
            self._open_lease(fact)
        elif fact.kind in ENDINGS:
            self._end_lease(fact)
        elif fact.kind != "thread_sent" and (self.lease is None) != (target == states.PENDING):
            lives = "nobody holds it" if self.lease is None else f"{self.holder} holds it"
            self._object(fact, f"makes the thread {target}, but {lives}")
        self.state = target

    # -- the lease ---------------------------------------------------------------------------

    def _open_lease(self, fact: Fact) -> None:
        if self.lease is not None:
            self._object(fact, f"gives out a second lease while {self.holder} holds the first")
        counted = fact.data.get("counted") is not False
        self.epoch += 1
        self.deliveries += counted
        if self.deliveries > self.max_deliveries:
            self._object(fact, f"is delivery {self.deliveries} of at most {self.max_deliveries}")
        holder = self._text(fact, "holder") or "?"
        self.leases.append(FoldedLease(self.epoch, holder, counted))

    def _end_lease(self, fact: Fact) -> None:
        lease = self.lease
        if lease is None:
            # Only `cancel` may come to a thread that is not held.
            if fact.kind != "thread_cancelled":
                self._object(fact, "ends a lease; there is none")
            return
        named = fact.data.get("lease_holder")
        if named != lease.holder:
            self._object(fact, f"ends the lease of {named}; {lease.holder} held it")
        if fact.kind == "thread_released":
            self.deliveries -= lease.counted
        self.leases[-1] = lease._replace(ended_by=ENDINGS[fact.kind])

    # -- bodies and artifacts ----------------------------------------------------------------

    def _take_contents(self, fact: Fact) -> None:
        number = fact.data.get("message")
        if isinstance(number, int):
            if number in self.messages:
                self._object(fact, f"records message {number} a second time")
            self.messages[number] = Content(
                str(fact.data.get("message_kind")),
                str(fact.data.get("body_sha256")),
                self._number(fact, "body_bytes"),
            )
        listed = fact.data.get("artifacts", ())
        if fact.kind == "thread_pruned" or not isinstance(listed, (list, tuple)):
            return
        for entry in listed:
            if isinstance(entry, dict):
                self.artifacts.append(
                    Content(
                        str(entry.get("name")), str(entry.get("sha256")), entry.get("bytes", -1)
                    )
                )

    # -- contradictions ----------------------------------------------------------------------

    def _compare(self, fact: Fact, name: str, expected: object) -> None:
        said = fact.data.get(name)
        if said != expected:
            self._object(fact, f"says {name} {said}; it follows {expected}")

    def _once(self, fact: Fact, before: bool) -> None:
        if before:
            self._object(fact, "occurs a second time")

    def _text(self, fact: Fact, name: str) -> str | None:
        value = fact.data.get(name)
        return value if isinstance(value, str) else None

    def _number(self, fact: Fact, name: str) -> int:
        value = fact.data.get(name)
        if isinstance(value, int):
            return value
        self._object(fact, f"has no number {name}")
        return 0

    def _object(self, fact: Fact, text: str) -> None:
        self.contradictions.append((fact.seq, f"{fact.kind} {text}"))


def fold(facts: Iterable[Fact]) -> FoldedThread:
    """The thread that the events of one thread, in order, lead to.

    Events that are not the bus's own (a scheduler records some on the thread, too) are passed by.
    """
    folded = FoldedThread()
    for fact in facts:
        if fact.kind in BUS_EVENTS:
            folded.apply(fact)
    return folded
