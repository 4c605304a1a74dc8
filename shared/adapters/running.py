"""One run of an agent, as a command of `inbox work`.

The agent has our standard input, which is the task. What it prints is passed on as it comes, and
read; how it ended becomes an exit code: 0 with the final message in `$INBOX_RESULT`, 75 for later,
77 for a missing log-in. A refusal becomes a question, by way of `inbox ask`. Speaks with the bus in
no other way.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import IO, Any

from inbox_orch.shared.ids import printable

from .commands import agent_named
from .facts import Agent
from .reading import DONE, LOG_IN, RATE_LIMIT, REFUSAL, TURN_LIMIT, UNREAD, Reader, Reading

EX_TEMPFAIL, EX_NOPERM = 75, 77  # sysexits.h
USAGE_FILE = "usage"
"""The name of the file beside `$INBOX_RESULT` that says what a run has cost."""
_CHUNK_BYTES = 64 * 1024
_ERROR_BYTES = 64 * 1024
_REASON_CHARACTERS = 2000


def run(name: str, toolset: str, program: str) -> int:
    """Run the agent to its end; the exit code for `inbox work`."""
    agent = agent_named(name)
    process = subprocess.Popen(
        (program, *agent.arguments[toolset]), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # The agent is in our process group, and told to end with us; until it has we are there.
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    reader, errors = Reader(agent), bytearray()
    assert process.stdout is not None and process.stderr is not None
    passing = threading.Thread(target=_pass_errors, args=(process.stderr, errors))
    passing.start()
    _pass_output(process.stdout, reader)
    passing.join()
    status = process.wait()
    reading = reader.finish(status if status >= 0 else None, bytes(errors))
    return _told(agent, reading, status)


def _pass_output(stream: IO[bytes], reader: Reader) -> None:
    while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
        reader.add(chunk)
        _write(1, chunk)


def _pass_errors(stream: IO[bytes], kept: bytearray) -> None:
    while chunk := os.read(stream.fileno(), _CHUNK_BYTES):
        kept += chunk
        del kept[:-_ERROR_BYTES]
        _write(2, chunk)


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
        _leave(agent, reading)
        return 0
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


def _leave(agent: Agent, reading: Reading) -> None:
    """The final message as the result, unless the agent has left one, and what it has cost."""
    path = os.environ.get("INBOX_RESULT")
    if path is None:
        return
    if reading.message is not None and not os.path.lexists(path):
        with open(path, "wb") as file:
            file.write(reading.message.encode(errors="replace"))
    with open(os.path.join(os.path.dirname(path), USAGE_FILE), "w") as usage:
        json.dump(usage_of(agent.name, reading), usage)


def usage_of(name: str, reading: Reading) -> dict[str, Any]:
    """What is kept of a run beside its message; the names are those that reports look for."""
    tokens = {
        "input_tokens": reading.input_tokens,
        "cached_input_tokens": reading.cached_input_tokens,
        "output_tokens": reading.output_tokens,
    }
    cost = reading.cost_microdollars
    facts = {
        "agent": name,
        "session_id": reading.session,
        "cost_microdollars": cost,
        "cost_usd": None if cost is None else cost / 1_000_000,
        "usage": {key: value for key, value in tokens.items() if value is not None} or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _asked(agent: Agent, reading: Reading) -> bool:
    """Ask the leader about a refusal; whether that could be done."""
    if "INBOX_TOKEN" not in os.environ:
        return False
    body = f"{_sentence(agent, reading)}\n\nHow shall it go on? It is told the answer."
    asked = (sys.executable, "-P", "-m", "inbox_orch.inbox", "ask", "--body", body)
    return subprocess.run(asked, stdin=subprocess.DEVNULL, stdout=2).returncode == 0


def _say(text: str) -> None:
    _write(2, f"{text}\n".encode(errors="replace"))
