"""`orch council group merge`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ....council.settling import Settled
from ...parts.council_base import council_option
from ..settle import settle


@click.command(
    "merge",
    cls=Verb,
    agent=True,
    examples=("orch council group merge ada/wal bob/journal --reason 'one mechanism'",),
)
@council_option
@click.argument("item")
@click.argument("other")
@click.option(
    "--reason", type=TEXT, required=True, metavar="TEXT", help="Stands in every later report."
)
@click.option("--force", is_flag=True, help="Also when they are opposed; they stay contested.")
@click.pass_context
def command(
    context: click.Context,
    council_name: str | None,
    item: str,
    other: str,
    reason: str,
    force: bool,
) -> None:
    """Two items are one recommendation: their groups become one."""
    settle(context, council_name, [Settled("merge", (item, other), reason, force)])
