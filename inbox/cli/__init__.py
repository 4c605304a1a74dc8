"""The command line `inbox`: options to one call of the bus, its result to the output.

A command has no SQL, no rule and no print in it.
"""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inbox_orch.shared.shell.declaring import Declared

    from .tree import program

__all__ = ["COMMANDS", "HOOKS", "find", "program"]

_HERE = "inbox_orch.inbox.cli"

COMMANDS = {
    "init": (f"{_HERE}.init", "Make the database of this project."),
    "where": (f"{_HERE}.where", "Which database, and why."),
    "send": (f"{_HERE}.send", "Open a thread in a mailbox."),
    "fetch": (f"{_HERE}.fetch", "Unread messages for me; takes no lease."),
    "claim": (f"{_HERE}.claim", "Take the lease of a thread."),
    "renew": (f"{_HERE}.renew", "Extend the lease."),
    "update": (f"{_HERE}.update", "Tell how it goes; also renews."),
    "ask": (f"{_HERE}.ask", "Ask a question; the thread is blocked."),
    "wait-reply": (f"{_HERE}.wait_reply", "Block until another agent writes."),
    "reply": (f"{_HERE}.reply", "Write on a thread; answers a question."),
    "done": (f"{_HERE}.done", "Finish with a result."),
    "fail": (f"{_HERE}.fail", "Finish badly, or hand back for another try."),
    "release": (f"{_HERE}.release", "Hand back untouched."),
    "cancel": (f"{_HERE}.cancel", "Stop a thread, even while it is held."),
    "unseal": (f"{_HERE}.unseal", "Open a sealed thread to everyone."),
    "list": (f"{_HERE}.list", "The threads."),
    "show": (f"{_HERE}.show", "One thread, its messages, lease, artifacts."),
    "watch": (f"{_HERE}.watch", "Stream events as JSON Lines."),
    "work": (f"{_HERE}.work", "Run a command for each claimed thread."),
    "stats": (f"{_HERE}.stats", "How much there is in which state."),
    "doctor": (f"{_HERE}.doctor", "Check the database; --verify folds the events."),
    "backup": (f"{_HERE}.backup", "Copy the live database into a file."),
    "export": (f"{_HERE}.export", "Everything as JSON Lines."),
    "prune": (f"{_HERE}.prune", "Remove the bodies and files of old final threads."),
    "schema": (f"{_HERE}.schema", "The JSON Schema of a command's output."),
    "prime": (f"{_HERE}.prime", "What an agent must know, in 2,000 bytes."),
    "guide": (f"{_HERE}.guide", "A few lines for a repository's AGENTS.md."),
    "skill": (f"{_HERE}.skill", "The manual for agents; print or install it."),
    "setup": (f"{_HERE}.setup", "Make a coding agent ready for inbox, in one step."),
    "hook": (f"{_HERE}.hook", "Announce what is unread to Claude Code."),
    "mcp": (f"{_HERE}.mcp", "Serve the bus as tools to an agent's client."),
    "completion": (f"{_HERE}.completion", "Code that makes a shell complete commands."),
    "help": (f"{_HERE}.help", "About exit codes, the environment, JSON, or a command."),
}

HOOKS = {
    "session-start": (f"{_HERE}.hook_session_start", "What waits when a session begins."),
    "stop": (f"{_HERE}.hook_stop", "Go on when there is something new."),
    "post-tool": (f"{_HERE}.hook_post_tool", "What is new, after a tool was used."),
}


def find(words: Sequence[str]) -> "tuple[Declared, int] | None":
    """The command that the first words name, and how many words that are; None where only the
    whole program can tell."""
    from inbox_orch.shared.shell.declaring import Declared

    commands, count = (HOOKS, 2) if words[:1] == ["hook"] else (COMMANDS, 1)
    known = commands.get(words[count - 1]) if len(words) >= count else None
    command = None if known is None else importlib.import_module(known[0]).command
    return (command, count) if isinstance(command, Declared) else None


def __getattr__(name: str) -> Any:
    if name == "program":
        from .tree import program

        return program
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
