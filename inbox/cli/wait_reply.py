"""`inbox wait-reply`."""

from inbox_orch.shared.declaring import Context, option, shell_of, verb
from inbox_orch.shared.errors import InboxOrchError

from .base import held, lease_arguments, message_block, open_bus, wait_default_option


@verb("wait-reply", agent=True, examples=("inbox wait-reply --wait 90 --json",))
@lease_arguments
@wait_default_option
@option("--after", metavar="N", help="Only what came after this message id.")
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    wait_seconds: float,
    after: str | None,
) -> None:
    """Block until somebody else has written on the thread; keep the lease alive meanwhile.

    By default after the holder's own last message. Exit 8 when the time is over: call again,
    nothing is missed in between.
    """
    bus = open_bus(context)
    replies = bus.wait_reply(*held(thread, token), after=after, wait_seconds=wait_seconds)
    output = shell_of(context).output
    output.result(
        replies.as_json(),
        *(message_block(message, bus.now_ms, full=True) for message in replies.messages),
    )
    try:
        bus.mark_read(replies)
    except InboxOrchError as error:
        # The reply has been delivered; `work` may run its command once more, no more than that.
        output.notice(f"that this was read could not be recorded: {error.message}")
