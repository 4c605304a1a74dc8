"""`inbox export`."""

import click

from inbox_orch.shared.commandline import Verb, shell_of

from .base import open_bus


@click.command(
    "export",
    cls=Verb,
    examples=("inbox export > bus.jsonl", "inbox export | jq 'select(.type == \"message\")'"),
)
@click.pass_context
def command(context: click.Context) -> None:
    """Print everything as JSON Lines, as of one commit, sealed threads included.

    Types: meta, thread, message (with its whole body), artifact (without its content), lease
    (without its token), cursor, event; the last line has the type `end` and the counts.
    """
    shell_of(context).output.lines(open_bus(context, looks=True).export())
