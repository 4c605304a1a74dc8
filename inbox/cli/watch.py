"""`inbox watch`."""

import click

from inbox_orch.shared.commandline import Verb, shell_of

from .base import open_bus, wait_default_option


@click.command(
    "watch",
    cls=Verb,
    agent=True,
    examples=("inbox watch --after 0 --wait 0", "inbox watch --mailbox workers --wait inf"),
)
@click.option("--after", metavar="SEQ", help="After this event id; default: from now on.")
@click.option("--thread", metavar="THREAD", help="Only of this thread.")
@click.option(
    "--mailbox", "mailboxes", multiple=True, metavar="MAILBOX", help="Only of these; repeatable."
)
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only these; repeatable.")
@wait_default_option
@click.pass_context
def command(
    context: click.Context,
    after: str | None,
    thread: str | None,
    mailboxes: tuple[str, ...],
    kinds: tuple[str, ...],
    wait_seconds: float,
) -> None:
    """Stream events as JSON Lines while they happen; no cursor moves.

    The last line has the type `end` and the cursor to go on from. Exit 0 when the time is over.
    """
    bus = open_bus(context, looks=True, perhaps_alone=False)
    output = shell_of(context).output
    stream = bus.watch(
        after=after, thread_id=thread, mailboxes=mailboxes, kinds=kinds, wait_seconds=wait_seconds
    )
    for event in stream:
        output.line({"type": "event", **event.as_json()})
    output.line({"type": "end", "next_cursor": stream.next_cursor})
