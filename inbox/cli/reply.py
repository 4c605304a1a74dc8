"""`inbox reply`."""

from inbox_orch.shared.declaring import Context, argument, verb

from ..services.sending import Sending
from .base import attach_option, body_options, key_option, open_group, required_body, say


@verb(
    "reply",
    agent=True,
    examples=("inbox reply THREAD --agent leader --body 'the new one'",),
)
@argument("thread")
@body_options
@attach_option
@key_option
def command(
    context: Context,
    thread: str,
    body: str | None,
    body_file: str | None,
    attach: tuple[str, ...],
    key: str | None,
) -> None:
    """Write on a thread; no lease is needed. On a blocked one it answers the question."""
    written = open_group(context, Sending).reply(
        thread, body=required_body(body, body_file), attach=attach, key=key
    )
    say(context, written, "Answered {thread}" if written.answered else "Wrote on {thread}")
