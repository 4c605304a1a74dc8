"""`inbox unseal`."""

import click

from inbox_orch.shared.commandline import Verb

from ..services.sending import Sending
from .base import open_group, say


@click.command("unseal", cls=Verb, agent=True, examples=("inbox unseal THREAD --agent leader",))
@click.argument("thread")
@click.pass_context
def command(context: click.Context, thread: str) -> None:
    """Show a sealed thread to everybody; only its sender may do so."""
    written = open_group(context, Sending).unseal(thread)
    say(context, written, "Unsealed {thread}")
