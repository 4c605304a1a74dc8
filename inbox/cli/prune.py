"""`inbox prune`."""

from inbox_orch.shared.blocks import Facts
from inbox_orch.shared.declaring import Context, Number, option, shell_of, verb

from ..services.caring import MOST_DAYS
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
def command(context: Context, days: float, dry_run: bool) -> None:
    """Remove bodies, payloads, artifacts and keys of old final threads.

    Rows and events stay, marked `pruned`. Files that no thread refers to are removed, too, and
    copies that were never finished. SQLite uses the freed pages again; the file does not shrink.
    """
    pruned = open_bus(context).prune(days, dry_run=dry_run)
    rows = tuple((name.replace("_", " "), value) for name, value in pruned.as_json().items())
    shell_of(context).output.result(pruned.as_json(), Facts(rows))
