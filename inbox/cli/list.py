"""`inbox list`."""

from inbox_orch.shared.blocks import Block, Sentence
from inbox_orch.shared.declaring import Choice, Context, option, shell_of, verb

from ..domain import limits, states
from ..services.reading import Reading
from .base import LIMIT, open_group, thread_table


@verb(
    "list",
    agent=True,
    examples=("inbox list --state pending --mailbox workers", "inbox list --limit 20 --json"),
)
@option(
    "--state",
    "states_wanted",
    multiple=True,
    type=Choice(states.THREAD_STATES),
    help="Only these; repeatable.",
)
@option("--mailbox", "mailboxes", multiple=True, metavar="MAILBOX", help="Only these; repeatable.")
@option("--from", "senders", multiple=True, metavar="NAME", help="Only from these; repeatable.")
@option(
    "--limit",
    type=LIMIT,
    default=limits.DEFAULT_LIST_LIMIT,
    show_default=True,
    metavar="N",
    help="At most this many.",
)
@option("--after", metavar="CURSOR", help="Go on from a `next_cursor`.")
@option("--count", is_flag=True, help="Also count them all.")
def command(
    context: Context,
    states_wanted: tuple[str, ...],
    mailboxes: tuple[str, ...],
    senders: tuple[str, ...],
    limit: int,
    after: str | None,
    count: bool,
) -> None:
    """List threads, oldest first. Changes nothing."""
    bus = open_group(context, Reading)
    listing = bus.list(
        states_wanted=states_wanted,
        mailboxes=mailboxes,
        senders=senders,
        limit=limit,
        after=after,
        count=count,
    )
    blocks: list[Block] = [thread_table(listing.items, "no threads", bus.now_ms)]
    output = shell_of(context).output
    if output.terminal and listing.truncated:
        blocks.append(Sentence(f"There is more: --after {listing.next_cursor}"))
    if listing.total is not None and (output.terminal or not listing.items):
        blocks.append(Sentence(f"{listing.total} in all", (listing.total,)))
    output.result(listing.as_json(), *blocks)
