"""`inbox prune`."""

from inbox_orch.shared.shell.blocks import Facts
from inbox_orch.shared.shell.declaring import Context, Number, option, shell_of, verb

from ..services.pruning import MOST_DAYS
from .base import open_bus


@verb(
    "prune",
    agent=True,
    examples=("inbox prune --older-than 30 --dry-run", "inbox prune --older-than 0.5 --json"),
)
@option(
    "--older-than",
    "days",
    type=Number(0, MOST_DAYS),
    required=True,
    metavar="DAYS",
    help="Threads that have been final for at least so long.",
)
@option("--dry-run", is_flag=True, help="Only count.")
@option("--unread", is_flag=True, help="Also what its recipient has not fetched.")
def command(context: Context, days: float, dry_run: bool, unread: bool) -> None:
    """Remove bodies, payloads, artifacts and keys of old final threads.

    A thread stays whole, and is counted, while its opener has not fetched what others
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
