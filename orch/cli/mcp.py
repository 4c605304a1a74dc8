"""`orch mcp`: the scheduler as tools for the client of an agent that leads."""

from typing import Any

from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.mcp_command import mcp_command
from inbox_orch.shared.tools.tools import Tool

_NO_VERIFY = frozenset({"no_verify"})

TOOLS = (
    Tool("status", reads=True, without=frozenset({"brief"}), defaults={"limit": 50}),
    Tool("ready", reads=True, defaults={"limit": 50}),
    Tool("dispatch"),
    # A check may take longer than any client waits for an answer.
    Tool("wait", waits=True, without=_NO_VERIFY, fixed=("--no-verify",)),
    Tool("blocked", reads=True),
    Tool("answer", needs=frozenset({"body"})),
    Tool("task show", reads=True),
)

_ABOUT = {"task": "The task's key.", "tasks": "The tasks' keys; all that are ready without any."}


def _gives(command: str, number: int) -> dict[str, Any]:
    from ..schemas import COMMANDS

    return COMMANDS[command].results[number].model_json_schema()


command = mcp_command(
    "orch",
    tools=TOOLS,
    about_arguments=_ABOUT,
    gives=_gives,
    instructions=lambda _context: packaged("inbox_orch.orch", "mcp.txt"),
    text="""Serve the scheduler as tools of the Model Context Protocol, on standard input and
    output.

    For a leader; workers take `inbox mcp`. An agent's client starts it, and it ends with the
    client. Checks of tasks are left to `orch drive` or `orch reconcile`. Needs the optional part
    `mcp`: pip install 'inbox-orch[mcp]'.""",
)
