"""`inbox unseal`."""

from inbox_orch.shared.declaring import Context, argument, verb

from ..services.sending import Sending
from .base import open_group, say


@verb("unseal", agent=True, examples=("inbox unseal THREAD --agent leader",))
@argument("thread")
def command(context: Context, thread: str) -> None:
    """Show a sealed thread to everybody; only its sender may do so."""
    written = open_group(context, Sending).unseal(thread)
    say(context, written, "Unsealed {thread}")
