"""What a thread asks of a worker: the worktree and the time limit in its payload, and the text
that its command is given."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from inbox_orch.shared.adapters.usage import SESSION_VARIABLE, Session, is_session_id
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.ids import printable
from inbox_orch.shared.processes.surroundings import without_repository

from ..bus import Bus
from ..domain import limits
from ..domain.model import Message, Thread
from ..services import working


class BadTask(Exception):
    """The payload asks for something that cannot be done; the text says what."""


class Terms(NamedTuple):
    """Where a command runs, and for how many seconds at most; `retry_refused`: a result that the
    thread's schema refuses is no failure of the task, which is offered again; `retry_failed`: nor
    is that its command fails; `session`: what it may go on with."""

    folder: str
    timeout_seconds: float | None
    retry_refused: bool = False
    retry_failed: bool = False
    session: Session | None = None


def terms_of(payload: str | None, timeout_seconds: float | None) -> Terms:
    """The terms in the payload of a task; the shorter of two time limits holds.

    Raises `BadTask` for a folder that is not there, and for a limit that is none or longer than
    `--timeout` may be.
    """
    asked = {} if payload is None else json.loads(payload)
    limit = asked.get("timeout_seconds")
    if limit is not None:
        limit = _checked_limit(limit)
        timeout_seconds = min(limit, timeout_seconds or limit)
    folder = _folder(asked.get("worktree"))
    refused, failed = (asked.get(name) is True for name in ("retry_refused", "retry_failed"))
    return Terms(folder, timeout_seconds, refused, failed, _session(asked.get("session")))


def _session(asked: object) -> Session | None:
    """What is no session of ours may mean anything, and is left alone."""
    if not isinstance(asked, dict) or not is_session_id(asked.get("id")):
        return None
    agent = asked.get("agent")
    return Session(asked["id"], agent) if agent is None or isinstance(agent, str) else None


def _checked_limit(limit: object) -> float:
    most = limits.MAX_DELAY_SECONDS
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= most:
        given = printable(repr(limit))
        raise BadTask(
            f"payload.timeout_seconds is {given}, not a number above zero and up to {most:.0f}."
        )
    return limit


def _folder(worktree: object) -> str:
    if worktree is None:
        return os.getcwd()
    if not isinstance(worktree, str) or not worktree or "\0" in worktree:
        raise BadTask("payload.worktree is not the path of a folder.")
    folder = os.path.abspath(worktree)
    if not os.path.isdir(folder):
        raise BadTask(f"The worktree {printable(folder, 4096)} is not there, or is no folder.")
    return folder


def environment(
    bus: Bus, thread: Thread, token: str, terms: Terms, folder: str
) -> Mapping[str, str]:
    """What a command finds in its environment; `folder` is its private one."""
    session = {} if terms.session is None else {SESSION_VARIABLE: terms.session.id}
    inherited = without_repository(os.environ)
    inherited.pop(SESSION_VARIABLE, None)
    return {
        **inherited,
        **session,
        "INBOX_DB": bus.database.address,
        "INBOX_DB_ID": bus.database.id,
        "INBOX_AGENT": str(thread.holder),
        "INBOX_THREAD": thread.id,
        "INBOX_TOKEN": token,
        "INBOX_WORKTREE": terms.folder,
        "INBOX_RESULT": os.path.join(folder, "result"),
        "INBOX_TASK_FILE": os.path.join(folder, "task"),
        "PWD": terms.folder,
    }


def clear_away(path: str) -> None:
    """Whatever a command has left at this path."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def write_task(bus: Bus, thread: Thread, path: str) -> int:
    """Write the task's text, and what has been said since, into a new file at `path`.

    A task without a body is its subject. What its result has to satisfy, if anything, comes behind
    it. Returns the id of the last message that is in it.
    """
    messages = _messages(bus, thread.id)
    first = next(messages)
    last = first.id
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write((first.body or thread.subject + "\n").encode())
        if thread.has_schema:
            file.write(_asked_of_the_result(bus, thread).encode())
        for message in messages:
            if last == first.id:
                file.write(b"\n\n---\n\n## Since then\n")
            file.write(since_then(message).encode())
            last = message.id
    return last


def _asked_of_the_result(bus: Bus, thread: Thread) -> str:
    """What the schema asks for, as a part of the task's text."""
    schema = working.result_schema(bus.desk, thread)
    return (
        "\n\n---\n\n## The result\n\nHand in JSON that this JSON Schema accepts, and nothing else;"
        f" anything else is refused:\n\n```json\n{schema}\n```\n"
    )


def _messages(bus: Bus, thread_id: str) -> Iterator[Message]:
    """All messages of the thread, a few in memory at a time."""
    after = 0
    while page := working.thread_messages(bus.desk, thread_id, after=after):
        yield from page
        after = page[-1].id


def since_then(message: Message) -> str:
    """A later message as a part of the task's text."""
    lines = [f"\n### {message.kind} from {message.sender}, {rfc3339(message.created_at)}\n"]
    if message.progress is not None:
        lines.append(f"Progress: {message.progress} %\n")
    if message.options:
        lines.append("Options: " + " | ".join(message.options) + "\n")
    if message.body:
        lines.append(message.body + "\n")
    if message.payload is not None:
        lines.append(f"Payload: {message.payload}\n")
    lines += [
        f"Attached: {a.name} ({a.bytes} bytes; `inbox show {message.thread_id}"
        f" --artifact {a.name}` prints it)\n"
        for a in message.artifacts
    ]
    return "\n".join(lines)
