"""`orch patch refuse`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ...leader.patches import refuse
from ..parts.patches import patch_argument, say


@click.command(
    "refuse",
    cls=Verb,
    agent=True,
    examples=(
        "orch patch refuse parser/1/2 --agent boss",
        "orch patch refuse parser/1/2 --reason 'R'",
    ),
)
@patch_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Why; it is kept with the patch.")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str, reason: str | None) -> None:
    """Refuse a patch that the policy asks about; it is kept, and not applied.

    The attempt is rejected, or goes the way of a failure where a blueprint says one; the reason is
    told to the next worker. `orch answer TASK --decide refuse` is the same.
    """
    say(
        context,
        (run_name, patch),
        "Refused",
        lambda desk, run, found: refuse(desk, run, found, reason or ""),
    )
