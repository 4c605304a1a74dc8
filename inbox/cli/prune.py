"""`inbox prune`."""

import click

from inbox_orch.shared.blocks import Facts
from inbox_orch.shared.commandline import Number, Verb, shell_of

from ..services.caring import MOST_DAYS
from .base import open_bus


@click.command(
    "prune",
    cls=Verb,
    agent=True,
    examples=("inbox prune --older-than 30 --dry-run", "inbox prune --older-than 0.5 --json"),
)
@click.option(
    "--older-than",
    "days",
    type=Number(0, MOST_DAYS),
    required=True,
    metavar="DAYS",
    help="Threads that have been final for at least so long.",
)
@click.option("--dry-run", is_flag=True, help="Only count.")
@click.option("--unread", is_flag=True, help="Also what its recipient has not fetched.")
@click.pass_context
def command(context: click.Context, days: float, dry_run: bool, unread: bool) -> None:
    """Remove bodies, payloads, artifacts and keys of old final threads.

    A thread stays whole, and is counted, while whoever opened it has not fetched what others
    wrote on it; what a run of `orch` has taken in counts as fetched. Rows and events stay, marked
    `pruned`. Files that no thread refers to are removed, too, and copies that were never finished.
    SQLite uses the freed pages again; the file does not shrink.
    """
    pruned = open_bus(context, looks=dry_run, perhaps_alone=True).prune(
        days, dry_run=dry_run, unread=unread
    )
    counts = {name: value for name, value in pruned.as_json().items() if name != "unread"}
    rows = tuple((name.replace("_", " "), value) for name, value in counts.items())
    output = shell_of(context).output
    output.result(pruned.as_json(), Facts(rows))
    if pruned.unread_threads and not output.as_json:
        output.notice(
            f"kept, as their senders have not fetched all of it: {', '.join(pruned.unread)}"
            f"{', …' if pruned.unread_threads > len(pruned.unread) else ''}; "
            "`inbox fetch --agent SENDER` reads it, --unread prunes it, too"
        )
