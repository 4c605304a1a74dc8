"""`orch council group split`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ....council.settling import Settled
from ...parts.council_base import council_option
from ..settle import settle


@click.command(
    "split",
    cls=Verb,
    agent=True,
    examples=("orch council group split ada/wal eve/backup --reason 'two subjects'",),
)
@council_option
@click.argument("item")
@click.argument("other")
@click.option(
    "--reason", type=TEXT, required=True, metavar="TEXT", help="Stands in every later report."
)
@click.pass_context
def command(
    context: click.Context, council_name: str | None, item: str, other: str, reason: str
) -> None:
    """Two items are not one recommendation: they are in one group no more."""
    settle(context, council_name, [Settled("split", (item, other), reason)])
