"""`inbox mcp`: the bus as tools for an agent's client."""

import os
from typing import Any

from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.mcp_command import mcp_command
from inbox_orch.shared.tools.tools import Result, Tool

_LEASE = frozenset({"thread", "token"})


def _give_back(claimed: Result) -> list[str]:
    return ["release", f"--token={claimed['lease']['token']}", "--", claimed["thread"]["id"]]


TOOLS = (
    Tool("send"),
    Tool("fetch", defaults={"limit": 10}),
    Tool("claim", without=frozenset({"export"}), undo=_give_back),
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
    Tool("show", reads=True, without=frozenset({"artifact", "output"})),
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


def _instructions() -> str:
    text = packaged("inbox_orch.inbox", "mcp.txt")
    if os.environ.get("INBOX_THREAD") and os.environ.get("INBOX_TOKEN"):
        text += "You hold a thread already: claim none, and leave `thread` and `token` out.\n"
    return text


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
    every call. Needs the optional part `mcp`: pip install 'inbox-orch[mcp]'.""",
)
