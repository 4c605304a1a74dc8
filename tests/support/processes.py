"""Real processes that hold a bus open, to be killed, stopped and set off together.

A `Clerk` does what it is told, one call at a time, over its standard input and output. A
`Child` runs any text as Python. A `Gun` sets off many processes at one moment. Nothing here
sleeps to let something happen: whoever waits, waits for a line, a process's end or a condition.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support import warm
from support.timing import PATIENCE_SECONDS

_TESTS = str(Path(__file__).resolve().parent.parent)
_PRELUDE = f"import sys; sys.path.insert(0, {_TESTS!r})\n"


class Answer(NamedTuple):
    """What a call in another process gave: a value, or the code of its refusal.

    `began_ns` and `ended_ns` are on the machine's monotonic clock, the same in all processes.
    """

    value: Any
    refused: str | None
    exit_code: int
    began_ns: int
    ended_ns: int

    @property
    def thread(self) -> str:
        """The thread that the call was about."""
        return self.value["thread"]["id"]

    @property
    def token(self) -> str:
        """The token of the lease that the call took."""
        return self.value["lease"]["token"]


class Child:
    """A Python process that runs `code` and talks in JSON lines.

    `fresh`: started anew, for what the weight of a warm process would disturb.
    """

    def __init__(
        self,
        code: str,
        *arguments: object,
        pass_fds: Sequence[int] = (),
        environment: dict[str, str] | None = None,
        fresh: bool = False,
    ) -> None:
        changed = environment or {}
        given = [_PRELUDE + code, *map(str, arguments)]
        self.process: warm.Forked | subprocess.Popen[bytes]
        if fresh or not warm.is_enough(changed):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=pass_fds,
                env={**os.environ, **changed},
            )
        else:
            self.process = warm.Forked(
                "code",
                given,
                stdin=subprocess.PIPE,
                descriptors=pass_fds,
                environment={**os.environ, **changed},
            )
        self._heard = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def tell(self, value: object) -> None:
        """Send it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(value).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, within: float = PATIENCE_SECONDS) -> Any:
        """Its next line."""
        deadline = time.monotonic() + within
        while b"\n" not in self._heard:
            chunk = self._read(deadline)
            assert chunk, f"the process said no more and ended with {self.process.wait()}"
            self._heard += chunk
        line, self._heard = self._heard.split(b"\n", 1)
        return json.loads(line)

    def until_asleep(self) -> None:
        """Return once it sleeps; what it said last tells in what."""
        until(lambda: _state_of(self.pid) == "S")

    def silent_for(self, seconds: float) -> bool:
        """Whether it says nothing for so long."""
        assert self.process.stdout is not None
        return not self._heard and not select.select([self.process.stdout], [], [], seconds)[0]

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: _state_of(self.pid) == "T")

    def thaw(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it, whatever it is doing."""
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _read(self, deadline: float) -> bytes:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        left = max(0.0, deadline - time.monotonic())
        assert select.select([descriptor], [], [], left)[0], "the process said nothing in time"
        return os.read(descriptor, 65536)


class Gun:
    """One pipe that many processes read a byte from: all are set off by one write."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()

    def fire(self, shots: int) -> None:
        """Set off as many processes."""
        os.write(self._writer, b"!" * shots)

    def close(self) -> None:
        """Both ends."""
        os.close(self.descriptor)
        os.close(self._writer)


_CLERK = "from support.processes import serve; serve(*sys.argv[1:])"


class Clerk(Child):
    """A process with an open `Bus` for one agent."""

    def __init__(
        self,
        path: object,
        agent: str,
        *,
        gun: Gun | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.agent = agent
        self._has_begun = False
        descriptors = () if gun is None else (gun.descriptor,)
        super().__init__(
            _CLERK, path, agent, *descriptors, pass_fds=descriptors, environment=environment
        )

    def silent_for(self, seconds: float) -> bool:
        """Whether the call that was begun takes longer than that."""
        self._begun(PATIENCE_SECONDS)
        return super().silent_for(seconds)

    def start(self, verb: str, *arguments: object, **options: object) -> None:
        """Begin a call; `answer` gives its outcome."""
        self.tell({"verb": verb, "arguments": arguments, "options": options})

    def start_at_gun(self, verb: str, *arguments: object, **options: object) -> None:
        """Prepare a call that begins when the gun fires."""
        self.tell({"verb": verb, "arguments": arguments, "options": options, "gun": True})

    def aimed(self) -> None:
        """Return once the prepared call waits for the gun."""
        assert self.hear() == "aimed"

    def answer(self, within: float = PATIENCE_SECONDS) -> Answer:
        """The outcome of the call that was begun."""
        self._begun(within)
        self._has_begun = False
        return Answer(**self.hear(within))

    def call(self, verb: str, *arguments: object, **options: object) -> Answer:
        """A call from beginning to end."""
        self.start(verb, *arguments, **options)
        return self.answer()

    def until_asleep(self) -> None:
        """Return once the call that was begun sleeps."""
        self._begun(PATIENCE_SECONDS)
        super().until_asleep()

    def _begun(self, within: float) -> None:
        if not self._has_begun:
            assert self.hear(within) == "begun"
            self._has_begun = True


def serve(path: str, agent: str, gun: str = "") -> None:
    """The other side of `Clerk`, in its process."""
    from inbox_orch.inbox import Bus

    # A busy machine is no failure: nobody gives up because others are slow.
    with Bus.open(path, agent=agent, busy_seconds=PATIENCE_SECONDS) as bus:
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("gun"):
                say("aimed")
                os.read(int(gun), 1)
            say("begun")
            say(_perform(bus, request))


def _perform(bus: Any, request: dict[str, Any]) -> dict[str, Any]:
    from inbox_orch.shared.errors import InboxOrchError

    value, refused, exit_code = None, None, 0
    began = time.monotonic_ns()
    try:
        given = getattr(bus, request["verb"])(*request["arguments"], **request["options"])
        value = [e.as_json() for e in given] if request["verb"] == "watch" else given.as_json()
    except InboxOrchError as error:
        refused, exit_code = error.code, error.exit_code
    ended = time.monotonic_ns()
    return {
        "value": value,
        "refused": refused,
        "exit_code": exit_code,
        "began_ns": began,
        "ended_ns": ended,
    }


def say(value: object) -> None:
    """A line from a child to its test."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def until(condition: Callable[[], object], within: float = PATIENCE_SECONDS) -> None:
    """Look again and again until the condition holds."""
    deadline, pause = time.monotonic() + within, 0.002
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        select.select([], [], [], pause)
        pause = min(pause * 1.3, 0.02)


def linger(seconds: float) -> None:
    """Let a fault strike at a chosen moment. Never to wait for something that must happen."""
    time.sleep(seconds)


@contextlib.contextmanager
def crew(*members: Any) -> Iterator[tuple[Any, ...]]:
    """Processes and guns that are closed at the end, whatever happens."""
    try:
        yield members
    finally:
        close_all(members)


def close_all(members: Iterable[Any], *others: Any) -> None:
    """Close everything, in order; `members` may have changed since they were made."""
    for member in (*members, *others):
        member.close()


class Ran(NamedTuple):
    """A command that has ended; `json` is the one value on its standard output."""

    exit_code: int
    json: Any


def run_json(command: str, *arguments: str, agent: str | None = None) -> Ran:
    """Run `inbox` or `orch` with --json to its end."""
    running = start_json(command, *arguments, agent=agent)
    return finish(running)


def start_json(
    command: str, *arguments: str, agent: str | None = None, **options: Any
) -> warm.Forked:
    """Begin a command with --json; `options` are those of `warm.Forked`."""
    acting = () if agent is None else ("--agent", agent)
    return warm.Forked("command", [command, *arguments, "--json", *acting], **options)


def finish(running: warm.Forked) -> Ran:
    """Wait for a command's end."""
    out, _ = running.communicate(timeout=PATIENCE_SECONDS)
    return Ran(running.wait(), json.loads(out))


class Usage(NamedTuple):
    """What a process has cost: processor time, its children's too, and how often it went to
    sleep."""

    seconds: float
    sleeps: int

    def __sub__(self, before: "Usage") -> "Usage":  # type: ignore[override]
        return Usage(self.seconds - before.seconds, self.sleeps - before.sleeps)


def usage(pid: int) -> Usage:
    """As the kernel counts it: proc_pid_stat(5), proc_pid_status(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    status = Path(f"/proc/{pid}/status").read_text()
    switches = next(x for x in status.splitlines() if x.startswith("voluntary_ctxt_switches"))
    return Usage(seconds, int(switches.split()[1]))


def until_idle(pid: int, seconds: float = 0.5) -> None:
    """Return once a process has had nothing to do for so long: it sleeps, and has used no time."""
    before, since = usage(pid).seconds, time.monotonic()

    def is_idle() -> bool:
        nonlocal before, since
        now = usage(pid).seconds
        if _state_of(pid) != "S" or now != before:
            before, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    until(is_idle)


def marked(mark: str) -> list[str]:
    """The command lines of the live processes that were started with `mark` in their environment.

    Whoever makes itself a daemon leaves its session and its group, and keeps its environment.
    Needs /proc.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # One has just gone, or it is another user's, who cannot have been started by us.
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    line = (entry / "cmdline").read_bytes()
                    found.append(f"{entry.name} {line.replace(bytes(1), b' ').decode()}")
    return found


def _state_of(pid: int) -> str:
    """The letter of proc_pid_stat(5): R, S, T, Z."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]
