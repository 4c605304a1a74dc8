"""`inbox hook`: for the hooks of Claude Code."""

import click

from . import HOOKS
from .hook_group import HookProgram


@click.command(
    "hook",
    cls=HookProgram,
    commands_in=HOOKS,
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
