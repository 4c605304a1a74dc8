"""Waiting for something in the database: asked for before each sleep and after it.

A wait holds no transaction and no snapshot while it sleeps. It sleeps until a bell rings,
another connection has committed, something falls due, or the deadline; and it looks once more
at its deadline before it gives up.
"""

import os
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from ..errors import InboxOrchError, usage
from .engine import Bells, Engine

FALLBACK_SECONDS = (0.25, 3.0)
POLL_SECONDS = (0.02, 0.1)
_DUE_SECONDS = 0.001
_STRETCH = 1.5  # of one pause to the next

Found = TypeVar("Found")


class Look(NamedTuple):
    """What one look at the database gave.

    `found` is None to go on waiting. `due_wall_ms` and `due_monotonic_ms` say when something
    that concerns the waiter falls due by itself (a delayed thread, an expiry), if anything.
    """

    found: object | None
    due_wall_ms: int | None = None
    due_monotonic_ms: int | None = None


class Interruption:
    """Ends the waits of one thread from another one: signals reach the main thread alone."""

    def __init__(self) -> None:
        self.fired = False
        self._reader, self._writer = os.pipe()

    @property
    def descriptor(self) -> int:
        """Has input once it has been fired."""
        return self._reader

    def fire(self) -> None:
        """Every wait of the thread ends with the error `interrupted`, now and from now on."""
        if not self.fired:
            self.fired = True
            os.write(self._writer, b"!")

    @contextmanager
    def for_this_thread(self) -> Iterator[None]:
        """It is this thread's until the end of the block."""
        _of_threads[get_ident()] = self
        try:
            yield
        finally:
            _of_threads.pop(get_ident(), None)

    def close(self) -> None:
        """The thread has ended: from now on firing it does nothing."""
        self.fired = True
        os.close(self._reader)
        os.close(self._writer)


_of_threads: dict[int, Interruption] = {}


def _interruption() -> Interruption | None:
    return _of_threads.get(get_ident())


def _refuse_when_interrupted(interruption: Interruption | None) -> None:
    if interruption is not None and interruption.fired:
        raise InboxOrchError(
            "interrupted",
            "the caller has given up waiting",
            hint="call again to go on waiting; nothing is missed in between",
        )


def doorbell_off() -> bool:
    """Whether the caller's environment asks for polling (INBOX_DOORBELL=off)."""
    return os.environ.get("INBOX_DOORBELL", "").lower() in ("off", "0", "no", "false")


def wait(
    database: Engine,
    topics: Iterable[str],
    look: Callable[[], Look],
    *,
    wait_seconds: float,
    pulse: Callable[[], None] | None = None,
    inputs: Iterable[int] = (),
) -> object | None:
    """What `look` found, or None when `wait_seconds` (0 = look once) have passed.

    `look` decides and may write; it is called with no transaction open. A `busy` database does
    not end the wait before its deadline. `pulse` is called whenever the sleep is interrupted
    without a reason to look: for a waiter who shows how time passes. Input on one of the
    descriptors `inputs`, which `look` has to read, is a reason. Error `interrupted`, before the
    next look, when another thread fires this one's `Interruption`; `usage` inside a transaction,
    in which no other process could write what is waited for.
    """
    if wait_seconds <= 0:
        return look().found
    if database.alone is not None:
        raise database.alone  # no other process could write what is waited for
    if database.in_transaction:
        raise usage(
            "a wait cannot be made inside a transaction",
            hint="look once, with no wait, or wait before the transaction is begun",
        )
    deadline = database.now().monotonic_ms + wait_seconds * 1000
    interruption = _interruption()
    with _bells(database, topics) as bells:
        for descriptor in (*inputs, *(() if interruption is None else (interruption.descriptor,))):
            bells.listen_to(descriptor)
        pause = Pause(bells.armed)
        while True:
            _refuse_when_interrupted(interruption)
            known = version(database)
            seen, busy = look_once(look)
            if seen.found is not None:
                return seen.found
            if database.now().monotonic_ms >= deadline:
                if busy is not None:
                    raise busy
                return None
            looked = _Looked(known, seen, deadline, busy is not None)
            _sleep(database, bells, pause, looked, pulse)


def has_reason(database: Engine, known: int | None, seen: Look) -> bool:
    """Whether to look again: there was a commit since `version` was `known`, or something
    that the last look has `seen` is due. For those who ask in a rhythm of their own."""
    return (
        version(database) != known or _seconds_until(database, seen, float("inf")) <= _DUE_SECONDS
    )


def look_once(look: Callable[[], Look]) -> tuple[Look, InboxOrchError | None]:
    """What a look gives; nothing, and the error, while the database is `busy`."""
    try:
        return look(), None
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return Look(None), error


def version(database: Engine) -> int | None:
    """A number that changes with every commit of others; None while a lock hides it."""
    try:
        return database.version()
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return None


def _bells(database: Engine, topics: Iterable[str]) -> Bells:
    if doorbell_off():
        unarmed = database.bells(())
        unarmed.armed = False
        return unarmed
    return database.bells(topics)


class Pause:
    """How long to sleep between two looks at `version`: longer while nothing happens, since
    waking up is what an idle waiter costs. ±15 %, so that many do not look at the same moment."""

    def __init__(self, armed: bool) -> None:
        self.armed = armed
        self._shortest, self._longest = FALLBACK_SECONDS if armed else POLL_SECONDS
        self._seconds = self._shortest

    def next(self) -> float:
        """Seconds."""
        import random

        seconds = self._seconds
        self._seconds = min(self._longest, seconds * _STRETCH)
        return seconds * random.uniform(0.85, 1.15)

    def reset(self) -> None:
        """Something happened: more may follow soon."""
        self._seconds = self._shortest


class _Looked:
    """The last look: `version` at its beginning, what it has `seen`, until when the wait lasts
    (monotonic milliseconds), and whether to look again soon, because it was refused."""

    def __init__(
        self,
        known: int | None,
        seen: Look,
        deadline: float,
        retry_soon: bool,
    ) -> None:
        self.known = known
        self.seen = seen
        self.deadline = deadline
        self.retry_soon = retry_soon


def _sleep(
    database: Engine,
    bells: Bells,
    pause: Pause,
    looked: _Looked,
    pulse: Callable[[], None] | None,
) -> None:
    """Sleep until there is a reason to look again. What an idle waiter does here is all that it
    costs, so it is little."""
    seen, deadline = looked.seen, looked.deadline
    seconds_left = _seconds_until(database, seen, deadline)
    while True:
        if bells.sleep(min(pause.next(), seconds_left)):
            pause.reset()
            return
        seconds_left = _seconds_until(database, seen, deadline)
        if looked.retry_soon or seconds_left <= _DUE_SECONDS:
            return
        database.check_in_place()
        if version(database) != looked.known:
            pause.reset()
            return
        if pulse is not None:
            pulse()


def _seconds_until(database: Engine, seen: Look, deadline: float) -> float:
    """Seconds until the nearest of the deadline and what falls due."""
    now = database.now()
    remaining = deadline - now.monotonic_ms
    if seen.due_monotonic_ms is not None:
        remaining = min(remaining, seen.due_monotonic_ms - now.monotonic_ms)
    if seen.due_wall_ms is not None:
        remaining = min(remaining, seen.due_wall_ms - now.wall_ms)
    # Never zero: what is due may be held up by another process for a moment.
    return max(_DUE_SECONDS, remaining / 1000)
