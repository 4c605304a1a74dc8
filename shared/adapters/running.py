"""One run of an agent, as a command of `inbox work`.

The agent has our standard input, which is the task. What it prints is passed on as it comes, and
read; how it ended becomes an exit code: 0 with the final message in `$INBOX_RESULT`, 75 for later,
77 for a missing log-in. A refusal becomes a question, by way of `inbox ask`. Speaks with the bus in
no other way.

With a session in `$INBOX_SESSION` the agent goes on with that. One that is not there any more is
said, and the whole task, from `$INBOX_TASK_FILE`, goes to a new one.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.folders import write_all

from .commands import agent_named
from .facts import Agent
from .reading import (
    DONE,
    FAILED,
    LOG_IN,
    RATE_LIMIT,
    REFUSAL,
    SESSION_LOST,
    TURN_LIMIT,
    UNREAD,
    Reader,
    Reading,
)
from .usage import SESSION_VARIABLE, is_session_id, usage_of

EX_TEMPFAIL, EX_NOPERM = 75, 77  # sysexits.h
USAGE_FILE = "usage"
"""The name of the file beside `$INBOX_RESULT` that says what a run has cost."""
_CHUNK_BYTES = 64 * 1024
_ERROR_BYTES = 64 * 1024
_PIPE_BYTES = 1024 * 1024  # at most (pipe(7))
_LOOK_SECONDS = 0.2
_REASON_CHARACTERS = 2000


def run(name: str, toolset: str, program: str, model: str | None = None) -> int:
    """Run the agent to its end; the exit code for `inbox work`."""
    agent = agent_named(name)
    runner = _Runner(agent, program)
    session = os.environ.get(SESSION_VARIABLE)
    if not agent.resume or not is_session_id(session):
        return _told(agent, *runner.run(agent.starting(toolset, model)))
    assert session is not None
    reading, status = runner.run(agent.resuming(toolset, session, model))
    if runner.stopped or not _is_lost(reading, status):
        return _told(agent, reading._replace(resumed=session), status)
    reason = f": {_cut(reading.reason)}" if reading.reason else ""
    _say(f"session {session} of {agent.title} is lost, so a new one is begun{reason}")
    with _whole_task() as task:
        reading, status = runner.run(agent.starting(toolset, model), task)
    return _told(agent, reading._replace(lost=session), status)


def _is_lost(reading: Reading, status: int) -> bool:
    """Whether a run did not even begin: it says that the session is not there, or it failed before
    it named any."""
    if reading.outcome == SESSION_LOST:
        return True
    begun = reading.session is not None or reading.message is not None
    return reading.outcome == FAILED and status > 0 and not begun


def _whole_task() -> contextlib.AbstractContextManager[IO[bytes]]:
    """The task once more, from its beginning."""
    with contextlib.suppress(OSError, KeyError):
        return open(os.environ["INBOX_TASK_FILE"], "rb")
    with contextlib.suppress(OSError):
        os.lseek(0, 0, os.SEEK_SET)
    return os.fdopen(os.dup(0), "rb")


class _Runner:
    """Runs an agent, more than once if need be."""

    def __init__(self, agent: Agent, program: str) -> None:
        self._agent, self._program = agent, program
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        # The agent is in our process group, and told to end with us; until it has we are there.
        signal.signal(signal.SIGTERM, lambda *_: self._stop())

    def run(self, arguments: Sequence[str], task: IO[bytes] | None = None) -> tuple[Reading, int]:
        """One run, with this task or else our own standard input: what it means, and its status."""
        process = self._process = subprocess.Popen(
            (self._program, *arguments),
            stdin=task,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if self.stopped:  # in the moment before
            process.terminate()
        reader = Reader(self._agent)
        errors = _pass_on(process, reader)
        status = process.wait()
        return reader.finish(status if status >= 0 else None, errors), status

    def _stop(self) -> None:
        self.stopped = True
        if self._process is not None:
            self._process.terminate()


def _pass_on(process: "subprocess.Popen[bytes]", reader: Reader) -> bytes:
    """Pass on what an agent prints, until it has ended; the tail of its errors. What it has left
    running, a server say, may have its pipes open for ever: of that no more is read than a pipe
    can hold."""
    assert process.stdout is not None and process.stderr is not None
    errors, left = bytearray(), 2 * _PIPE_BYTES
    with selectors.DefaultSelector() as selector:
        for stream, descriptor in ((process.stdout, 1), (process.stderr, 2)):
            selector.register(stream, selectors.EVENT_READ, descriptor)
        while selector.get_map() and left > 0:
            ended = process.poll() is not None
            found = selector.select(0 if ended else _LOOK_SECONDS)
            if ended and not found:
                break
            for key, _ in found:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                left -= len(chunk) if ended else 0
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data == 1:
                    reader.add(chunk)
                else:
                    errors = (errors + chunk)[-_ERROR_BYTES:]
                _write(key.data, chunk)
    return bytes(errors)


def _write(descriptor: int, content: bytes) -> None:
    """All of it, as long as somebody reads: an agent must not stop since nobody does."""
    with contextlib.suppress(OSError):
        while content:
            content = content[os.write(descriptor, content) :]


def _told(agent: Agent, reading: Reading, status: int) -> int:
    """Say what became of the task in the ways that `inbox work` understands."""
    outcome = reading.outcome
    if outcome in (DONE, UNREAD):
        if outcome == UNREAD:
            _say(f"what {agent.title} printed could not be understood; it is kept as it is")
        return _leave(agent, reading)
    if outcome == REFUSAL and _asked(agent, reading):
        return 0
    _say(_sentence(agent, reading))
    codes = {RATE_LIMIT: EX_TEMPFAIL, LOG_IN: EX_NOPERM}
    if outcome in codes:
        return codes[outcome]
    return status if 0 < status < 126 and status not in codes.values() else 1


def _sentence(agent: Agent, reading: Reading) -> str:
    said = {
        RATE_LIMIT: f"{agent.title} has reached a limit of use; the task waits for a later try",
        LOG_IN: f"{agent.title} is not logged in: {agent.log_in_by}",
        TURN_LIMIT: f"{agent.title} has used up its turns before it was done",
        REFUSAL: f"{agent.title} refuses the task",
    }.get(reading.outcome, f"{agent.title} has failed")
    reason = reading.reason or (reading.message if reading.outcome == REFUSAL else None)
    return f"{said}\n{_cut(reason)}" if reason else said


def _cut(reason: str) -> str:
    """A reason of an agent's own, line by line, as far as it is worth reading."""
    lines = (printable(line, _REASON_CHARACTERS) for line in reason.strip().splitlines())
    return "\n".join(lines)[:_REASON_CHARACTERS]


