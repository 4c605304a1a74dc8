"""`inbox unseal`."""

from inbox_orch.shared.shell.declaring import Context, argument, verb

from .base import open_bus, say


@verb("unseal", agent=True, examples=("inbox unseal THREAD --agent leader",))
@argument("thread")
def command(context: Context, thread: str) -> None:
    """Show a sealed thread to everyone; only its sender may do so."""
    written = open_bus(context).unseal(thread)
    say(context, written, "Unsealed {thread}")
