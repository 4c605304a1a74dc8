"""`inbox cancel`."""

from inbox_orch.shared.declaring import Context, argument, verb

from ..services.sending import Sending
from .base import body_options, body_text, open_group, say


@verb("cancel", agent=True, examples=("inbox cancel THREAD --body 'not needed'",))
@argument("thread")
@body_options
def command(context: Context, thread: str, body: str | None, body_file: str | None) -> None:
    """Stop a thread, whoever holds it; its holder's next call gets exit 10."""
    written = open_group(context, Sending).cancel(thread, body=body_text(body, body_file))
    say(context, written, "Cancelled {thread}")
