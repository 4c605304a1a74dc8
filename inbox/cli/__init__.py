"""The command line `inbox`: options to one call of the bus, its result to the output.

A command has no SQL, no rule and no print in it.
"""

from typing import Any

import click

from inbox_orch.shared.commandline import Program, shell_of
from inbox_orch.shared.errors import InboxOrchError

from .base import overview

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
    "wait-reply": (f"{_HERE}.wait_reply", "Block until somebody else has written."),
    "reply": (f"{_HERE}.reply", "Write on a thread; answers a question."),
    "done": (f"{_HERE}.done", "Finish with a result."),
    "fail": (f"{_HERE}.fail", "Finish badly, or hand back for another try."),
    "release": (f"{_HERE}.release", "Hand back untouched."),
    "cancel": (f"{_HERE}.cancel", "Stop a thread, whoever holds it."),
    "unseal": (f"{_HERE}.unseal", "Open a sealed thread to everybody."),
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
    "hook": (f"{_HERE}.hook", "Announce what is unread to Claude Code."),
    "mcp": (f"{_HERE}.mcp", "Serve the bus as tools to an agent's client."),
    "completion": (f"{_HERE}.completion", "Code that makes a shell complete commands."),
    "help": (f"{_HERE}.help", "About exit codes, the environment, JSON, or a command."),
}


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
            from .hooking import let_pass

            let_pass(options["obj"].output, error)


@click.command(
    "inbox",
    cls=Inbox,
    commands_in=COMMANDS,
    names_in=f"{_HERE}.names",
    invoke_without_command=True,
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
