"""`inbox cancel`."""

from inbox_orch.shared.shell.declaring import Context, argument, verb

from .base import body_options, body_text, open_bus, say


@verb("cancel", agent=True, examples=("inbox cancel THREAD --body 'not needed'",))
@argument("thread")
@body_options
def command(context: Context, thread: str, body: str | None, body_file: str | None) -> None:
    """Stop a thread, even while it is held; its holder's next call gets exit 10."""
    written = open_bus(context).cancel(thread, body=body_text(context, body, body_file))
    say(context, written, "Cancelled {thread}")
