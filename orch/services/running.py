"""Running one check: a shell command in a folder, in a group of its own, with a time limit.

Knows nothing of attempts, and writes nothing but what the command itself does. Whatever ends
this process, no process of a check is left behind: a guardian sees to those of one that is
killed, and a check begins only once the guardian and the caller know of it.
"""

import contextlib
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.children import Child
from inbox_orch.shared.clock import SystemClock
from inbox_orch.shared.endings import Ending
from inbox_orch.shared.groups import has_members, signal_group
from inbox_orch.shared.guardian import Guardian
from inbox_orch.shared.kept import Kept
from inbox_orch.shared.noting import Signals

from ..domain.checks import MAX_TAIL_BYTES
from ..domain.masking import MaskedStream
from .turns import finished

GRACE_SECONDS = 5.0
"""Between TERM and KILL."""
_LOOK_MS = 500
_POLL_MS = 20
_GUARDIAN_MS = 12_000
_KILLED_MS = 1000  # what outlives a KILL for longer hangs inside the system

# The check waits for a line, so that nothing of it has happened when its starter dies before
# anybody else knows of it; then the pipe ends. What it runs has an empty standard input.
_GATE = 'read -r go && exec /bin/sh -c "$1" </dev/null'


class Check(NamedTuple):
    """What is to be run, where, with which environment; what is to be masked in its output, and
    what that is called."""

    command: str
    folder: str
    environment: Mapping[str, str]
    limit_seconds: float
    secrets: Sequence[str] = ()
    output: str = "output"


class Outcome(NamedTuple):
    """How a check ended, how long it took, and its output: head and tail, and the last of it."""

    ending: Ending
    seconds: float
    content: bytes
    tail: str
    output_bytes: int


class Withdrawn(Exception):
    """Nobody wants the outcome any more; the check was ended."""


class Interrupted(Exception):
    """A signal told this process to end; the check was ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Masked(Kept):
    """Output in which no secret stands, however it was cut into chunks."""

    def __init__(self, name: str, by: str, secrets: Sequence[str]) -> None:
        super().__init__(name, by)
        self._stream = MaskedStream(secrets)

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream; some are held back while they may be a secret's."""
        super().add(self._stream.add(chunk))

    def finish(self) -> None:
        """The stream has ended."""
        super().add(self._stream.finish())


