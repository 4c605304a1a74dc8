"""`inbox renew`."""

from inbox_orch.shared.shell.declaring import Context, option, verb

from .base import LEASE, held, lease_arguments, lease_words, open_bus, say


@verb("renew", agent=True, examples=("inbox renew --lease 600",))
@lease_arguments
@option(
    "--lease",
    type=LEASE,
    metavar="SECONDS",
    help="From now on; default: the lease's own length.",
)
def command(context: Context, thread: str | None, token: str | None, lease: float | None) -> None:
    """Extend the lease. Exit 7: it is not yours any more. Exit 10: the thread was cancelled."""
    written = open_bus(context).renew(*held(thread, token), lease_seconds=lease)
    say(context, written, "Renewed {thread}", lease_words(written))
