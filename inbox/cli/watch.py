"""`inbox watch`."""

from inbox_orch.shared.declaring import Context, option, shell_of, verb

from .base import open_bus, wait_default_option


@verb(
    "watch",
    agent=True,
    examples=("inbox watch --after 0 --wait 0", "inbox watch --mailbox workers --wait inf"),
)
@option("--after", metavar="SEQ", help="After this event id; default: from now on.")
@option("--thread", metavar="THREAD", help="Only of this thread.")
@option(
    "--mailbox", "mailboxes", multiple=True, metavar="MAILBOX", help="Only of these; repeatable."
)
@option("--kind", "kinds", multiple=True, metavar="KIND", help="Only these; repeatable.")
@wait_default_option
def command(
    context: Context,
    after: str | None,
    thread: str | None,
    mailboxes: tuple[str, ...],
    kinds: tuple[str, ...],
    wait_seconds: float,
) -> None:
    """Stream events as JSON Lines while they happen; no cursor moves.

    The last line has the type `end` and the cursor to go on from. Exit 0 when the time is over.
    """
    bus = open_bus(context)
    output = shell_of(context).output
    stream = bus.watch(
        after=after, thread_id=thread, mailboxes=mailboxes, kinds=kinds, wait_seconds=wait_seconds
    )
    for event in stream:
        output.line({"type": "event", **event.as_json()})
    output.line({"type": "end", "next_cursor": stream.next_cursor})
