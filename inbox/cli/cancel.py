"""`inbox cancel`."""

import click

from inbox_orch.shared.commandline import Verb

from ..services.sending import Sending
from .base import body_options, body_text, open_group, say


@click.command(
    "cancel", cls=Verb, agent=True, examples=("inbox cancel THREAD --body 'not needed'",)
)
@click.argument("thread")
@body_options
@click.pass_context
def command(context: click.Context, thread: str, body: str | None, body_file: str | None) -> None:
    """Stop a thread, whoever holds it; its holder's next call gets exit 10."""
    written = open_group(context, Sending).cancel(thread, body=body_text(body, body_file))
    say(context, written, "Cancelled {thread}")
