"""`inbox fetch`."""

from inbox_orch.shared.blocks import Block, Sentence, Table
from inbox_orch.shared.declaring import Context, option, shell_of, verb
from inbox_orch.shared.errors import InboxOrchError

from ..domain.model import Message, Thread
from ..services.fetching import DEFAULT_FETCH_LIMIT, Fetched, Fetching
from .base import LIMIT, mailbox_option, open_group, refuse_read_only, wait_option


@verb(
    "fetch",
    agent=True,
    examples=(
        "inbox fetch --agent w1 --mailbox workers --json",
        "inbox fetch --agent leader --wait 90 --json",
    ),
)
@mailbox_option
@option("--peek", is_flag=True, help="Do not move the cursor.")
@option(
    "--limit",
    type=LIMIT,
    default=DEFAULT_FETCH_LIMIT,
    show_default=True,
    metavar="N",
    help="At most this many.",
)
@wait_option
def command(
    context: Context,
    mailboxes: tuple[str, ...],
    peek: bool,
    limit: int,
    wait_seconds: float | None,
) -> None:
    """Print unread messages for this agent, oldest first. Takes no lease: `claim` does.

    The cursor moves once the output has been written, so nothing is lost when it is not. An
    empty list is exit 0 without --wait, exit 8 with it.
    """
    bus = open_group(context, Fetching)
    if not peek:
        refuse_read_only(bus)
    fetched = bus.fetch(mailboxes=mailboxes, limit=limit, wait_seconds=wait_seconds, peek=peek)
    output = shell_of(context).output
    output.result(fetched.as_json(), *_blocks(fetched))
    if fetched.items and not peek:
        try:
            bus.mark_read(fetched)
        except InboxOrchError as error:
            # The messages have been delivered; being shown again is all that can follow.
            output.notice(f"the cursor was not moved, these will be shown again: {error.message}")


def _blocks(fetched: Fetched) -> list[Block]:
    rows = tuple(
        (message.id, message.kind, message.sender, thread.id, thread.state, _gist(message, thread))
        for message, thread in fetched.items
    )
    blocks: list[Block] = [
        Table(
            ("ID", "KIND", "FROM", "THREAD", "STATE", "TEXT"), rows, "nothing unread", (0, 1, 3, 4)
        )
    ]
    if fetched.truncated:
        blocks.append(Sentence("There is more: fetch again."))
    return blocks


def _gist(message: Message, thread: Thread) -> str:
    """The subject of a task, else the first line of what was written."""
    line = (message.body or "").strip().split("\n", 1)[0]
    return thread.subject if message.kind == "task" else line
