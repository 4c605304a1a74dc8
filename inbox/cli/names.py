"""What a shell may complete from the database: threads, mailboxes, agents, artifacts.

Reads only, and waits for nobody.
"""

import click

from inbox_orch.shared.commandline import shell_of
from inbox_orch.shared.completion import MOST_SUGGESTED, Suggestion, commands_and
from inbox_orch.shared.topics import TOPICS

from ..domain.states import BLOCKED, CLAIMED, PENDING
from ..services.naming import Naming

_HELD = (CLAIMED, BLOCKED)
_LIVE = (PENDING, *_HELD)
# The states of the threads that a command can do something with; every state for the others.
_STATES = {
    "claim": (PENDING,),
    "cancel": _LIVE,
    "reply": _LIVE,
    **dict.fromkeys(("renew", "update", "ask", "wait-reply", "done", "fail", "release"), _HELD),
}
_MAILBOXES = ("--mailbox", "--to")
_AGENTS = ("--agent", "--from")


def suggest(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[Suggestion]:
    """(name, what it is) for a parameter; errors of opening the database are the caller's."""
    option = parameter.opts[0]
    if option == "words":
        return commands_and(context, tuple(TOPICS), context.params.get("words") or ())
    if option in (*_MAILBOXES, *_AGENTS, "thread", "--thread", "--artifact"):
        return _from_database(context, option, incomplete)
    return []


def _from_database(context: click.Context, option: str, incomplete: str) -> list[Suggestion]:
    shell = shell_of(context)
    names = Naming.open(
        shell.database,
        agent=shell.agent,
        database_id=shell.expected_id,
        busy_seconds=0,
        looks=True,
    )
    context.call_on_close(names.close)
    reads = context.params.get("mailboxes") or ()
    if option in _MAILBOXES:
        return [(name, "mailbox") for name in names.mailboxes_beginning(incomplete, MOST_SUGGESTED)]
    if option in _AGENTS:
        return [(name, "agent") for name in names.agents_beginning(incomplete, MOST_SUGGESTED)]
    if option == "--artifact":
        thread = context.params.get("thread") or ""
        return [(name, "artifact") for name in names.artifacts_of(thread, mailboxes=reads)]
    wanted = _STATES.get(context.info_name or "", ())
    return names.threads_beginning(incomplete, states=wanted, mailboxes=reads, limit=MOST_SUGGESTED)
