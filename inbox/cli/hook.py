"""`inbox hook`: for the hooks of Claude Code."""

import click

from .hooking import HookProgram

_HERE = "inbox_orch.inbox.cli"


@click.command(
    "hook",
    cls=HookProgram,
    commands_in={
        "session-start": (f"{_HERE}.hook_session_start", "What waits when a session begins."),
        "stop": (f"{_HERE}.hook_stop", "Go on when there is something new."),
        "post-tool": (f"{_HERE}.hook_post_tool", "What is new, after a tool was used."),
    },
    examples=(
        "inbox hook session-start --mailbox workers",
        "inbox hook stop --mailbox workers",
        "inbox hook post-tool",
    ),
)
def command() -> None:
    """Announce unread messages to Claude Code, by the JSON of its hooks.

    Nothing new, or no database: nothing is printed. Whatever goes wrong is said on standard error
    and is exit 0, so that no hook ever blocks by accident; only with --json, and for a person at a
    terminal, the exit codes are those of every command.
    """
