"""`orch council group dismiss`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ....council.settling import Settled
from ...parts.council_base import council_option
from ..settle import settle


@click.command(
    "dismiss",
    cls=Verb,
    agent=True,
    examples=("orch council group dismiss ada/wal --reason 'done since'",),
)
@council_option
@click.argument("group")
@click.option(
    "--reason", type=TEXT, required=True, metavar="TEXT", help="Stands in every later report."
)
@click.pass_context
def command(context: click.Context, council_name: str | None, group: str, reason: str) -> None:
    """Mark a group (named by one of its items) as dismissed. It stays where it is."""
    settle(context, council_name, [Settled("dismiss", (group,), reason)])
