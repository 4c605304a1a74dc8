"""What the commands of `inbox hook` have in common: Claude Code's hooks, their JSON, their exits.

Relied on (code.claude.com/docs/en/hooks): a hook command gets one JSON object on standard input,
with `hook_event_name`, and with `agent_id` when it fires in a subagent. Exit 0 with a JSON object
on standard output is a decision; exit 2 blocks the action and shows standard error to the model,
whatever was meant; any other exit is shown to the user alone. SessionStart and PostToolUse take
`hookSpecificOutput.additionalContext`, which the model reads; Stop takes `decision: "block"` with
a `reason`, and the model then goes on; every event takes `systemMessage`, which the user reads.

So without --json nothing here ends with 2: what is wrong is said on standard error, exit 0. A
person at a terminal, and whoever gives --json, gets the exit codes of the other commands.
"""

import json
import os
import select
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from inbox_orch.shared.declaring import Context, Declared, shell_of, verb
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.output import Output

from ..domain.model import Thread
from ..services.announcing import MOST_ANNOUNCED, Announcing, News
from ..services.reading import Overview
from .base import mailbox_option, open_group

_LISTED = 5
_PATIENCE_SECONDS = 1.0
_KEPT_BYTES = 64 * 1024 * 1024
_NO_NAME = (
    "inbox: this session has no agent name, so its hooks announce nothing; "
    "set INBOX_AGENT or give --agent NAME to `inbox hook`"
)

Decision = dict[str, Any]


class Moment(NamedTuple):
    """An event of Claude Code's: `wrap` makes a decision of a text. When a session begins,
    everything is told that waits, also what was announced to an earlier one."""

    name: str
    wrap: Callable[[str], Decision]
    begins: bool = False


def _context(event: str) -> Callable[[str], Decision]:
    return lambda text: {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


SESSION_START = Moment("session-start", _context("SessionStart"), begins=True)
STOP = Moment("stop", lambda text: {"decision": "block", "reason": text})
POST_TOOL = Moment("post-tool", _context("PostToolUse"))


def let_pass(output: Output, error: InboxOrchError) -> None:
    """Say what is wrong, and no more; raise it for those who want the exit code."""
    if output.as_json or _typed():
        raise error
    output.complain(error.message)


def hook_command(moment: Moment, text: str) -> Declared:
    """The command for one event; `text` is its help."""

    @verb(
        moment.name,
        agent=True,
        examples=(f"inbox hook {moment.name} --agent w1 --mailbox workers",),
        text=text,
        lenient=let_pass,
    )
    @mailbox_option
    def command(context: Context, mailboxes: tuple[str, ...]) -> None:
        decision = _decide(context, moment, mailboxes, _given())
        output = shell_of(context).output
        if output.as_json:
            output.result({"event": moment.name, "decision": decision})
        elif decision is not None:
            output.line(decision)

    return command


def _decide(
    context: Context, moment: Moment, mailboxes: tuple[str, ...], given: Decision
) -> Decision | None:
    """What is printed, None for nothing."""
    if given.get("agent_id") is not None:
        return None  # a subagent: what it is told, the agent itself would never hear
    try:
        bus = open_group(context, Announcing)
    except InboxOrchError as error:
        if error.code != "no_database":
            raise
        return None
    if bus.agent is None:
        return {"systemMessage": _NO_NAME} if moment.begins else None
    news = bus.news(mailboxes=mailboxes, again=moment.begins)
    text = _told(news, bus.overview(mailboxes=mailboxes) if moment.begins else None)
    if text is None:
        return None
    # What cannot be remembered would be said again and again, and a stop be refused for ever.
    remembered = not news.items or bus.announced(news)
    return moment.wrap(text) if remembered or moment.begins else None


def _told(news: News, overview: Overview | None) -> str | None:
    """The text for the model, None when there is nothing."""
    lines = [
        *(f"You ({news.agent}) hold thread {t.id}, state {t.state}." for t in _leases(overview)),
        *(f"{t.holder or 'Somebody'} waits for your answer on {t.id}." for t in _asked(overview)),
    ]
    if news.items:
        number = f"{MOST_ANNOUNCED} or more" if news.truncated else str(len(news.items))
        lines.append(f"Unread messages for {news.agent}: {number}.")
        for message, thread in news.items[:_LISTED]:
            where = f"thread {thread.id}, mailbox {thread.mailbox}"
            lines.append(f"- {message.kind} from {message.sender} ({where})")
        boxes = "".join(f" --mailbox {box}" for box in news.mailboxes if box != news.agent)
        lines.append(f"Read them with: inbox fetch --agent {news.agent}{boxes}")
    return "\n".join(["inbox:", *lines]) if lines else None


def _leases(overview: Overview | None) -> tuple[Thread, ...]:
    return overview.leases if overview else ()


def _asked(overview: Overview | None) -> tuple[Thread, ...]:
    return overview.questions if overview else ()


def _typed() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _given() -> Decision:
    """The JSON object on standard input; empty when there is none, or nobody writes one."""
    if sys.stdin is None or _typed():
        return {}
    try:
        value = json.loads(_read(sys.stdin.fileno()))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _read(descriptor: int) -> bytes:
    """What is there, up to its end or until nobody has written for a while."""
    content = bytearray()
    while len(content) < _KEPT_BYTES and select.select([descriptor], [], [], _PATIENCE_SECONDS)[0]:
        part = os.read(descriptor, 1024 * 1024)
        if not part:
            break
        content += part
    return bytes(content)
