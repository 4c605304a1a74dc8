"""`orch mcp`: the scheduler as tools for the client of an agent that leads."""

from typing import Any

from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.mcp_command import mcp_command
from inbox_orch.shared.tools.tools import Tool

_NO_VERIFY = frozenset({"no_verify"})

_OF_RUN = ("title", "base", "on_failure", "max_parallel", "no_repo", "key")
_OF_TASK = (
    *("run", "task", "title", "body", "schema", "to", "depends_on", "check", "no_worktree", "key"),
)
_OF_COUNCIL = ("brief", "title", "reviewers", "decision", "deadline", "quorum", "key")

TOOLS = (
    Tool(
        "run init", only=frozenset(_OF_RUN), about="Open a run for the repository of this folder."
    ),
    Tool("task add", only=frozenset(_OF_TASK)),
    Tool(
        "status",
        reads=True,
        either=True,
        defaults={"limit": 50},
        about="How every task of a run stands. What needs somebody comes first, and is in `needs`.",
    ),
    Tool("ready", reads=True, defaults={"limit": 50}),
    Tool("dispatch"),
    # A check may take longer than any client waits for an answer.
    Tool("wait", waits=True, without=_NO_VERIFY, fixed=("--no-verify",)),
    Tool("blocked", reads=True),
    Tool(
        "answer",
        needs=frozenset({"body"}),
        texts=frozenset({"plan"}),
        either=True,
        about="Answer a worker's question, or decide.",
    ),
    Tool("retry"),
    # As checks, what comes after a merge may take longer than any client waits.
    Tool(
        "integrate",
        without=frozenset({"check"}),
        about="Merge the accepted work of a run, in memory. What conflicts goes back to its task.",
    ),
    Tool("task show", reads=True),
    Tool(
        "council start",
        only=frozenset(_OF_COUNCIL),
        texts=frozenset({"brief"}),
        about="Ask reviewers, each a mailbox, for an opinion on the same brief.",
    ),
    Tool("council wait", waits=True),
    Tool(
        "council report",
        only=frozenset({"council", "format"}),
        about="What the reviewers of a council say, counted, and word for word.",
    ),
)

_ABOUT = {
    "task": "The task's key.",
    "tasks": "The tasks' keys; all that are ready without any.",
    "body": "The text itself.",
    "state": "Only tasks that are so.",
    "answer: decide": "One of a decision's answers.",
    "answer: body": "The answer, hint or reason.",
    "answer: to": "With change_role: who.",
    "answer: rule": "With relax.",
    "answer: plan": "With split: parts.",
    "council start: brief": "What is to be reviewed, in markdown.",
}


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
    `mcp`; where that is missing, it says how to install it.""",
)
