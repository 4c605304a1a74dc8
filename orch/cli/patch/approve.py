"""`orch patch approve`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ...leader.patches import approve
from ..parts.patches import patch_argument, say


@click.command(
    "approve",
    cls=Verb,
    agent=True,
    examples=(
        "orch patch approve parser/1/2 --agent boss",
        "orch patch approve parser/1/2 --reason 'R'",
    ),
)
@patch_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Why; it is kept with the patch.")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str, reason: str | None) -> None:
    """Approve of a patch that the policy asks about.

    A name counts once, and never that of whoever wrote it; names are asserted, not proven. What is
    approved is this very tree. `orch answer TASK --decide approve` is the same.
    """
    say(
        context,
        (run_name, patch),
        "Approved",
        lambda desk, run, found: approve(desk, run, found, reason or ""),
    )
