"""`inbox mcp`: the bus as tools for an agent's client."""

from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.mcp_command import mcp_command
from inbox_orch.shared.tools.tools import Result, Tool

from .base import open_bus
from .given_lease import Given, given_lease, is_given

_LEASE = frozenset({"thread", "token"})
# What goes into a file, or out of the program as it is.
_FILES = frozenset({"artifact", "output", "raw", "body_to", "message"})


def _give_back(claimed: Result) -> list[str]:
    return ["release", f"--token={claimed['lease']['token']}", "--", claimed["thread"]["id"]]


TOOLS = (
    Tool("send"),
    Tool(
        "fetch",
        defaults={"limit": 10},
        about="Unread messages for this agent, oldest first. Takes no lease: `claim` does.",
    ),
    Tool("claim", without=frozenset({"export", "body_to"}), undo=_give_back),
    Tool("renew", needs=_LEASE, repeats=True),
    Tool("update", needs=_LEASE),
    Tool("ask", needs=_LEASE | {"body"}),
    Tool("wait-reply", needs=_LEASE, waits=True),
    Tool("reply", needs=frozenset({"body"})),
    Tool("done", needs=_LEASE, repeats=True),
    Tool("fail", needs=_LEASE | {"body"}, repeats=True),
    Tool("release", needs=_LEASE, repeats=True),
    Tool("cancel", destroys=True, repeats=True),
    Tool("list", reads=True, defaults={"limit": 20}),
    Tool("show", reads=True, without=_FILES),
    Tool(
        "show",
        name="inbox_save_artifact",
        only=frozenset({"thread", "artifact", "output", "mailbox"}),
        needs=frozenset({"artifact", "output"}),
        repeats=True,
        destroys=True,
        result=1,
        about="Write the newest artifact of this name into a file, replacing one that is there.",
    ),
)

_ABOUT = {
    "thread": "The thread's id.",
    "token": "The lease's token, from inbox_claim.",
    "body": "The text.",
    "payload": "For programs.",
    "attach": "Files to attach, by their absolute paths.",
    "mailbox": "Mailboxes beside one's own.",
    "output": "Where to write it: an absolute path.",
}


def _instructions(context: click.Context) -> str:
    text = packaged("inbox_orch.inbox", "mcp.txt")
    given = _given(context)
    if given is None:
        return text
    if given.holds:
        return f"{text}You hold a thread already: claim none, and leave `thread` and `token` out.\n"
    return f"{text}You hold nothing ({given.why}): claim, then give `thread` and `token`.\n"


def _given(context: click.Context) -> Given | None:
    """What the variables give. The database is not kept open: every call opens its own."""
    if not is_given():
        return None
    try:
        bus = open_bus(context, looks=True)
    except InboxOrchError:
        return given_lease(None)  # what is wrong with the database, every call says for itself
    try:
        return given_lease(bus)
    finally:
        bus.close()


def _gives(command: str, number: int) -> dict[str, Any]:
    from ..schemas import COMMANDS

    return COMMANDS[command].results[number].model_json_schema()


command = mcp_command(
    "inbox",
    tools=TOOLS,
    about_arguments=_ABOUT,
    gives=_gives,
    instructions=_instructions,
    text="""Serve the bus as tools of the Model Context Protocol, on standard input and output.

    An agent's client starts it, and it ends with the client. What --db and --agent say holds for
    every call. Needs the optional part `mcp`; where that is missing, it says how to install it.""",
)
