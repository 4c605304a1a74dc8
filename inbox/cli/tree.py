"""The program `inbox` as click knows it: for help, errors, completion, and what is not plain."""

from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import Program, shell_of

from . import COMMANDS
from .base import overview


class Inbox(Program):
    """The program, of which nothing blocks an agent that calls it as a hook."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse the options before the command."""
        words = [*arguments[1]]
        try:
            return super().make_context(*arguments, **options)
        except (InboxOrchError, click.ClickException) as error:
            if "hook" not in words:
                raise
            from .hook_group import leave

            leave(options["obj"].output, error)


@click.command(
    "inbox",
    cls=Inbox,
    commands_in=COMMANDS,
    names_in="inbox_orch.inbox.cli.names",
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",  # click 8.4 says that there has to be one
    examples=(
        "inbox init",
        "inbox send --to workers --subject 'Fix the parser' --body-file task.md",
        "inbox claim --agent w1 --mailbox workers --json",
        "inbox work --agent w1 --mailbox workers -- ./my-script.sh",
    ),
    version=True,
)
@click.pass_context
def program(context: click.Context) -> None:
    """A durable bus for worker processes, in one SQLite file, with no server.

    Without a command: what waits for this agent.
    """
    if context.invoked_subcommand is None:
        overview(shell_of(context), context)
