"""The one runner: a gate's shell command in its folder, in a group of its own, with a time limit.

Checks of attempts, set-up and checks of an integration all go through it. Knows nothing of
attempts, and writes nothing but what the command itself does, and the artifact with its output.
Whatever ends this process, no process of a gate is left behind: a guardian sees to those of one
that is killed, and a command begins only once the guardian and the caller know of it.
"""

import contextlib
import os
import selectors
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inbox_orch.shared.clock import SystemClock
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.processes.groups import has_members
from inbox_orch.shared.processes.guardian import Guardian
from inbox_orch.shared.processes.kept import Kept
from inbox_orch.shared.processes.noting import Shared

from ..git.repository import is_there
from ..git.standing import require_here
from ..patches.hiding import KeyStream
from . import turns
from .checks import MAX_TAIL_BYTES, Checked
from .listening import Ear
from .orphans import GRACE_SECONDS, KILLED_MS, POLL_MS
from .spec import GateSpec, NotStarted, Outcome, checked
from .turns import finished

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import ArtifactStore

_LOOK_MS = 500
_TAKEN_OVER = "another leader has taken it over"

# The check waits for a line, so that nothing of it has happened when its starter dies before
# another process knows of it; then the pipe ends. What it runs has an empty standard input.
_GATE = 'read -r go && exec /bin/sh -c "$1" </dev/null'
_WORDS = 'read -r go && exec "$@" </dev/null'


def _granted(_: object = None) -> bool:
    return True


def _never() -> bool:
    return False


class Mandate(NamedTuple):
    """What the caller has to say while gates run for it; whatever it raises ends what runs.

    `begins` is called with the number of a command's group before anything of it happens, and may
    refuse. `wanted` is asked now and then while it runs, before the caller gets a turn. `noted`
    is called with all results after each command, and says whether to go on. `over` says whether
    the time is over in which another command may begin.
    """

    begins: Callable[[int], bool] = _granted
    wanted: Callable[[], bool] = _granted
    noted: Callable[[Sequence[Checked]], bool] = _granted
    over: Callable[[], bool] = _never


class Withdrawn(Exception):
    """The outcome is not wanted any more; the check was ended."""


