"""`inbox renew`."""

import click

from inbox_orch.shared.commandline import Verb

from ..services.holding import Holding
from .base import LEASE, held, lease_arguments, open_group, say


@click.command("renew", cls=Verb, agent=True, examples=("inbox renew --lease 600",))
@lease_arguments
@click.option(
    "--lease",
    type=LEASE,
    metavar="SECONDS",
    help="From now on; default: the lease's own length.",
)
@click.pass_context
def command(
    context: click.Context, thread: str | None, token: str | None, lease: float | None
) -> None:
    """Extend the lease. Exit 7: it is not yours any more. Exit 10: the thread was cancelled."""
    written = open_group(context, Holding).renew(*held(thread, token), lease_seconds=lease)
    say(context, written, "Renewed {thread}")