class Runner:
    """Runs checks one after the other. While entered, signals are noted and end the check that
    runs; a guardian stands by."""

    def __init__(self, notice: Callable[[str], None], locks: Sequence[int] = ()) -> None:
        """`locks` are descriptors of locks that stay held until the guardian, too, is done."""
        self._guardian = Guardian(notice, "this command")
        self._locks = locks
        self._clock = SystemClock()
        # Signals can be listened to in the main thread alone (signal(3)).
        main = threading.current_thread() is threading.main_thread()
        self._signals = Signals() if main else None

    def __enter__(self) -> "Runner":
        if self._signals is not None:
            self._signals.__enter__()
        self._guardian.start(self._locks)
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        """Raises `Interrupted` when a signal has come that has ended nothing: it must not be
        lost only because there was nothing left to end, or the check was left for another reason.
        An error is told before it."""
        self._guardian.close()
        if self._signals is not None:
            self._signals.__exit__(kind, *exc_info)
        left = kind is None or issubclass(kind, (Withdrawn, GeneratorExit))
        if left and self.told_to_end is not None:
            raise Interrupted(self.told_to_end)

    @property
    def told_to_end(self) -> int | None:
        """The signal that has arrived, if one has."""
        return None if self._signals is None else self._signals.number

    def run(
        self, check: Check, *, begins: Callable[[int], bool], wanted: Callable[[], bool]
    ) -> Outcome:
        """Run it to its end: `running`, without a turn for anybody else."""
        return finished(self.running(check, begins=begins, wanted=wanted))

    def running(
        self, check: Check, *, begins: Callable[[int], bool], wanted: Callable[[], bool]
    ) -> Generator[None, None, Outcome]:
        """Run it to its end, and give the caller a turn now and then. `begins` is called with the
        number of its group before anything of it happens, and may refuse; `wanted` is asked
        before each turn. To close the generator ends the check.

        Raises `Withdrawn`, `Interrupted`, and OSError when it cannot be started.
        """
        kept = Masked(check.output, "orch", check.secrets)
        reader, writer = os.pipe()
        try:
            try:
                child = Child.start(
                    ("/bin/sh", "-c", _GATE, "check", check.command),
                    folder=check.folder,
                    environment=check.environment,
                    stdin=reader,
                    stdout=kept,
                    stderr=kept,
                )
            finally:
                os.close(reader)
            self._guardian.begin(child.group, None)
            try:
                began = self._now()
                if not begins(child.group):
                    raise Withdrawn("another leader has taken it over")
                with contextlib.suppress(BrokenPipeError):
                    os.write(writer, b"\n")
                ending = yield from self._watch(child, check.limit_seconds, wanted)
            finally:
                self._end(child)
                self._guardian.end(child.group)
        finally:
            os.close(writer)
        kept.finish()
        seconds = round((self._now() - began) / 1000, 3)
        tail = kept.tail_text(MAX_TAIL_BYTES)
        return Outcome(ending, seconds, kept.content(), tail, kept.total)

    def _watch(
        self, child: Child, limit_seconds: float, wanted: Callable[[], bool]
    ) -> Generator[None, None, Ending]:
        """Until the command itself has ended, or its limit has."""
        limit_at = self._now() + int(limit_seconds * 1000)
        ask_at = self._now() + _LOOK_MS
        with selectors.DefaultSelector() as selector:
            self._listen(selector, child)
            while (ending := child.poll()) is None:
                if self.told_to_end is not None:
                    raise Interrupted(self.told_to_end)
                now = self._now()
                if now >= limit_at:
                    return Ending(None, timed_out=limit_seconds)
                if now >= ask_at:
                    if not wanted():
                        raise Withdrawn("nobody wants it any more")
                    yield
                    ask_at = self._now() + _LOOK_MS
                else:
                    self._sleep(selector, child, min(limit_at, ask_at) - now)
        return ending

    def _listen(self, selector: selectors.BaseSelector, child: Child) -> None:
        for descriptor in child.pipes:
            selector.register(descriptor, selectors.EVENT_READ)
        if self._signals is not None:
            selector.register(self._signals.descriptor, selectors.EVENT_READ)

    def _sleep(self, selector: selectors.BaseSelector, child: Child, milliseconds: int) -> None:
        if self._signals is None:
            milliseconds = min(milliseconds, _POLL_MS)  # nothing tells of the command's end
        for key, _ in selector.select(max(0.001, milliseconds / 1000)):
            if key.fd not in child.pipes:
                assert self._signals is not None
                self._signals.drain()
            elif not child.read(key.fd):
                selector.unregister(key.fd)

    def _end(self, child: Child) -> None:
        """End what is left of the group: TERM, and KILL after the grace, or at a second signal."""
        now = self._now()
        kill_at, given_up_at = now + int(GRACE_SECONDS * 1000), None
        child.terminate()
        with selectors.DefaultSelector() as selector:
            self._listen(selector, child)
            while child.poll() is None or has_members(child.group):
                now = self._now()
                if given_up_at is None and (now >= kill_at or self._stops > 1):
                    child.kill()
                    given_up_at = now + _KILLED_MS
                if given_up_at is not None and now >= given_up_at:
                    break
                self._sleep(selector, child, _POLL_MS)
        child.drain()

    @property
    def _stops(self) -> int:
        return 0 if self._signals is None else self._signals.stops

    def _now(self) -> int:
        return self._clock.now().monotonic_ms


def end_group(group: int) -> None:
    """End the group of a check whose starter is gone: TERM, then KILL after the grace. The caller
    has seen that the number still means that group."""
    clock = SystemClock()
    kill_at = clock.now().monotonic_ms + int(GRACE_SECONDS * 1000)
    signal_group(group, signal.SIGTERM)
    signal_group(group, signal.SIGCONT)
    killed_at: int | None = None
    while has_members(group):
        now = clock.now().monotonic_ms
        if killed_at is None and now >= kill_at:
            signal_group(group, signal.SIGKILL)
            killed_at = now
        if killed_at is not None and now >= killed_at + _KILLED_MS:
            return
        time.sleep(_POLL_MS / 1000)


def await_end(group: int) -> None:
    """Wait until a group has no member left, but no longer than its guardian needs to end it."""
    clock = SystemClock()
    until = clock.now().monotonic_ms + _GUARDIAN_MS
    while has_members(group) and clock.now().monotonic_ms < until:
        time.sleep(_POLL_MS / 1000)