def _leave(agent: Agent, reading: Reading) -> int:
    """Leave the final message as the result, unless the agent has left one, and what it has cost;
    the exit code, that of a later try where there is no room for them."""
    path = os.environ.get("INBOX_RESULT")
    if path is None:
        return 0
    beside = os.path.join(os.path.dirname(path), USAGE_FILE)
    try:
        if reading.message is not None:
            with contextlib.suppress(FileExistsError):
                _write_new(path, reading.message.encode(errors="replace"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)  # of an earlier run
        _write_new(beside, json.dumps(usage_of(agent.name, reading)).encode())
    except OSError as error:
        _say(f"what {agent.title} has done could not be handed in: {error.strerror}")
        return EX_TEMPFAIL
    return 0


def _write_new(path: str, content: bytes) -> None:
    """A file that was not there, whole or not at all. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        write_all(descriptor, content)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(descriptor)


def _asked(agent: Agent, reading: Reading) -> bool:
    """Ask the leader about a refusal; whether that could be done."""
    if "INBOX_TOKEN" not in os.environ:
        return False
    body = f"{_sentence(agent, reading)}\n\nHow shall it go on? It is told the answer."
    asked = (sys.executable, "-P", "-m", "inbox_orch.inbox", "ask", "--body", body)
    return subprocess.run(asked, stdin=subprocess.DEVNULL, stdout=2).returncode == 0


def _say(text: str) -> None:
    _write(2, f"{text}\n".encode(errors="replace"))
