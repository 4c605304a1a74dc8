"""`orch patch drop`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ...leader.patches import drop
from ..parts.patches import patch_argument, say


@click.command(
    "drop",
    cls=Verb,
    agent=True,
    examples=("orch patch drop parser/1/2", "orch patch drop parser/1/2 --reason 'done anew'"),
)
@patch_argument
@click.option("--reason", type=TEXT, metavar="TEXT", help="Why; it is kept with the patch.")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str, reason: str | None) -> None:
    """Give up a patch that is refused, does not apply, or whose attempt has ended.

    Nothing is deleted: what was handed in stays where it is kept, and can be shown.
    """
    say(
        context,
        (run_name, patch),
        "Given up",
        lambda desk, run, found: drop(desk, run, found, reason),
    )