class Interrupted(Exception):
    """A signal told this process to end; the check was ended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Runner:
    """Runs gates one after the other. While entered, signals are noted and end the command that
    runs; a guardian stands by."""

    def __init__(
        self,
        notice: Callable[[str], None],
        mandate: Mandate = Mandate(),  # noqa: B008 - it cannot be changed
        *,
        locks: Sequence[int] = (),
        artifacts: "ArtifactStore | None" = None,
    ) -> None:
        """`locks` are descriptors of locks that stay held until the guardian, too, is done;
        `artifacts` is where output is kept."""
        self._guardian = Guardian(notice, "this command")
        self._mandate, self._locks, self._artifacts = mandate, locks, artifacts
        self._clock = SystemClock()
        # Signals can be listened to in the main thread alone (signal(3)).
        main = threading.current_thread() is threading.main_thread()
        self._signals = Shared() if main else None

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

    def run(self, spec: GateSpec) -> Outcome:
        """Run a gate to its end: `running`, without a turn for anything else."""
        return finished(self.running(spec))

    def series(
        self, specs: Sequence[Callable[[], GateSpec]]
    ) -> Generator[None, None, list[Checked] | None]:
        """Run gates in order, up to the first that fails, and give the caller a turn now and then;
        returns what they have come to, None when the time was over before the last one. Each is
        made when its turn has come, by what is so then. Raises what `running` does.
        """
        results: list[Checked] = []
        for spec in specs:
            if results and self._mandate.over():
                return None
            outcome = yield from self.running(spec())
            results.append(outcome.checked)
            if not self._mandate.noted(results):
                raise Withdrawn(_TAKEN_OVER)
            if self.told_to_end is not None:
                raise Interrupted(self.told_to_end)
            if not outcome.passed:
                break
        return results

    def running(self, spec: GateSpec) -> Generator[None, None, Outcome]:
        """Run a gate to its end, and give the caller a turn now and then. To close the generator
        ends the command.

        Raises `Withdrawn`, `Interrupted`, and `NotStarted`. Errors: `git_failed` when git in its
        folder is about other files; those of keeping an artifact.
        """
        kept = Kept(spec.output, "orch", KeyStream(spec.secrets))
        ear = Ear(kept)
        reader, writer = os.pipe()
        try:
            try:
                child = _started(spec, reader, kept, ear)
            finally:
                os.close(reader)
            self._guardian.begin(child.group, None)
            try:
                began = self._now()
                if not self._mandate.begins(child.group):
                    raise Withdrawn(_TAKEN_OVER)
                with contextlib.suppress(BrokenPipeError):
                    os.write(writer, b"\n")
                ending = yield from self._watch(child, spec.limit_seconds, self._mandate.wanted)
            finally:
                self._end(child)
                self._guardian.end(child.group)
        finally:
            os.close(writer)
        kept.finish()
        seconds = round((self._now() - began) / 1000, 3)
        result = checked(spec, ending, seconds, kept.tail_text(MAX_TAIL_BYTES), kept.total)
        return self._kept(spec, Outcome(result, kept.content(), ear.heard))

    def _kept(self, spec: GateSpec, outcome: Outcome) -> Outcome:
        """Keep the output beside the database, if it is to be kept."""
        if spec.artifact is None:
            return outcome
        assert self._artifacts is not None, "there is no place for the output"
        stored = self._artifacts.add_bytes(spec.artifact, outcome.content)
        return outcome._replace(checked=outcome.checked.with_artifact(*stored))

    def _watch(
        self, child: Child, limit_seconds: float, wanted: Callable[[], bool]
    ) -> Generator[None, None, Ending]:
        """Until the command itself has ended, or its limit has."""
        limit_at = self._now() + int(limit_seconds * 1000)
        ask_at = self._now() + _LOOK_MS
        turn_at = self._now() + turns.SLICE.ms
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
                        raise Withdrawn("it is not wanted any more")
                    ask_at = self._now() + _LOOK_MS
                    turn_at = now
                if now >= turn_at:
                    yield
                    turn_at = self._now() + turns.SLICE.ms
                else:
                    self._sleep(selector, child, min(limit_at, ask_at, turn_at) - now)
        if ending.signal is not None and self.told_to_end is not None:
            # Until it has its own group, a command is met by what is sent to that of its caller.
            raise Interrupted(self.told_to_end)
        return ending

    def _listen(self, selector: selectors.BaseSelector, child: Child) -> None:
        for descriptor in child.pipes:
            selector.register(descriptor, selectors.EVENT_READ)
        if self._signals is not None:
            selector.register(self._signals.descriptor, selectors.EVENT_READ)

    def _sleep(self, selector: selectors.BaseSelector, child: Child, milliseconds: int) -> None:
        if self._signals is None:
            milliseconds = min(milliseconds, POLL_MS)  # nothing tells of the command's end
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
                    given_up_at = now + KILLED_MS
                if given_up_at is not None and now >= given_up_at:
                    break
                self._sleep(selector, child, POLL_MS)
        child.drain()

    @property
    def _stops(self) -> int:
        return 0 if self._signals is None else self._signals.stops

    def _now(self) -> int:
        return self._clock.now().monotonic_ms


def _started(spec: GateSpec, reader: int, kept: Kept, ear: Ear) -> Child:
    """The command's process, which waits for a line from `reader`. What it asks of git is about
    the files of its folder. Error `git_failed`; raises `NotStarted`."""
    listened = Kept(spec.output, "orch", ear)
    try:
        if spec.repository is not None:
            require_here(spec.folder, spec.repository)
        return Child.start(
            _call(spec),
            folder=spec.folder,
            environment=spec.environment,
            stdin=reader,
            stdout=kept if spec.listens is None else listened,
            stderr=listened if spec.listens == "all" else kept,
        )
    except InboxOrchError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _not_started(spec, error.__cause__, error) from error.__cause__
    except OSError as error:
        raise _not_started(spec, error) from error


def _call(spec: GateSpec) -> tuple[str, ...]:
    if spec.words is not None:
        return ("/bin/sh", "-c", _WORDS, "gate", *spec.words)
    return ("/bin/sh", "-c", _GATE, "check", spec.command)


def _not_started(
    spec: GateSpec, error: OSError, of_git: InboxOrchError | None = None
) -> NotStarted:
    gone = not is_there(spec.folder)
    return NotStarted(spec, str(error.strerror), gone=gone, of_git=of_git)
